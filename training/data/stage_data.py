"""Streams the pairs of one stage of training to any number of ranks, in batches of like length.

    corpus = Corpus("s3://bucket/gaixie/releases/1.0")       or ROOT/runs/RUN_ID
    stream = StageStream(corpus, stage=1, settings=StreamSettings(batch_size=256), rank=0, world=8)
    for batch in stream.batches(): …          # never ends; stage_loader.py makes tensors of them
    corpus.held_out(1, "validation", 2_000)   # never among the batches

There is one global list of batches. Seed, stage and epoch alone decide how files, row groups and
pairs are shuffled:

    epoch → a permutation of the row groups, cut into blocks of about block_rows pairs
    block → a permutation of its training pairs, without the remainder that fills no batch, sorted
            by length (characters of the longer sentence) and cut into batches; these are permuted

Every rank walks this list and takes its stripe of every batch, ``pairs[rank::world]``; each of a
rank's n worker processes takes every n-th batch. So all ranks have the same number of batches,
without messages between them and without counting first. Two ranks see the same as one rank with
batches of the same size. A position is three numbers, (epoch, block, batch), for any number of
ranks, and resuming means reading one block. The price: every worker reads every block, in a thread
while it serves the previous one. Tokens come from files that are made once, see token_files.py;
without these, batches are texts.

A stage of training is one stage of the run or release, or several that are shuffled together: see
StreamSettings.curriculum.

A pair's split depends on its group, or on its source if it has none (udfs/text/splits.py). A
release that was split keeps its splits. PairSettings says which training pairs count, and how
often.

A release mixes its origins in every file. In a run each file has one origin, so a block of a run
may have one origin too.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Event
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gaixie.training.data.choosing import CHANGE, UNTOLD, choose, columns_of, degree_of
from gaixie.training.data.corpus import COLUMNS, Corpus, RowGroup, random_of
from gaixie.training.data.token_files import TokenFiles, Tokens
from gaixie.training.settings import StreamSettings


class Position(NamedTuple):
    """The position of the next batch, the same on all ranks."""

    epoch: int = 0
    block: int = 0
    batch: int = 0


START = Position()


class Batch(NamedTuple):
    """One rank's stripe of a batch."""

    next: Position
    pairs: int
    """Number of pairs in the whole batch, over all ranks."""
    source: list[Any]
    """Texts, or the ids of their tokens if these are in files."""
    paraphrase: list[Any]
    options: dict[str, list[int]]
    """Options of PairEncoder for each pair: its ``degree`` (0: not told) and the seed of its
    ``noise``."""
    lengths: np.ndarray | None = None
    """Tokens of source and paraphrase of the whole batch, shape (pairs, 2), if these are in
    files."""


class Block(NamedTuple):
    """The training pairs that are shuffled together."""

    table: pa.Table
    batches: list[np.ndarray]
    """Rows of each batch."""
    texts: list[pa.Table]
    """All pairs of each row group that was read, in the order of the table's column ``row``."""
    tokens: Tokens | None = None
    lengths: np.ndarray | None = None
    """Number of each row's tokens."""


