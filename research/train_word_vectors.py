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
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.metadata import version
from itertools import islice
from pathlib import Path

from gaixie.jobs.errors import run as run_job
from gaixie.udfs.command_line import make_parser, positive, run_command
from gaixie.udfs.metrics.word_vectors import VECTORS_FILE
from gaixie.udfs.storage.local_copy import local_copy
from gaixie.udfs.storage.model_folder import check_output, publish, scratch_beside
from gaixie.udfs.storage.progress import Progress
from gaixie.udfs.storage.text_tables import read_columns
from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.segmenters import Segmenter, load_segmenter

SETTINGS = (
    *("architecture", "dimensions", "window", "min_count", "negative"),
    *("epochs", "seed", "workers"),
)
SUFFIXES = (".parquet", ".jsonl", ".txt")
MANIFEST = "manifest.json"
BATCH = 1_000


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job; 0, or 2 after one line on standard error for a user error."""
    options = parse_arguments(argv)
    work = partial(run_command, "train_word_vectors", partial(run, options))
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
            "settings": {name: getattr(options, name) for name in SETTINGS},
            **counts,
            "vocabulary": len(vectors),
            "versions": {name: version(name) for name in ("gaixie", "gensim", "numpy")},
        }
        save(vectors, manifest, output)
    print(
        f"{options.output}: {len(vectors):,} words, {options.dimensions} dimensions, from"
        f" {counts['sentences']:,} sentences ({time.monotonic() - started:.0f} s)"
    )


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = make_parser("train_word_vectors", __doc__)
    add = parser.add_argument
    add(
        "--input",
        required=True,
        metavar="PATH",
        help="a file, or a folder of files: .parquet, .jsonl, .txt (a sentence a line)",
    )
    add("--column", default="text", help="of Parquet and JSON lines; default: text")
    add("--output", required=True, metavar="FOLDER", help="the folder to write")
    add("--overwrite", action="store_true", help="replace FOLDER if it holds word vectors")
    add("--segmenter", default="jieba", help="jieba (the default) or ltp:NAME_OR_FOLDER")
    add("--limit", type=positive, metavar="N", help="read only the first N sentences")
    add(
        "--architecture",
        choices=("skip-gram", "cbow"),
        default="skip-gram",
        help="default: skip-gram",
    )
    add("--dimensions", type=positive, default=300, metavar="N", help="default: 300")
    add("--window", type=positive, default=5, metavar="N", help="words on each side; default: 5")
    add(
        "--min-count",
        type=positive,
        default=5,
        metavar="N",
        help="words that occur less often have no vector; default: 5",
    )
    add("--negative", type=positive, default=5, metavar="N", help="noise words; default: 5")
    add("--epochs", type=positive, default=5, metavar="N", help="default: 5")
    add("--seed", type=int, default=0, help="default: 0")
    add(
        "--workers",
        type=positive,
        default=1,
        metavar="N",
        help="threads, 1 by default; several give other vectors at every run",
    )
    return parser.parse_args(argv)


# Reading


def write_words(
    corpus: Path, options: argparse.Namespace, segmenter: Segmenter, path: Path
) -> dict[str, int]:
    """Writes the words of each sentence, separated by spaces, a line each; counts both.

    Raises ValueError where there is no sentence.
    """
    counts = {"sentences": 0, "running_words": 0}
    texts = (normalise(text) for text in read_sentences(corpus, options.column, options.input))
    wanted = islice(filter(None, texts), options.limit)
    with (
        path.open("w", encoding="utf-8") as file,
        Progress("cutting", options.limit, "sentences") as shown,
    ):
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
    files = sorted(p for p in corpus.rglob("*") if p.is_file()) if corpus.is_dir() else [corpus]
    files = [file for file in files if file.suffix in SUFFIXES]
    if not corpus.exists():
        raise FileNotFoundError(f"{given}: no such file or folder")
    if not files:
        raise ValueError(f"{given}: no file that ends in {', '.join(SUFFIXES)}")
    for file in files:
        for (text,) in read_columns(str(file), [column], "strict"):
            yield text or ""


# Training


class _Sentences:
    """The lines of a file as lists of words, as often as they are asked for."""

    def __init__(self, path: Path, advance: Callable[[int], None]):
        self.path, self.advance = path, advance

    def __iter__(self) -> Iterator[list[str]]:
        with self.path.open(encoding="utf-8") as file:
            while batch := list(islice(file, BATCH)):
                yield from (line.split() for line in batch)
                self.advance(len(batch))


def train(path: Path, sentences: int, options: argparse.Namespace):
    """gensim's KeyedVectors. Raises ValueError where no word is frequent enough."""
    from gensim.models import Word2Vec

    model = Word2Vec(
        vector_size=options.dimensions,
        window=options.window,
        min_count=options.min_count,
        sg=int(options.architecture == "skip-gram"),
        negative=options.negative,
        epochs=options.epochs,
        seed=options.seed,
        workers=options.workers,
    )
    with Progress("counting words", sentences, "sentences") as shown:
        model.build_vocab(_Sentences(path, shown.add))
    if not len(model.wv):
        least = options.min_count
        raise ValueError(f"{options.input}: no word occurs {least} times; lower --min-count")
    with Progress("training", sentences * options.epochs, "sentences") as shown:
        model.train(_Sentences(path, shown.add), total_examples=sentences, epochs=options.epochs)
    return model.wv


def save(vectors, manifest: dict, output: Path) -> None:
    """Writes the folder beside the output and moves it there once it is whole."""
    with scratch_beside(output) as building:
        vectors.save_word2vec_format(str(building / VECTORS_FILE), binary=True)
        text = json.dumps(manifest, indent=2, ensure_ascii=False)
        (building / MANIFEST).write_text(text + "\n", encoding="utf-8")
        publish(building, output)


if __name__ == "__main__":
    sys.exit(main())
