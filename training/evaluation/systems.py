"""The systems that are compared: columns of a table, files of paraphrases, models."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from gaixie.training.modeling.generation import in_words, load_generator
from gaixie.training.modeling.generator import (
    SPACE_BESIDE_CHINESE,
    Decoding,
    has_text,
)
from gaixie.training.modeling.paraphraser import Paraphraser, Ranking
from gaixie.udfs.command_line import say
from gaixie.udfs.metrics.encoder import model_signature
from gaixie.udfs.spscore import SPScore
from gaixie.udfs.storage.progress import Progress
from gaixie.udfs.storage.text_tables import check_extension, read_columns
from gaixie.udfs.text.normalise import normalise

TABLES = (".tsv", ".csv", ".jsonl", ".parquet")

COPY = "copy"


@dataclass(frozen=True)
class System:
    """A system and its paraphrases."""

    name: str
    made_by: str
    """What made the paraphrases, in the report's words."""
    paraphrases: list[str | None]
    """The paraphrase of each row, normalised; None where there is none."""


References = dict[str, list[str | None]]
"""Column -> what a person wrote for each row, normalised; None where there is nothing."""


def read_systems(args: argparse.Namespace) -> tuple[list[str], list[System], References, int]:
    """Sources, the copy baseline and the systems that are columns, references, rows without a source."""
    check_extension(args.pairs, TABLES)
    named = [split_name(text) for text in args.system]
    columns = list(dict.fromkeys([args.source, *(column for _, column in named), *args.reference]))
    rows = list(islice(read_columns(args.pairs, columns), args.limit))
    if not rows:
        raise ValueError(f"{args.pairs}: no rows")
    table = {
        column: [_clean(text, args.close_spaces) for text in texts]
        for column, texts in zip(columns, zip(*rows, strict=True), strict=True)
    }
    kept = {k: source for k, source in enumerate(table[args.source]) if source is not None}
    if not kept:
        raise ValueError(f"{args.pairs}: no row has text in column '{args.source}'")
    sources = [*kept.values()]
    systems = [System(COPY, "each source as it is", [*sources])]
    systems += [
        System(name, f"column {column}", [table[column][k] for k in kept]) for name, column in named
    ]
    references = {column: [table[column][k] for k in kept] for column in args.reference}
    return sources, systems, references, len(rows) - len(kept)


def _clean(text: str | None, close_spaces: bool) -> str | None:
    """The text normalised; None where it has none."""
    if text is None or not has_text(text):
        return None
    text = normalise(text)
    return SPACE_BESIDE_CHINESE.sub("", text) if close_spaces else text


def from_generations(text: str, sources: Sequence[str], close_spaces: bool) -> System:
    """The system NAME=FILE of --generations. Raises ValueError where no source matches."""
    name, file = split_name(text)
    check_extension(file, TABLES)
    best: dict[str | None, str | None] = {}
    for source, paraphrase in read_columns(file, ["source", "paraphrase"]):
        best.setdefault(_clean(source, close_spaces), _clean(paraphrase, close_spaces))
    paraphrases = [best.get(source) for source in sources]
    if not any(paraphrases):
        raise ValueError(f"{file}: has no paraphrase of any source")
    return System(name, f"file {file}", paraphrases)


def from_model(
    text: str,
    sources: Sequence[str],
    decoding: Decoding,
    ranking: Ranking,
    args: argparse.Namespace,
) -> System:
    """The system NAME=FOLDER of --model, which writes its paraphrases now."""
    name, folder = split_name(text)
    generator = load_generator(folder, args.device, args.precision)
    different = list(dict.fromkeys(sources))
    with Progress(name, len(different), "sentences") as shown:
        if ranking.by == "model":
            made = generator.candidates(different, decoding, scored=False, progress=shown.add)
            texts = [row[0].text if row else None for row in made]
        else:
            spscore = SPScore.load(args.tier)
            ranked = Paraphraser(generator, decoding, ranking, spscore)(different, shown.add)
            texts = [row[0].text if row else None for row in ranked]
    best = {source: _clean(text, False) for source, text in zip(different, texts, strict=True)}
    say(f"{name}: {in_words(generator.counts)}")
    made_by = [f"model {model_signature(folder)}", f"{decoding.beams} beams", args.precision]
    if decoding.draws:
        made_by += [f"{decoding.draws} draws of temperature {decoding.temperature:g}"]
    made_by += [f"degree {decoding.degree}"] if decoding.degree else []
    if ranking.by != "model":
        floor = f", meaning from {ranking.min_meaning:g}" if ranking.min_meaning else ""
        made_by += [f"ranked by SPScore-zh, tier {args.tier}{floor}"]
        made_by += [f"reverse probability {ranking.reverse:g}"] if ranking.reverse else []
        made_by += [f"forward probability {ranking.forward:g}"] if ranking.forward else []
    made_by += ["copies dropped"] if decoding.drop_copies else []
    made_by += [f"{decoding.max_new_tokens} new tokens"] if decoding.max_new_tokens else []
    return System(name, ", ".join(made_by), [best[source] for source in sources])


def split_name(text: str) -> tuple[str, str]:
    """(name, rest) of NAME=REST; of anything else its last part and itself."""
    name, equals, rest = text.partition("=")
    return (name, rest) if equals else (Path(text).name, text)


def check_names(names: Sequence[str], people: bool = False) -> None:
    """Raises ValueError for a name that is missing, taken or given twice, and for no system.

    people: there are references, which can be evaluated without a system.
    """
    if not names and not people:
        raise ValueError("nothing to evaluate: give --system, --generations or --model")
    for index, name in enumerate(names):
        if name == COPY:
            raise ValueError(f"a system cannot be called {COPY!r}, which is the baseline's name")
        if not name or name in names[:index]:
            raise ValueError(
                f"the name {name!r} is given to two systems" if name else "a system without a name"
            )
