"""Makes a character language model, by which SPScore-zh judges fluency.

  python research/make_language_model.py --input corpus.parquet:text \\
      --input translations.parquet:translations_zh --exclude rated.jsonl \\
      --source "news corpus, CC BY 4.0" --output models/language-model

An input is a column of a .parquet, .jsonl, .csv or .tsv; of a list of sentences one is drawn.
The model is interpolated modified Kneser-Ney (research/fitting/kneser_ney.py), pruned and packed to
a given size. Sentences are normalised as everywhere in this project, and each counts once. Do not
train on rated sentences, or the model finds them more fluent than they are: --exclude leaves them
out, with every sentence that shares 10 consecutive characters with one. Writes

    OUTPUT/language_model.json                           settings, counts, sources, digest
    OUTPUT/{characters,unigrams,slots,scales}.npy        see udfs/meaning/language_model_kernel.py

The same sentences in the same order, with the same versions, give the same bytes.
"""

import argparse
import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from importlib.metadata import version
from itertools import chain
from pathlib import Path

import numpy as np

from gaixie.research.fitting import kneser_ney
from gaixie.research.fitting.model_folder import new_folder
from gaixie.research.ratings.tables import add_places, read_groups, read_table
from gaixie.udfs.command_line import make_parser, run_command, say
from gaixie.udfs.meaning.array_folder import write_arrays
from gaixie.udfs.meaning.bucket import WAYS
from gaixie.udfs.meaning.language_model import FORMAT, MANIFEST, VERSION, digest
from gaixie.udfs.meaning.language_model_kernel import BEGIN, END, FIRST_CHARACTER, UNKNOWN, Tables
from gaixie.udfs.text.code_points import CodePoints, from_strings
from gaixie.udfs.text.normalise import NORMALISATION, normalise

ORDER = 5
"""The longest n-gram."""
LEAST = [2, 1, 2, 2, 2]
"""Rarer n-grams are left out, by order."""
MOST_BYTES = 16_000_000
"""Of all files together."""
PER_GROUP, SEED = 1, 0
"""Sentences drawn of each list."""
OVERLAP = 10
"""A sentence that shares this many consecutive characters with an excluded one is left out."""
LAST_CODE = 0x20000
"""Code points from here on are unknown: rare ideographs, which would lengthen the table."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the job. Returns 0, or 2 after one line on standard error for a user error."""
    parser = make_parser("make_language_model", __doc__)
    add = parser.add_argument
    add_places(parser)
    excluded = "columns source and paraphrase: sentences not to train on, nor on lists with one"
    add("--exclude", type=Path, metavar="FILE", help=excluded)
    source = "name and licence of a source, for the description; may be repeated"
    add("--source", action="append", default=[], metavar="TEXT", help=source)
    work = partial(run, parser.parse_args(argv))
    return run_command("make_language_model", work, "nothing was written")


def run(options: argparse.Namespace) -> None:
    """Reads the sentences, makes the model, and saves it."""
    with new_folder(options.output, MANIFEST, options.overwrite) as building:
        groups = chain.from_iterable(read_groups(*given) for given in options.input)
        texts, found = gather(groups, Excluded(options.exclude))
        if not texts:
            raise ValueError(f"{options.input[0][0]}: no sentences, expected at least one")
        tables, counts = make_tables(from_strings(texts))
        manifest = describe(options, counts | {"sentences": found}, tables)
        write_arrays(building / MANIFEST, tables._asdict(), manifest)
    print(
        f"{options.output}: order {ORDER}, {sum(counts['kept']):,} n-grams from"
        f" {len(texts):,} sentences, {sum(a.nbytes for a in tables) / 1e6:.1f} MB"
    )


# Reading


class Excluded:
    """Sentences not to train on, and whatever overlaps with them."""

    def __init__(self, file: Path | None):
        self.texts: set[str] = set()
        if file is not None:
            for column in read_table(file, ["source", "paraphrase"]).values.T:
                self.texts |= {normalise(text) for text in column if text}
        self.runs = {run for text in self.texts for run in self._runs(text)}

    def __contains__(self, text: str) -> bool:
        return text in self.texts or not self.runs.isdisjoint(self._runs(text))

    def _runs(self, text: str) -> Iterator[str]:
        return (text[k : k + OVERLAP] for k in range(len(text) - OVERLAP + 1))


