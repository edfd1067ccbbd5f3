"""Counts tokens and n-grams that a paraphrase shares with others, for BLEU, ROUGE, PINC and SARI.

A column of sentences becomes integers: code points, or numbers of words. An n-gram is named by the
name of its first n - 1 tokens and its last token, so that numpy counts all rows at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa

from gaixie.udfs.text.code_points import CodePoints, from_strings
from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.segmenters import load_segmenter

SacrebleuTokenizer = Literal["char", "zh", "13a"]
"""sacrebleu's tokenizers that n-gram metrics accept: characters; Han characters and otherwise
words; words and punctuation."""
Tokenizer = Literal["char", "zh", "13a", "zh-word"]
"""sacrebleu's tokenizers, and the segmenter's words of normalised text."""

ROWS_AT_ONCE = 10_000
_ROUGE_WORD = re.compile("[a-z0-9]+")
_SPACES = np.fromiter((chr(code).isspace() for code in range(0x3002)), bool)
"""Which code points are white space; none lies above."""


class Tokens(NamedTuple):
    """Several columns of tokenized sentences, of one length. Equal tokens are equal integers.

    values: uint32, the tokens of all columns.
    offsets: int64, shape (columns, rows + 1): row i of column c is
    ``values[offsets[c, i]:offsets[c, i + 1]]``.
    present: bool, shape (columns, rows): False where the sentence is null.
    """

    values: np.ndarray
    offsets: np.ndarray
    present: np.ndarray

    def columns(self, *chosen: int) -> Tokens:
        """Returns the tokens of some of the columns."""
        return Tokens(self.values, self.offsets[list(chosen)], self.present[list(chosen)])


class Overlap(NamedTuple):
    """What the first column of :class:`Tokens` shares with all others together, order by order.

    matches: int64, shape (rows, order): n-grams of the paraphrase that match, each clipped to its
    largest count in one of the others. distinct: the same shape, different n-grams of the
    paraphrase; shared: how many of them any other has.
    length: int64, shape (rows,), tokens of the paraphrase; closest: of the other that is closest in
    length, the shorter one of two.
    scored: bool, shape (rows,): the paraphrase and at least one other are there. All counts of a
    row that is not scored are 0.
    """

    matches: np.ndarray
    distinct: np.ndarray
    shared: np.ndarray
    length: np.ndarray
    closest: np.ndarray
    scored: np.ndarray


def tokenizer(name: str) -> Callable[[str], list[str]]:
    """Returns the function from a sentence to its tokens: a SacrebleuTokenizer, or ``word``.

    The former are sacrebleu's own code. ``word`` does what rouge_score does without a stemmer:
    runs of lower-cased ASCII letters and digits.
    """
    if name == "word":
        return lambda text: _ROUGE_WORD.findall(text.lower())
    tokenize = _sacrebleu_tokenizer(name)
    return lambda text: tokenize(text.rstrip()).split()


@cache
def _sacrebleu_tokenizer(name: str) -> Callable[[str], str]:
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(tokenize=name).tokenizer


def tokenizer_version(name: str, segmenter: str) -> str:
    """Returns the tokenizer's name for a signature, with the segmenter that cuts ``zh-word``."""
    return f"{name}-{segmenter_version(segmenter)}" if name == "zh-word" else name


def tokenize_columns(
    columns: Sequence[pa.Array], name: str, segmenter: str = "jieba", lower: bool = False
) -> Tokens:
    """Tokenizes Arrow string columns as :func:`tokenizer` does, or by ``zh-word``.

    segmenter: of zh-word. lower: in lower case. Raises UnicodeDecodeError for bytes that are not
    UTF-8.
    """
    texts = [text or "" for column in columns for text in column.to_pylist()]
    if lower and name != "zh-word":
        texts = [text.lower() for text in texts]
    if name == "char":
        values, ends = _characters(texts)
    else:
        by_word = name == "zh-word"
        tokens = words(texts, segmenter, lower) if by_word else [*map(tokenizer(name), texts)]
        numbers: dict[str, int] = {}
        flat = [numbers.setdefault(token, len(numbers)) for row in tokens for token in row]
        values, ends = np.array(flat, np.uint32), np.cumsum([0, *map(len, tokens)])
    rows = len(columns[0])
    return Tokens(
        values,
        np.stack([ends[k * rows : (k + 1) * rows + 1] for k in range(len(columns))]),
        np.stack([np.asarray(column.is_valid()) for column in columns]),
    )


