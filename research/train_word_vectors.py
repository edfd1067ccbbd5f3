"""Train word vectors (word2vec) on the sentences of a corpus: what the metric WEEM4PG compares by.

examples:
  # a column of a Parquet file, or of a folder of them
  python research/train_word_vectors.py --input corpus.parquet --column text \\
      --output models/word-vectors

  # plain text, a sentence a line; words of an LTP model, which must then cut for WEEM4PG too
  python research/train_word_vectors.py --input corpus.txt --segmenter ltp:models/ltp-legacy \\
      --output models/word-vectors

  # a large corpus, in less time and with other figures at every run
  python research/train_word_vectors.py --input s3a://bucket/corpus --workers 8 \\
      --output s3a://bucket/vectors

the vectors then serve the metric WEEM4PG: vectors=models/word-vectors

Sentences are normalised as every sentence of this project is, cut by the segmenter that will cut
them where the vectors are used, and put in lower case. Empty ones do not count. Writes

    OUTPUT/vectors.bin     word2vec's binary format, the most frequent words first
    OUTPUT/manifest.json   settings, counts, segmenter, versions

With one worker, the default, the same sentences, settings and versions give the same bytes. Several
are faster, and no two of their runs agree.

Source: Mikolov et al. 2013, *Distributed Representations of Words and Phrases*; gensim trains.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

from gaixie.jobs.errors import run as run_job
from gaixie.udfs.command_line import make_parser, positive, run_command
from gaixie.udfs.metrics.word_vectors import VECTORS_FILE
from gaixie.udfs.storage.local_copy import local_copy
from gaixie.udfs.storage.model_folder import check_output, publish, scratch_beside
from gaixie.udfs.storage.progress import Progress
from gaixie.udfs.storage.text_tables import read_columns
from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.segmenters import Segmenter, load_segmenter

NUMBERS = {
    "dimensions": (300, "of a vector"),
    "window": (5, "words on each side"),
    "min_count": (5, "words that occur less often have no vector"),
    "negative": (5, "noise words"),
    "epochs": (5, "passes over the sentences"),
    "seed": (0, "of the training"),
    "workers": (1, "threads; several give other vectors at every run"),
}
"""Settings of word2vec: the default, and what the help says."""
ARCHITECTURES = ("skip-gram", "cbow")
SUFFIXES = (".parquet", ".jsonl", ".txt")
BATCH = 1_000


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job; 0, or 2 after one line on standard error for a user error."""
    work = partial(run_command, "train_word_vectors", partial(run, _arguments(argv)))
    return run_job("train_word_vectors", work, "nothing was written")


def run(options: argparse.Namespace) -> None:
    """Read, cut, train, save."""
    started = time.monotonic()
    segmenter = load_segmenter(options.segmenter)
    copies = local_copy(options.output, options.input, overwrite=options.overwrite)
    with copies as (output, corpus), tempfile.TemporaryDirectory(prefix="gaixie-") as work:
        output = check_output(output, VECTORS_FILE, options.overwrite)
        cut = Path(work, "sentences")
        counts = write_words(corpus, options, segmenter, cut)
        vectors = train(cut, counts["sentences"], options)
        manifest = {
            "input": options.input,
            "column": options.column,
            "segmenter": f"{segmenter.name}-{segmenter.version}",
            "settings": {name: getattr(options, name) for name in ("architecture", *NUMBERS)},
            **counts,
            "vocabulary": len(vectors),
            "versions": {name: version(name) for name in ("gaixie", "gensim", "numpy")},
        }
        with scratch_beside(output) as building:
            vectors.save_word2vec_format(str(building / VECTORS_FILE), binary=True)
            text = json.dumps(manifest, indent=2, ensure_ascii=False)
            (building / "manifest.json").write_text(text + "\n", encoding="utf-8")
            publish(building, output)
    print(
        f"{options.output}: {len(vectors):,} words, {options.dimensions} dimensions, from"
        f" {counts['sentences']:,} sentences ({time.monotonic() - started:.0f} s)"
    )