class StageStream:
    """One rank's batches of one stage of training; the module docstring defines their order.

    stage: its place in settings.curriculum, from 1. Raises ValueError if batches do not divide
    among the ranks, or if the stage is too small for one batch.
    """

    def __init__(
        self,
        corpus: Corpus,
        stage: int,
        settings: StreamSettings,
        rank: int = 0,
        world: int = 1,
        tokens: TokenFiles | None = None,
    ):
        if settings.batch_size % world:
            pairs = settings.batch_size
            raise ValueError(f"batch_size: {pairs} pairs cannot be divided among {world} ranks")
        if not 1 <= stage <= len(settings.curriculum):
            raise ValueError(f"stage {stage}: the curriculum has {len(settings.curriculum)}")
        self.corpus, self.stage, self.settings = corpus, stage, settings
        self.rank, self.world, self.tokens = rank, world, tokens
        earlier, self._stages = settings.curriculum[: stage - 1], settings.curriculum[stage - 1]
        self._groups = [group for number in self._stages for group in corpus.groups(number)]
        self.rows = sum(group.rows for group in self._groups)
        """Pairs in the row groups; if the corpus is not split, this includes validation and test
        pairs."""
        if self.rows < settings.batch_size:
            raise self._too_few(self.rows)
        self._earlier: list[RowGroup] = []
        if settings.mix:
            if stage == 1:
                raise ValueError(f"mix: {settings.mix:g}, but no stage is earlier than stage 1")
            self._earlier = [
                group for stages in earlier for k in stages for group in corpus.groups(k)
            ]

    def identity(self) -> dict[str, Any]:
        """Returns everything that decides the list of batches; a position is valid only under one
        identity."""
        corpus = self.corpus
        split = None if corpus.is_split else [*corpus.shares[1:], corpus.split_seed]
        given = {"data": corpus.name, "rows": self.rows, "stage": self.stage, "split": split}
        return given | self.settings.model_dump(mode="json")

    def held_out(self, split: str, rows: int) -> pa.Table:
        """Returns at most so many pairs of "validation" or "test", from each of its stages in
        proportion.

        Raises ValueError if a stage has none.
        """
        if len(self._stages) == 1:
            return self.corpus.held_out(self._stages[0], split, rows)
        parts = []
        for number in self._stages:
            share = sum(group.rows for group in self.corpus.groups(number)) / self.rows
            parts.append(self.corpus.held_out(number, split, max(round(rows * share), 1)))
        table = pa.concat_tables(parts).combine_chunks()
        return table.take(random_of(self.corpus.split_seed, self.stage).permutation(len(table)))

    def batches(
        self, start: Position = START, worker: int = 0, workers: int = 1
    ) -> Iterator[Batch]:
        """Yields batches from a position on, without end; each worker takes every workers-th.

        Raises ValueError if a whole epoch has no batch.
        """
        skipped, count = start.batch, 0
        turn = (self.rank * workers + worker) / (self.world * workers)
        with closing(ahead(self._walk(start, turn))) as walk:
            for epoch, number, block in walk:
                for index in range(skipped, len(block.batches)):
                    if count % workers == worker:
                        yield self._batch(block, Position(epoch, number, index + 1))
                    count += 1
                skipped = 0

    def _batch(self, block: Block, after: Position) -> Batch:
        """Returns this rank's stripe of a block's batch. after: the position after the batch."""
        whole, own = block.batches[after.batch - 1], slice(self.rank, None, self.world)
        rows = block.table.take(whole[own])
        options: dict[str, list[int]] = {}
        if self.settings.pairs.degrees:
            options["degree"] = rows["degree"].to_pylist()
        if self.corpus.is_noisy:
            random = random_of(self.settings.seed, self.stage, *after)
            options["noise"] = random.integers(2**63, size=len(whole))[own].tolist()
        if block.tokens is None or block.lengths is None:
            source, paraphrase = (rows[name].to_pylist() for name in COLUMNS)
            return Batch(after, len(whole), source, paraphrase, options)
        source, paraphrase = block.tokens.take(rows["row"].to_numpy())
        return Batch(after, len(whole), source, paraphrase, options, block.lengths[whole])

    def _walk(self, start: Position, turn: float) -> Iterator[tuple[int, int, Block] | None]:
        """Yields (epoch, number, block) from a position on, without end, and None where work may
        stop."""
        epoch, first = start.epoch, start.block
        while True:
            blocks = self._blocks(epoch)
            given = seen = 0
            for number in range(first, len(blocks)):
                block = self._block(epoch, number, blocks[number])
                seen, given = max(seen, len(block.table)), given + len(block.batches)
                for tokens in self.tokens.of(block.texts, turn) if self.tokens else ():
                    if tokens is None:
                        yield None
                        continue
                    table = block.table.drop_columns(COLUMNS)
                    lengths = tokens.lengths()[table["row"].to_numpy()]
                    block = Block(table, block.batches, [], tokens, lengths)
                yield epoch, number, block
            if first == 0 and not given:
                raise self._too_few(seen)
            epoch, first = epoch + 1, 0

    def pair_ids(self, after: Position) -> list[str]:
        """Returns the pair_ids of a batch, over all ranks. after: the position after the batch."""
        number, columns = after.block, (*COLUMNS, "pair_id")
        groups = self._blocks(after.epoch)[number]
        block = self._block(after.epoch, number, groups, columns)
        return block.table["pair_id"].take(block.batches[after.batch - 1]).to_pylist()

    def _too_few(self, rows: int) -> ValueError:
        return ValueError(
            f"{self.corpus.uri}: stage {self.stage} has too few training pairs for one batch: "
            f"{rows:,} of {self.settings.batch_size:,} in the largest block"
        )

    def _blocks(self, epoch: int) -> list[np.ndarray]:
        """Returns the places of each block's row groups, in the epoch's order."""
        order = random_of(self.settings.seed, self.stage, epoch).permutation(len(self._groups))
        rows = np.array([group.rows for group in self._groups])[order]
        blocks = max(round(self.rows / self.settings.block_rows), 1)
        block = (np.cumsum(rows) - rows) * blocks // self.rows
        return [order[block == number] for number in np.unique(block)]

    def _block(
        self, epoch: int, number: int, groups: np.ndarray, columns: Sequence[str] = COLUMNS
    ) -> Block:
        """Returns a block without its tokens."""
        random = random_of(self.settings.seed, self.stage, epoch, number)
        pairs = self.settings.pairs
        columns = [*dict.fromkeys([*columns, *columns_of(pairs)])]
        texts: list[pa.Table] = []
        parts = [self._read(self._groups[group], columns, texts) for group in groups]
        table = choose(pairs, pa.concat_tables(parts), random)
        if self._earlier:
            mix = self.settings.mix
            rows = round(len(table) * mix / (1 - mix))
            table = pa.concat_tables([table, self._draw(rows, random, columns, texts)])
        table = table.combine_chunks()
        if pairs.degrees:
            degree = degree_of(*(table[name].to_numpy() for name in CHANGE))
            told = random.random(len(table)) >= UNTOLD
            table = table.append_column("degree", pa.array(np.where(told, degree, 0)))
        source, paraphrase = (pc.utf8_length(table[name]).to_numpy() for name in COLUMNS)
        return Block(
            table, cut_batches(source, paraphrase, self.settings.batch_size, random), texts
        )

    def _read(self, group: RowGroup, columns: Sequence[str], texts: list[pa.Table]) -> pa.Table:
        """Returns the training pairs of a row group with their numbers in texts; adds them to
        texts."""
        table = self.corpus.read(group, "train", columns)
        first = sum(map(len, texts))
        texts.append(table.select(COLUMNS))
        return table.append_column("row", pa.array(np.arange(first, first + len(table))))

    def _draw(
        self, rows: int, random: np.random.Generator, columns: Sequence[str], texts: list[pa.Table]
    ) -> pa.Table:
        """Draws so many chosen pairs of earlier stages, or all if there are fewer, from few row
        groups."""
        sizes = np.array([group.rows for group in self._earlier])
        parts: list[pa.Table] = []
        for group in random.choice(len(sizes), len(sizes), replace=False, p=sizes / sizes.sum()):
            table = self._read(self._earlier[group], columns, texts)
            parts.append(choose(self.settings.pairs, table, random))
            if sum(map(len, parts)) >= rows:
                break
        table = pa.concat_tables(parts)
        return table.take(random.permutation(len(table))[:rows])


def cut_batches(
    source: np.ndarray, paraphrase: np.ndarray, batch_size: int, random: np.random.Generator
) -> list[np.ndarray]:
    """Returns the rows of each batch; source, paraphrase: characters of each row's sentences.

    The rows that fill no batch are drawn before the rows are sorted by length.
    """
    rows = random.permutation(len(source))[: len(source) // batch_size * batch_size]
    rows = rows[np.argsort(np.maximum(source, paraphrase)[rows], kind="stable")]
    batches = rows.reshape(-1, batch_size)
    return [batches[index] for index in random.permutation(len(batches))]


Item = TypeVar("Item")


def ahead(items: Iterator[Item | None]) -> Generator[Item, None, None]:
    """Yields the items that are not None, without end, making each in a thread while the last is
    used.

    Once this is closed, the thread ends at the next item or None. An error comes in place of its
    item.
    """
    stopped = Event()

    def make() -> Item | None:
        return next(item for item in items if item is not None or stopped.is_set())

    pool = ThreadPoolExecutor(1)
    try:
        made = pool.submit(make)
        while True:
            item = made.result()
            assert item is not None
            made = pool.submit(make)
            yield item
    finally:
        stopped.set()
        pool.shutdown()
