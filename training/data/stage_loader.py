"""Encodes a stage's batches as tensors in worker processes, and tracks the position in the stage.

stream = StageStream(Corpus(uri), stage=1, settings=StreamSettings(batch_size=256), rank=0, world=8)
loader = StageLoader(stream, PairEncoder(tokenizer), workers=2)
for batch in loader: …                    # never ends: epoch follows epoch
loader.state_dict()                       # where the run stands after the batch given last
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from gaixie.training.data.denoising import add_noise
from gaixie.training.data.stage_data import START, Position, StageStream
from gaixie.training.modeling.model import IGNORED
from gaixie.training.modeling.tokenizer import ENTITIES
from gaixie.training.settings import Noise

Encode = Callable[..., Any]
"""Encodes the sources and paraphrases of a batch, with Batch.options and lengths by name; runs in
the worker processes."""


class PairEncoder:
    """Encodes sources and paraphrases as padded tensors, with the entity table of each source.

    Tensors of int64, shape (pairs, longest): input_ids, attention_mask (0 for padding), labels
    (IGNORED for padding). places: int64, shape (labels,), the places of labels that are not padding
    in the flattened tensor. entities: a list of strings, see training/modeling/tokenizer.py; other
    tokenizers of transformers make none.

    max_length: tokens of a sentence; the rest is cut off. multiple_of: the longest is padded to a
    multiple of this, for tensor cores. noise: applied to the tokens of a source
    (training/data/denoising.py).
    """

    def __init__(
        self,
        tokenizer: Any,
        max_length: int = 256,
        multiple_of: int = 1,
        noise: Noise | None = None,
    ):
        self.tokenizer, self.max_length, self.multiple_of = tokenizer, max_length, multiple_of
        self.noise = noise

    def __call__(
        self,
        source: list[str],
        paraphrase: list[str],
        degree: Sequence[int] | None = None,
        noise: Sequence[int] | None = None,
    ) -> dict[str, Any]:
        """degree: each pair's degree of change; 0 or None tells none. noise: each source's seed."""
        batch = self._tokenized(source, paraphrase)
        tensors = self.tensors(batch["input_ids"], batch["labels"], degree, noise)
        return tensors | ({ENTITIES: batch[ENTITIES]} if ENTITIES in batch else {})

    def tokens(
        self, source: list[str], paraphrase: list[str]
    ) -> tuple[list[list[int]], list[list[int]]]:
        """Returns the ids of sources and paraphrases."""
        batch = self._tokenized(source, paraphrase)
        return batch["input_ids"], batch["labels"]

    def _tokenized(self, source: list[str], paraphrase: list[str]) -> Any:
        cut = {"truncation": True, "max_length": self.max_length}
        return self.tokenizer(source, text_target=paraphrase, return_attention_mask=False, **cut)

    def tensors(
        self,
        source: Sequence[Any],
        paraphrase: Sequence[Any],
        degree: Sequence[int] | None = None,
        noise: Sequence[int] | None = None,
    ) -> dict[str, torch.Tensor]:
        """Returns the tensors of sources and paraphrases given as ids. degree, noise: as for
        texts."""
        rows = source
        if noise is not None and self.noise is not None:
            pairs = zip(rows, noise, strict=True)
            rows = [[row[0], *add_noise(self.noise, row[1:-1], k), row[-1]] for row, k in pairs]
        if degree is not None:
            both = zip(rows, degree, strict=True)
            rows = [with_degree(self.tokenizer, row, number) for row, number in both]
        ids, mask = padded(rows, self.tokenizer.pad_token_id, self.multiple_of)
        labels, there = padded(paraphrase, IGNORED, self.multiple_of)
        places = there.flatten().nonzero().squeeze(1)
        return {"input_ids": ids, "attention_mask": mask, "labels": labels, "places": places}


def with_degree(tokenizer: Any, ids: Sequence[int], degree: int | None) -> list[int]:
    """Inserts the token of a degree of change after a source's first token; 0 or None inserts
    none."""
    return [ids[0], tokenizer.degree_id(degree), *ids[1:]] if degree else [*ids]


def padded(
    rows: Sequence[Sequence[int]], value: int, multiple_of: int = 1
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns rows padded on the right with value, and a mask: 1 for cells of a row, else 0."""
    lengths = np.array([len(row) for row in rows])
    width = -(-int(lengths.max(initial=0)) // multiple_of) * multiple_of
    mask = np.arange(width) < lengths[:, None]
    cells = np.full(mask.shape, value, np.int64)
    cells[mask] = np.concatenate([np.empty(0, np.int64), *rows])
    return torch.from_numpy(cells), torch.from_numpy(mask.astype(np.int64))


class StageLoader:
    """Yields one rank's batches, encoded in worker processes, and tracks the position after the
    last one.

    encode: None yields (sources, paraphrases) unchanged. workers: 0 encodes in this process.
    Iterate over a loader directly: accelerate's prepare would shard it a second time.
    """

    def __init__(
        self,
        stream: StageStream,
        encode: Encode | None = None,
        workers: int = 0,
        pin_memory: bool = False,
    ):
        self.stream, self.encode = stream, encode
        self.workers, self.pin_memory = workers, pin_memory
        self.position = START
        self.pairs = 0
        """Pairs yielded so far, over all ranks and epochs."""

    def __iter__(self) -> Generator[Any, None, None]:
        """Yields the batches after the last one; close() ends the worker processes."""
        batches = DataLoader(
            _Batches(self.stream, self.encode, self.position),
            batch_size=None,
            num_workers=self.workers,
            prefetch_factor=4 if self.workers else None,
            pin_memory=self.pin_memory,
            worker_init_fn=_end_quietly,
        )
        for item in batches:
            if isinstance(item, Exception):
                raise item
            batch, position, pairs = item
            self.position, self.pairs = Position(*position), self.pairs + pairs
            yield batch

    def state_dict(self) -> dict[str, Any]:
        """Returns plain values, the same on every rank and for any number of ranks."""
        identity = self.stream.identity()
        return {"position": [*self.position], "pairs": self.pairs, "identity": identity}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues where a loader of the same data and settings stood; raises ValueError for
        others."""
        for name, value in self.stream.identity().items():
            if (saved := state["identity"].get(name)) != value:
                raise ValueError(
                    f"the position was saved with {name} {saved}, but here it is {value}"
                )
        self.position, self.pairs = Position(*state["position"]), state["pairs"]


def _end_quietly(_: int) -> None:
    """Prepares a worker process for its end.

    A scheduler's SIGTERM reaches the whole group, as Ctrl-C does; the run ends its workers itself.
    If it stops while it fetches a batch, the worker's thread that hands batches over finds its
    connection broken; that needs no traceback.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    shown = sys.excepthook
    sys.excepthook = lambda kind, error, trace: (
        None if issubclass(kind, (ConnectionError, EOFError)) else shown(kind, error, trace)
    )


class _Batches(IterableDataset):
    """Yields (encoded batch, next position, pairs); an error that a user can fix is yielded as an
    item.

    DataLoader would pass on a worker's error with its whole trace as the message.
    """

    def __init__(self, stream: StageStream, encode: Encode | None, start: Position):
        self.stream, self.encode, self.start = stream, encode, start

    def __iter__(self) -> Iterator[Any]:
        process = get_worker_info()
        own = (process.id, process.num_workers) if process else (0, 1)
        try:
            for batch in self.stream.batches(self.start, *own):
                pair = batch.source, batch.paraphrase
                lengths = {} if batch.lengths is None else {"lengths": batch.lengths}
                encoded = self.encode(*pair, **batch.options, **lengths) if self.encode else pair
                yield encoded, batch.next, batch.pairs
        except (OSError, ValueError) as error:
            yield error