def gather(groups: Iterable[list[str]], excluded: Excluded) -> tuple[list[str], dict[str, int]]:
    """Returns the normalised sentences to train on, distinct and not empty, and counts."""
    chance = random.Random(SEED)
    texts: dict[str, None] = {}
    read = left_out = taken = 0
    for group in groups:
        group = [text for text in map(normalise, group) if text]
        read += len(group)
        if any(text in excluded for text in group):
            left_out += len(group)
            continue
        if len(group) > PER_GROUP:
            group = chance.sample(group, PER_GROUP)
        taken += len(group)
        texts.update(dict.fromkeys(group))
    counts = {"read": read, "trained_on": len(texts)}
    return [*texts], counts | {"repeated": taken - len(texts), "excluded": left_out}


# Making


def make_tables(text: CodePoints) -> tuple[Tables, dict]:
    """Returns the packed model of the sentences, and counts for its description.

    Raises ValueError if no character is frequent enough.
    """
    characters, size = number_characters(text, LEAST[0])
    stream = as_stream(text, characters)
    say(f"counting n-grams of {len(stream):,} characters")
    grams = kneser_ney.count_grams(stream, ORDER, size)
    shares = kneser_ney.estimate_shares(grams)
    say("pruning")
    small = characters.nbytes + size * 8 + 16_384  # including headers, scales and description
    kept, buckets = kneser_ney.choose(grams, shares, LEAST, (MOST_BYTES - small) // (4 * WAYS))
    model = kneser_ney.interpolate(grams, shares, kept)
    say("packing")
    tables = Tables(characters, **kneser_ney.pack(grams, model, kept, buckets))
    counts = {
        "characters": size - FIRST_CHARACTER,
        "running_characters": int(text.offsets[-1]),
        "n_grams": [len(order.first) for order in grams],
        "kept": [size, *(int(mask.sum()) for mask in kept[1:])],
    }
    return tables, counts


def number_characters(text: CodePoints, least: int) -> tuple[np.ndarray, int]:
    """Returns Tables.characters and how many ids it uses.

    The most frequent characters come first, so that they share cache lines.
    """
    counts = np.bincount(text.values[text.values < LAST_CODE])
    codes = np.flatnonzero(counts >= least)
    if not len(codes):
        raise ValueError(f"no character occurs {least} times")
    codes = codes[np.argsort(-counts[codes], kind="stable")][: 0xFFFF - FIRST_CHARACTER]
    characters = np.full(codes.max() + 1, UNKNOWN, np.uint16)
    characters[codes] = np.arange(len(codes)) + FIRST_CHARACTER
    return characters, len(codes) + FIRST_CHARACTER


def as_stream(text: CodePoints, characters: np.ndarray) -> np.ndarray:
    """Returns the ids of all characters, each sentence between BEGIN and END: uint16."""
    values, offsets = text
    rows = np.arange(len(offsets) - 1)
    known = np.minimum(values, len(characters) - 1)
    numbers = np.where(values < len(characters), characters[known], UNKNOWN)
    stream = np.empty(len(values) + 2 * len(rows), np.uint16)
    stream[np.arange(len(values)) + 2 * np.repeat(rows, np.diff(offsets)) + 1] = numbers
    stream[offsets[:-1] + 2 * rows] = BEGIN
    stream[offsets[1:] + 2 * rows + 1] = END
    return stream


def describe(options: argparse.Namespace, counts: dict, tables: Tables) -> dict:
    """Returns the content of language_model.json; it names files without their folders."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "normalisation": NORMALISATION,
        "digest": digest(*tables),
        "order": ORDER,
        "least": LEAST,
        "inputs": [f"{file.name}:{column}" for file, column in options.input],
        "per_group": PER_GROUP,
        "seed": SEED,
        "sources": options.source,
        **counts,
        "bytes": {name: int(array.nbytes) for name, array in tables._asdict().items()},
        "versions": {name: version(name) for name in ("gaixie", "numpy")},
    }


if __name__ == "__main__":
    sys.exit(main())