def _characters(texts: list[str]) -> CodePoints:
    """Returns the code points of texts without white space."""
    values, ends = from_strings(texts)
    spaces = np.flatnonzero(_SPACES[np.minimum(values, len(_SPACES) - 1)])
    return CodePoints(np.delete(values, spaces), ends - np.searchsorted(spaces, ends))


def gram_counts(tokens: Tokens, order: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Counts the n-grams of each row by column, for some rows at a time and each n up to order.

    Yields (n - 1; the row of each n-gram; counts: int64, shape (columns, n-grams)).
    """
    columns, rows = tokens.present.shape
    for start in range(0, rows, ROWS_AT_ONCE):
        offsets = tokens.offsets[:, start : start + ROWS_AT_ONCE + 1]
        values = np.concatenate([tokens.values[own[0] : own[-1]] for own in offsets])
        values, size = values.astype(np.int64), int(values.max(initial=0)) + 1
        lengths = np.diff(offsets)
        sentence = np.repeat(np.arange(lengths.size), lengths.ravel())
        column, row = np.divmod(sentence, lengths.shape[1])
        name = row  # of the n-gram that begins here: equal for equal ones of one row
        for n in range(1, order + 1):
            starts = np.flatnonzero(sentence[: max(len(values) - n + 1, 0)] == sentence[n - 1 :])
            keys = name[starts] * size + values[starts + n - 1]
            _, first, names = np.unique(keys, return_index=True, return_inverse=True)
            name = np.zeros(len(values), np.int64)
            name[starts] = names
            cells = column[starts] * len(first) + names
            counts = np.bincount(cells, minlength=columns * len(first))
            yield n - 1, start + row[starts[first]], counts.reshape(columns, len(first))


def overlap(tokens: Tokens, order: int) -> Overlap:
    """Counts shared n-grams of orders 1 to ``order``. The first column is the paraphrase."""
    others = tokens.present[1:]
    scored = tokens.present[0] & others.any(axis=0)
    lengths = np.diff(tokens.offsets)
    length, lengths = lengths[0], lengths[1:]
    counts = np.zeros((3, len(scored), order), np.int64)
    for n, row, (own, *rest) in gram_counts(tokens, order):
        most = np.max(rest, axis=0, initial=0)
        for kind, values in enumerate((np.minimum(own, most), own > 0, (own > 0) & (most > 0))):
            np.add.at(counts[kind, :, n], row, values)
    counts *= scored[:, None]
    # The minimum of (distance, length) as one number; a null is farther than any other.
    far = np.int64(1) << 31
    keys = np.where(others, abs(lengths - length) * far + lengths, far * far - 1).min(axis=0)
    matches, distinct, shared = counts
    return Overlap(matches, distinct, shared, length * scored, keys % far * scored, scored)


# Words of the segmenters

_segmenter = lru_cache(maxsize=2)(load_segmenter)


def words(
    texts: Sequence[str | None], segmenter: str = "jieba", lower: bool = False
) -> list[list[str]]:
    """Returns the words of each normalised text without spaces; none for a null.

    segmenter: as for ``gaixie.udfs.text.segmenters.load_segmenter``, whose ValueError it raises.
    lower: in lower case.
    """
    cuts = _segmenter(segmenter).cut([normalise(text or "") for text in texts])
    rows = [[word for word in cut if word != " "] for cut in cuts]
    return [[word.lower() for word in row] for row in rows] if lower else rows


def segmenter_version(segmenter: str) -> str:
    """Returns a segmenter's name and version for a signature: ``jieba-rjieba-0.2.2``."""
    loaded = _segmenter(segmenter)
    return f"{loaded.name}-{loaded.version}"


def is_word(token: str) -> bool:
    """Tells whether a token has a letter or a digit, and so is not punctuation."""
    return any(map(str.isalnum, token))
