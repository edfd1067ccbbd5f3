"""Makes SPScore-zh's static vectors of words and characters, embedded once by an encoder.

examples:
  # two tables, one with lists; 90,000 words take a quarter of an hour on two cores
  hf download BAAI/bge-small-zh-v1.5
  python research/make_vectors.py --input corpus.parquet:text \\
      --input translations.parquet:translations_zh --encoder BAAI/bge-small-zh-v1.5 \\
      --output models/vectors

SPScore-zh reads the package's table. To use another table, put it in that one's place and fit the
metric again.

The encoder reads the most frequent words of the tables, cut by jieba, and every character, each by
itself. The mean of its token states is centred, reduced by principal components weighted by the
square root of frequency, and rounded to 8 bits. A word's weight is a / (a + its share of the
corpus).
"""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path

import numpy as np

from gaixie.research.fitting.model_folder import new_folder
from gaixie.research.ratings.tables import add_places, read_groups
from gaixie.udfs.command_line import make_parser, run_command, say
from gaixie.udfs.meaning.vectors import MANIFEST, write_table
from gaixie.udfs.storage.progress import Progress
from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.segmenters.jieba import JiebaSegmenter

LONGEST_WORD = 12
BATCH_ROWS = 20_000
WORDS_AT_ONCE = 10_000
FITTED_WORDS = 60_000
"""The principal components are computed from this many of the most frequent words."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the job. Returns 0, or 2 after one line on standard error where it cannot be done."""
    parser = make_parser("make_vectors.py", __doc__)
    add = parser.add_argument
    add_places(parser)
    add("--encoder", required=True, metavar="MODEL", help="a folder or a cached name")
    add("--licence", default="the encoder's", help="what the manifest says of the licence")
    add("--words", type=int, default=90_000, metavar="N", help="most frequent words (90,000)")
    add("--dimensions", type=int, default=64, metavar="D", help="of a vector (64)")
    add("--rarity", type=float, default=1e-3, metavar="A", help="in a / (a + share) (0.001)")
    return run_command("make_vectors", partial(run, parser.parse_args(argv)))


def run(options: argparse.Namespace) -> None:
    """Counts and embeds the words, reduces the vectors, and writes the table."""
    from gaixie.udfs.metrics.encoder import Encoder

    with new_folder(options.output, MANIFEST, options.overwrite) as building:
        encoder = Encoder(options.encoder)
        counts = count_words(options.input)
        words = vocabulary(counts, options.words)
        if len(words) <= options.dimensions:
            raise ValueError(f"{len(words)} words are too few for {options.dimensions} dimensions")
        say(f"{len(counts):,} distinct words, {len(words):,} rows")
        frequency = np.array([counts[word] for word in words], float)
        vectors = reduce(embed(encoder, words), frequency, options.dimensions)
        share = (frequency + 0.5) / sum(counts.values())
        weights = options.rarity / (options.rarity + np.append(share, 0.0))
        card = {"encoder": options.encoder, "licence": options.licence}
        card["inputs"] = [f"{path.name}:{column}" for path, column in options.input]
        card |= {"most_words": options.words, "rarity": options.rarity}
        table = write_table(building, words, vectors, weights, **card)
    print(f"{options.output}: {table.digest}")


def count_words(inputs: Sequence[tuple[Path, str]]) -> Counter[str]:
    """Counts the words of columns."""
    counts: Counter[str] = Counter()
    segmenter = JiebaSegmenter()
    texts = chain.from_iterable(group for given in inputs for group in read_groups(*given))
    while batch := list(islice(texts, BATCH_ROWS)):
        for words in segmenter.cut([normalise(text) for text in batch]):
            counts.update(words)
    return counts


def vocabulary(counts: Counter[str], most: int) -> list[str]:
    """Returns the most frequent words that have a letter, digit or Han character, then every
    single character."""
    words = [word for word, _ in counts.most_common() if len(word) <= LONGEST_WORD]
    words = [word for word in words if any(character.isalnum() for character in word)]
    characters = {c for word in words for c in word if c.isalnum()}
    kept = words[:most]
    return [*kept, *sorted(characters - set(kept), key=lambda c: (-counts[c], c))]


def embed(encoder, words: list[str]) -> np.ndarray:
    """Returns each word's mean token state, without special tokens: float32, (words, width)."""
    vectors = np.zeros((len(words), encoder.network.config.hidden_size), np.float32)
    with Progress("embedding", len(words), "words") as shown:
        for start in range(0, len(words), WORDS_AT_ONCE):
            states = encoder.token_embeddings(words[start : start + WORDS_AT_ONCE])
            for row in range(len(states.offsets) - 1):
                own = states[row][1:-1]
                if len(own):
                    vectors[start + row] = own.mean(0).cpu().numpy()
            shown.add(len(states.offsets) - 1)
    return vectors


def reduce(vectors: np.ndarray, frequency: np.ndarray, dimensions: int) -> np.ndarray:
    """Centres the vectors and projects them on their principal components.

    Returns unit vectors: float32, (words, dimensions).
    """
    rows = slice(0, FITTED_WORDS)
    weight = np.sqrt(frequency[rows] + 1)
    vectors = _unit(vectors)
    vectors = _unit(vectors - np.average(vectors[rows], axis=0, weights=weight).astype(np.float32))
    weighted = vectors[rows] * np.sqrt(weight / weight.sum())[:, None]
    _, axes = np.linalg.eigh(weighted.T @ weighted)
    return _unit(vectors @ axes[:, ::-1][:, :dimensions].astype(np.float32))


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-6)


if __name__ == "__main__":
    sys.exit(main())
