"""Trains a model to restore plain sentences that were shuffled and masked (denoising).

    masking     spans of a Poisson length hide a share of the tokens, each behind one <mask>
    shuffling   chunks of a few tokens move by a few places

Source: BART (Lewis et al. 2020), text infilling; the shuffle: Lample et al. 2018, section 2.3, with
chunks instead of words. Denoising precedes the stages of pairs. In it, a model assembled from an
encoder (training/modeling/warm_start.py) learns to attend to its source and to write sentences.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gaixie.training.data.corpus import COLUMNS, Corpus, RowGroup, parquet_row_groups, read_rows
from gaixie.training.modeling.vocabulary import MASK
from gaixie.training.settings import DenoisingSettings, Noise
from gaixie.udfs.storage import storage
from gaixie.udfs.text.splits import SPLITS, splits_of

CHUNK = 3
"""Mean tokens of a chunk that the shuffle moves."""


def add_noise(settings: Noise, ids: Sequence[int], seed: int) -> list[int]:
    """Returns the noisy tokens of a sentence, without special tokens."""
    random = np.random.default_rng(seed)
    tokens = np.asarray(ids)
    if settings.shuffle > 1 and len(tokens):
        tokens = tokens[_shuffled(len(tokens), settings.shuffle, random)]
    hidden = _hidden(len(tokens), settings.mask, settings.span, random)
    first = hidden & ~np.roll(hidden, 1)
    if len(hidden):
        first[0] = hidden[0]
    return np.where(hidden, MASK, tokens)[~hidden | first].tolist()


def _shuffled(tokens: int, places: float, random: np.random.Generator) -> np.ndarray:
    """Returns the tokens' original places in their shuffled order, shape (tokens,)."""
    sizes = 1 + random.poisson(CHUNK - 1, tokens)
    chunk = np.repeat(np.arange(tokens), sizes)[:tokens]
    key = np.arange(tokens) + random.uniform(0, places, tokens)
    return np.argsort(key[chunk], kind="stable")


def _hidden(tokens: int, share: float, span: float, random: np.random.Generator) -> np.ndarray:
    """Returns which tokens are hidden, shape (tokens,); since spans may overlap, at most the given
    share."""
    hidden = np.zeros(tokens, bool)
    left = round(share * tokens)
    while left > 0:
        size = min(1 + random.poisson(span - 1) if span > 1 else 1, left)
        start = random.integers(tokens)
        hidden[start : start + size] = True
        left -= size
    return hidden


class Sentences(Corpus):
    """Plain sentences instead of pairs: both sides are the same sentence.

    corpus: if settings.pairs is set, its training pairs provide sentences too. Its shares decide
    which plain sentences are held out. The sentences of its held-out pairs are never read.
    """

    def __init__(self, corpus: Corpus, settings: DenoisingSettings):
        self.uri = ", ".join([*settings.sentences, *([corpus.uri] if settings.pairs else [])])
        self.name = f"sentences of {self.uri}"
        self.shares, self.split_seed = corpus.shares, corpus.split_seed
        self.is_split, self.is_noisy = False, True
        self._corpus = corpus
        self._plain: dict[str, str] = {}
        """The column of each file of plain sentences."""
        for path, column in settings.sentences.items():
            files = [path]
            if not path.endswith(".parquet"):
                listed = [file.uri for file in storage.list_files(path)]
                files = sorted(uri for uri in listed if uri.endswith(".parquet"))
            if not files:
                raise FileNotFoundError(f"denoising.sentences: {path}: no Parquet file in it")
            self._plain |= dict.fromkeys(files, column)
        self._of_pairs = settings.pairs

    def groups(self, stage: int, split: str = "train") -> list[RowGroup]:
        """Returns the row groups of all sentences; a row group of pairs counts its pairs."""
        groups = [
            group
            for uri, column in self._plain.items()
            for group in parquet_row_groups(uri, [column])
        ]
        if self._of_pairs:
            stages = [number for number in (0, 1, 2, 3) if self._corpus.has(number)]
            groups += [g for number in stages for g in self._corpus.groups(number, split)]
        return groups

    def read(self, group: RowGroup, split: str, columns: Sequence[str] = COLUMNS) -> pa.Table:
        """Returns the distinct sentences of a row group that belong to a split, the same text on
        both sides."""
        if column := self._plain.get(group.uri):
            text = read_rows(group, [column])[column].cast(pa.string())
            text = text.filter(pc.greater(pc.utf8_length(text), 0)).combine_chunks()
            if not text:
                return pa.table({"source": text, "paraphrase": text})
            split_of = splits_of(text, self.shares, self.split_seed)
            text = text.filter(pa.array(split_of == SPLITS.index(split)))
        else:
            pairs = self._corpus.read(group, split)
            chunks = [chunk for name in COLUMNS for chunk in pairs[name].chunks]
            text = pa.chunked_array(chunks, pa.string())
        text = pc.unique(text)
        return pa.table(dict.fromkeys([*dict.fromkeys([*COLUMNS, *columns])], text))
