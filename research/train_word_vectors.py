"""Trains word vectors (word2vec) on the sentences of a corpus, for the metric WEEM4PG.

examples:
  # a column of a table
  python research/train_word_vectors.py --input corpus.parquet:text --output models/word-vectors

  # plain text, one sentence per line, cut by an LTP model; WEEM4PG must then use that model too
  python research/train_word_vectors.py --input corpus.txt --segmenter ltp:models/ltp-legacy \\
      --output models/word-vectors

  # a large corpus in less time; figures then differ at every run
  python research/train_word_vectors.py --input corpus.parquet --workers 8 \\
      --output models/word-vectors

the vectors then serve the metric WEEM4PG: vectors=models/word-vectors

Sentences are normalised as everywhere in this project, cut by the segmenter that WEEM4PG will use,
and lower-cased. Empty sentences are ignored. Writes

    OUTPUT/vectors.bin     word2vec's binary format, the most frequent words first
    OUTPUT/manifest.json   settings, counts, segmenter, versions

With one worker, the default, the same sentences, settings and versions give the same bytes. Several
workers are faster, but no two of their runs agree.

Source: Mikolov et al. 2013, *Distributed Representations of Words and Phrases*; gensim trains
skip-grams.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from functools import partial
from importlib.metadata import version
from itertools import chain, islice
from pathlib import Path
from typing import Any

from gaixie.research.fitting.sentences import read_groups, split_column
from gaixie.udfs.command_line import make_parser, positive, run_command, say
from gaixie.udfs.metrics.word_vectors import VECTORS_FILE
from gaixie.udfs.storage.model_folder import check_output, publish, scratch_beside
from gaixie.udfs.storage.progress import Progress
from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.segmenters import Segmenter, load_segmenter

NUMBERS = {
    "vector_size": (300, "dimensions of a vector"),
    "min_count": (5, "words that occur less often have no vector"),
    "epochs": (5, "passes over the sentences"),
    "seed": (0, "of the training"),
    "workers": (1, "threads; several give other vectors at every run"),
}
"""Settings of word2vec, each with its default and its help text."""
BATCH = 1_000


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the job. Returns 0, or 2 after one line on standard error for a user error."""
    return run_command("train_word_vectors", partial(run, _arguments(argv)), "nothing was written")


def run(options: argparse.Namespace) -> None:
    """Reads and cuts the sentences, trains the vectors, and saves them."""
    started = time.monotonic()
    segmenter = load_segmenter(options.segmenter)
    corpus, column = options.input
    output = check_output(options.output, VECTORS_FILE, options.overwrite)
    with tempfile.TemporaryDirectory(prefix="gaixie-") as work:
        cut = Path(work, "sentences")
        texts = chain.from_iterable(read_groups(corpus, column))
        sentences = islice(filter(None, map(normalise, texts)), options.limit)
        counts = write_words(sentences, segmenter, cut)
        if not counts["sentences"]:
            raise ValueError(f"{corpus}: no sentences, expected at least one")
        vectors = train(cut, counts["sentences"], options)
        manifest = {
            "input": f"{corpus}:{column}",
            "segmenter": f"{segmenter.name}-{segmenter.version}",
            "settings": {name: getattr(options, name) for name in NUMBERS},
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
        f"{options.output}: {len(vectors):,} words, {options.vector_size} dimensions, from"
        f" {counts['sentences']:,} sentences ({time.monotonic() - started:.0f} s)"
    )


def write_words(sentences: Iterable[str], segmenter: Segmenter, path: Path) -> dict[str, int]:
    """Writes one line of words per sentence, separated by spaces; returns counts of both."""
    counts = {"sentences": 0, "running_words": 0}
    wanted = iter(sentences)
    with path.open("w", encoding="utf-8") as file, Progress("cutting", None, "sentences") as shown:
        while batch := list(islice(wanted, BATCH)):
            for words in segmenter.cut(batch):
                words = [word.lower() for word in words if word != " "]
                file.write(" ".join(words) + "\n")
                counts["running_words"] += len(words)
            counts["sentences"] += len(batch)
            shown.add(len(batch))
    return counts


def train(path: Path, sentences: int, options: argparse.Namespace) -> Any:
    """Trains gensim's KeyedVectors. Raises ValueError if no word is frequent enough."""
    from gensim.models.word2vec import LineSentence, Word2Vec

    model = Word2Vec(sg=1, **{name: getattr(options, name) for name in NUMBERS})
    model.build_vocab(LineSentence(str(path)))
    if not len(model.wv):
        least = options.min_count
        raise ValueError(f"{options.input[0]}: no word occurs {least} times; lower --min-count")
    say(f"training on {sentences:,} sentences")
    model.train(LineSentence(str(path)), total_examples=sentences, epochs=options.epochs)
    return model.wv


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = make_parser("train_word_vectors", __doc__)
    add = parser.add_argument
    table = "a table of sentences and its column (text), or .txt with a sentence a line"
    add("--input", type=split_column, required=True, metavar="FILE[:COLUMN]", help=table)
    add("--output", type=Path, required=True, metavar="FOLDER", help="the folder to write")
    add("--overwrite", action="store_true", help="replace FOLDER if it holds word vectors")
    add("--segmenter", default="jieba", help="jieba (the default) or ltp:NAME_OR_FOLDER")
    add("--limit", type=positive, metavar="N", help="read only the first N sentences")
    for name, (default, says) in NUMBERS.items():
        kind = int if name == "seed" else positive
        option = f"--{name.replace('_', '-')}"
        add(option, type=kind, default=default, metavar="N", help=f"{says}; default: {default}")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