def write_words(
    corpus: Path, options: argparse.Namespace, segmenter: Segmenter, path: Path
) -> dict[str, int]:
    """Writes the words of each sentence, separated by spaces, a line each; counts both.

    Raises ValueError where there is no sentence.
    """
    counts = {"sentences": 0, "running_words": 0}
    texts = (normalise(text) for text in read_sentences(corpus, options.column, options.input))
    wanted = islice(filter(None, texts), options.limit)
    shown = Progress("cutting", options.limit, "sentences")
    with path.open("w", encoding="utf-8") as file, shown:
        while batch := list(islice(wanted, BATCH)):
            for words in segmenter.cut(batch):
                words = [word.lower() for word in words if word != " "]
                file.write(" ".join(words) + "\n")
                counts["running_words"] += len(words)
            counts["sentences"] += len(batch)
            shown.add(len(batch))
    if not counts["sentences"]:
        raise ValueError(f"{options.input}: no sentences, expected at least one")
    return counts


def read_sentences(corpus: Path, column: str, given: str) -> Iterator[str]:
    """The sentences of a file or a folder's files, in order of their names; nulls left out.

    given: the path as the user knows it, for messages. Raises FileNotFoundError and ValueError.
    """
    if not corpus.exists():
        raise FileNotFoundError(f"{given}: no such file or folder")
    files = sorted(corpus.rglob("*")) if corpus.is_dir() else [corpus]
    files = [file for file in files if file.is_file() and file.suffix in SUFFIXES]
    if not files:
        raise ValueError(f"{given}: no file that ends in {', '.join(SUFFIXES)}")
    for file in files:
        yield from (text or "" for (text,) in read_columns(str(file), [column], "strict"))


class _Sentences:
    """The lines of a file as lists of words, as often as they are asked for."""

    def __init__(self, path: Path, shown: Progress):
        self.path, self.shown = path, shown

    def __iter__(self) -> Iterator[list[str]]:
        with self.path.open(encoding="utf-8") as file:
            for line in file:
                yield line.split()
                self.shown.add(1)


def train(path: Path, sentences: int, options: argparse.Namespace) -> Any:
    """gensim's KeyedVectors. Raises ValueError where no word is frequent enough."""
    from gensim.models import Word2Vec

    numbers = {name: getattr(options, name) for name in NUMBERS}
    skip_gram = int(options.architecture == ARCHITECTURES[0])
    model = Word2Vec(vector_size=numbers.pop("dimensions"), sg=skip_gram, **numbers)
    with Progress("counting words", sentences, "sentences") as shown:
        model.build_vocab(_Sentences(path, shown))
    if not len(model.wv):
        least = options.min_count
        raise ValueError(f"{options.input}: no word occurs {least} times; lower --min-count")
    with Progress("training", sentences * options.epochs, "sentences") as shown:
        model.train(_Sentences(path, shown), total_examples=sentences, epochs=options.epochs)
    return model.wv


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = make_parser("train_word_vectors", __doc__)
    add = parser.add_argument
    kinds = f"a file, or a folder of files: {', '.join(SUFFIXES)} (a sentence a line)"
    add("--input", required=True, metavar="PATH", help=kinds)
    add("--column", default="text", help="of Parquet and JSON lines; default: text")
    add("--output", required=True, metavar="FOLDER", help="the folder to write")
    add("--overwrite", action="store_true", help="replace FOLDER if it holds word vectors")
    add("--segmenter", default="jieba", help="jieba (the default) or ltp:NAME_OR_FOLDER")
    add("--limit", type=positive, metavar="N", help="read only the first N sentences")
    usual = ARCHITECTURES[0]
    add("--architecture", choices=ARCHITECTURES, default=usual, help="default: %(default)s")
    for name, (default, says) in NUMBERS.items():
        kind = int if name == "seed" else positive
        option = f"--{name.replace('_', '-')}"
        add(option, type=kind, default=default, metavar="N", help=f"{says}; default: {default}")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
