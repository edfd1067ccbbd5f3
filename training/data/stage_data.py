"""Streams the pairs of one stage of training to any number of ranks, in batches of like length.

    corpus = Corpus("s3://bucket/gaixie/releases/1.0")       or ROOT/runs/RUN_ID
    stream = StageStream(corpus, stage=1, settings=StreamSettings(batch_size=256), rank=0, world=8)
    for batch in stream.batches(): …          # never ends; stage_loader.py makes tensors of them
    corpus.held_out(1, "validation", 2_000)   # never among the batches

One global list of batches. Files, row groups and pairs are shuffled by seed, stage and epoch alone:

    epoch → a permutation of the row groups, cut into blocks of about block_rows pairs
    block → a permutation of its training pairs; what fills no batch is left out; the rest is sorted by
            length (characters of the longer sentence) and cut into batches; the batches are permuted

Every rank walks this list and takes its stripe of every batch, ``pairs[rank::world]``; every worker
process of a rank takes every so many-th batch. So all ranks have the same number of batches, with no
message between them and nothing counted before, two ranks see what one with batches of the same
size does, and a position is three numbers, (epoch, block, batch), for any number of ranks. To resume
is to read one block. The price: every worker reads every block, a small part of the work of
encoding it.

A stage of training is one stage of the run or release, or several that are shuffled together: see
StreamSettings.curriculum.

A pair's split depends on its group, or on its source where it has none (udfs/splits.py). A release that
was split keeps its splits. Which training pairs count, and how often, is PairSettings.

A release mixes its origins in every file. In a run each file has one origin, so a block of a run may
have one origin too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import AfterValidator, ConfigDict, Field, model_validator

from gaixie.training.data.corpus import COLUMNS, Corpus, RowGroup, random_of
from gaixie.udfs.io.settings import Strict

Stages = TypeVar("Stages", bound=Sequence[Sequence[int]])


def check_curriculum(curriculum: Stages) -> Stages:
    """The curriculum as it is. Raises ValueError for one that names no stage, or a stage twice."""
    data = [stage for stages in curriculum for stage in stages]
    if not data or not all(curriculum) or len({*data}) < len(data) or not {*data} <= {0, 1, 2, 3}:
        raise ValueError("expected lists of stages, each of 0 to 3 at most once")
    return curriculum


class PairSettings(Strict):
    """Which pairs a stage learns from, and how often in an epoch: a part of the section ``data``."""

    model_config = ConfigDict(frozen=True)

    min_meaning: float | None = Field(default=None, ge=0, le=1)
    """Judged meaning, as the run has it: pairs below it are passed over. Likewise:"""
    min_fluency: float | None = Field(default=None, ge=0, le=1)
    max_partners: int | None = Field(default=None, ge=1)
    """Pairs of a source in a block, drawn anew for each epoch; None: all."""
    weights: dict[str, Annotated[float, Field(ge=0)]] = Field(default={})
    """How often the pairs of an origin count: 2 is twice, 0.5 every other one by chance. Default: 1."""
    degrees: bool = False
    """Tell the model the degree of change of each pair, see degree_of, so that it can be asked for one."""

    def columns(self) -> list[str]:
        """What they need, beside source and paraphrase."""
        names = [name for name in FLOORS if getattr(self, f"min_{name}") is not None]
        names += CHANGE if self.degrees else ()
        return names + ["origin"] * bool(self.weights)

    def choose(self, table: pa.Table, random: np.random.Generator) -> pa.Table:
        """The pairs of a table that are above the floors, each as often as its origin counts."""
        for name in FLOORS:
            if (floor := getattr(self, f"min_{name}")) is not None:
                table = table.filter(pc.greater_equal(table[name], floor))
        if self.weights:
            weight = np.ones(len(table))
            for origin, value in self.weights.items():
                weight[pc.equal(table["origin"], origin).to_numpy()] = value
            times = np.floor(weight + random.random(len(table))).astype(int)
            table = table.take(np.repeat(np.arange(len(table)), times))
        if self.max_partners is not None:
            table = table.filter(pa.array(_partners(table["source"], random) < self.max_partners))
        return table


FLOORS = ("meaning", "fluency")
CHANGE = ("structure", "synonyms")
UNTOLD = 0.15
"""Share of the training pairs whose degree the model is not told, so that it can do without."""
DEGREE_EDGES = (0.08, 0.15, 0.22, 0.3)
"""Where degrees 2, 3, 4 and 5 begin."""


def degree_of(structure: np.ndarray, synonyms: np.ndarray) -> np.ndarray:
    """The degree of change, 1 to 5, of judged pairs: by the mean of the two judgements of change."""
    return 1 + np.searchsorted(DEGREE_EDGES, (structure + synonyms) / 2, side="right")


def _partners(source: pa.ChunkedArray, random: np.random.Generator) -> np.ndarray:
    """Of each row, how many rows of the same source come before it in a random order."""
    codes = pc.rank(source, tiebreaker="dense").to_numpy()
    order = random.permutation(len(codes))
    grouped = order[np.argsort(codes[order], kind="stable")]
    own = codes[grouped]
    first = np.concatenate([[True], own[1:] != own[:-1]])[: len(own)]
    starts = np.maximum.accumulate(np.where(first, np.arange(len(own)), 0))
    before = np.empty(len(codes), int)
    before[grouped] = np.arange(len(own)) - starts
    return before


class BatchSettings(Strict):
    """How the pairs of a stage are cut into batches: a part of conf/curriculum.yaml's ``batch``."""

    model_config = ConfigDict(frozen=True)

    max_characters: int | None = Field(default=None, ge=1)
    """Pairs × (longest source + longest paraphrase) of a batch over all ranks, in characters, which
    bounds its tokens with padding but for the two around each sentence and characters spelled in
    bytes. Long sentences then make smaller batches than batch_size, in steps of `multiple`; so many
    pairs that are longer still are a batch."""
    multiple: int = Field(default=8, ge=1)
    """With max_characters: what the pairs of every batch can be divided by."""
    mix: float = Field(default=0.0, ge=0, lt=1)
    """Share of the pairs that come from earlier stages, drawn anew for every block."""
    block_rows: int = Field(default=500_000, ge=1)
    """About how many pairs are in memory, and shuffled, at a time; a row group at least."""


class StreamSettings(BatchSettings):
    """What the batches of a stage depend on, beside the data."""

    batch_size: int = Field(default=64, ge=1)
    """Pairs of a batch over all ranks."""
    seed: int = Field(default=13, ge=0)
    curriculum: Annotated[tuple[tuple[int, ...], ...], AfterValidator(check_curriculum)] = (
        (1,),
        (2,),
        (3,),
    )
    """The stages of training in their order: each the stages of the data that it learns from."""
    pairs: PairSettings = PairSettings()

    @model_validator(mode="after")
    def _divides(self) -> StreamSettings:
        if self.batch_size % self.unit:
            raise ValueError(f"batch_size: {self.batch_size} is no multiple of {self.unit}")
        return self

    @property
    def unit(self) -> int:
        """What the pairs of every batch can be divided by."""
        return self.batch_size if self.max_characters is None else self.multiple


class Position(NamedTuple):
    """The batch that comes next, on all ranks."""

    epoch: int = 0
    block: int = 0
    batch: int = 0


START = Position()


class Batch(NamedTuple):
    """One rank's stripe of a batch."""

    next: Position
    pairs: int
    """How many pairs the whole batch has, over all ranks."""
    source: list[str]
    paraphrase: list[str]
    options: dict[str, list[int]]
    """What PairEncoder is told of each pair: its ``degree`` (0: not told) and the seed of its ``noise``."""


class StageStream:
    """The batches of one stage of training, as one rank sees them; the file's docstring has their order.

    stage: its place in settings.curriculum, from 1.

    Raises ValueError where batches do not divide among the ranks, and for a stage too small for one.
    """

    def __init__(
        self,
        corpus: Corpus,
        stage: int,
        settings: StreamSettings,
        rank: int = 0,
        world: int = 1,
    ):
        if settings.unit % world:
            name = "batch_size" if settings.max_characters is None else "multiple"
            raise ValueError(f"{name}: {settings.unit} pairs do not divide among {world} ranks")
        if not 1 <= stage <= len(settings.curriculum):
            raise ValueError(f"stage {stage}: the curriculum has {len(settings.curriculum)}")
        self.corpus, self.stage, self.settings = corpus, stage, settings
        self.rank, self.world = rank, world
        earlier, self._stages = settings.curriculum[: stage - 1], settings.curriculum[stage - 1]
        self._groups = [group for number in self._stages for group in corpus.groups(number)]
        self.rows = sum(group.rows for group in self._groups)
        """Pairs in the row groups; without splits of the corpus, validation and test among them."""
        if self.rows < settings.unit:
            raise self._too_few(self.rows)
        self._earlier: list[RowGroup] = []
        if settings.mix:
            if stage == 1:
                raise ValueError(f"mix: {settings.mix:g}, but no stage is earlier than stage 1")
            self._earlier = [
                group for stages in earlier for k in stages for group in corpus.groups(k)
            ]

    def identity(self) -> dict[str, Any]:
        """All that the list of batches depends on: a position means nothing under another identity."""
        corpus = self.corpus
        split = None if corpus.is_split else [*corpus.shares[1:], corpus.split_seed]
        given = {"data": corpus.name, "rows": self.rows, "stage": self.stage, "split": split}
        return given | self.settings.model_dump(mode="json")

    def held_out(self, split: str, rows: int) -> pa.Table:
        """At most so many pairs of "validation" or "test", of each of its stages in their proportion.

        Raises ValueError where a stage has none.
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
        """Batches from a position on, without end; of several workers, every workers-th.

        Raises ValueError where a whole epoch has no batch.
        """
        epoch, first, skipped = start
        count = 0
        while True:
            blocks = self._blocks(epoch)
            given = seen = 0
            for number in range(first, len(blocks)):
                table, batches = self._block(epoch, number, blocks[number])
                seen, given = max(seen, len(table)), given + len(batches)
                for index in range(skipped, len(batches)):
                    if count % workers == worker:
                        own = slice(self.rank, None, self.world)
                        rows = table.take(batches[index][own])
                        source, paraphrase = (rows[name].to_pylist() for name in COLUMNS)
                        after = Position(epoch, number, index + 1)
                        options: dict[str, list[int]] = {}
                        if self.settings.pairs.degrees:
                            options["degree"] = rows["degree"].to_pylist()
                        if self.corpus.noise is not None:
                            random = random_of(self.settings.seed, self.stage, *after)
                            seeds = random.integers(2**63, size=len(batches[index]))
                            options["noise"] = seeds[own].tolist()
                        yield Batch(after, len(batches[index]), source, paraphrase, options)
                    count += 1
                skipped = 0
            if first == 0 and not given:
                raise self._too_few(seen)
            epoch, first = epoch + 1, 0

    def pair_ids(self, after: Position) -> list[str]:
        """The pair_ids of a batch, over all ranks. after: the position behind it."""
        number, columns = after.block, (*COLUMNS, "pair_id")
        groups = self._blocks(after.epoch)[number]
        table, batches = self._block(after.epoch, number, groups, columns)
        return table["pair_id"].take(batches[after.batch - 1]).to_pylist()

    def _too_few(self, rows: int) -> ValueError:
        return ValueError(
            f"{self.corpus.uri}: stage {self.stage} has too few training pairs for one batch: "
            f"{rows:,} of {self.settings.unit:,} in the largest block"
        )

    def _blocks(self, epoch: int) -> list[np.ndarray]:
        """Places of the row groups of each block, in the epoch's order."""
        order = random_of(self.settings.seed, self.stage, epoch).permutation(len(self._groups))
        rows = np.array([group.rows for group in self._groups])[order]
        blocks = max(round(self.rows / self.settings.block_rows), 1)
        block = (np.cumsum(rows) - rows) * blocks // self.rows
        return [order[block == number] for number in np.unique(block)]

    def _block(
        self, epoch: int, number: int, groups: np.ndarray, columns: Sequence[str] = COLUMNS
    ) -> tuple[pa.Table, list[np.ndarray]]:
        """The training pairs of a block, and the rows of each of its batches."""
        random = random_of(self.settings.seed, self.stage, epoch, number)
        pairs = self.settings.pairs
        columns = [*dict.fromkeys([*columns, *pairs.columns()])]
        parts = [self.corpus.read(self._groups[group], "train", columns) for group in groups]
        table = pairs.choose(pa.concat_tables(parts), random)
        if self._earlier:
            mix = self.settings.mix
            rows = round(len(table) * mix / (1 - mix))
            table = pa.concat_tables([table, self._draw(rows, random, columns)])
        table = table.combine_chunks()
        if pairs.degrees:
            degree = degree_of(*(table[name].to_numpy() for name in CHANGE))
            told = random.random(len(table)) >= UNTOLD
            table = table.append_column("degree", pa.array(np.where(told, degree, 0)))
        source, paraphrase = (pc.utf8_length(table[name]).to_numpy() for name in COLUMNS)
        return table, cut_batches(source, paraphrase, self.settings, random)

    def _draw(self, rows: int, random: np.random.Generator, columns: Sequence[str]) -> pa.Table:
        """So many chosen pairs of earlier stages, or all where there are fewer, from few row groups."""
        sizes = np.array([group.rows for group in self._earlier])
        parts: list[pa.Table] = []
        for group in random.choice(len(sizes), len(sizes), replace=False, p=sizes / sizes.sum()):
            table = self.corpus.read(self._earlier[group], "train", columns)
            parts.append(self.settings.pairs.choose(table, random))
            if sum(map(len, parts)) >= rows:
                break
        table = pa.concat_tables(parts)
        return table.take(random.permutation(len(table))[:rows])


def cut_batches(
    source: np.ndarray,
    paraphrase: np.ndarray,
    settings: StreamSettings,
    random: np.random.Generator,
) -> list[np.ndarray]:
    """Rows of each batch; source, paraphrase: characters of each row's sentences.

    Which rows are left out as they fill no batch is drawn before the rows are sorted by length.
    """
    unit = settings.unit
    rows = random.permutation(len(source))[: len(source) // unit * unit]
    rows = rows[np.argsort(np.maximum(source, paraphrase)[rows], kind="stable")].reshape(-1, unit)
    bounds = [0]  # of the batches, in units
    if settings.max_characters is None:
        bounds = [*range(len(rows) + 1)]
    else:
        longest_source = longest_paraphrase = 0
        most = settings.batch_size // unit
        widths = zip(source[rows].max(1).tolist(), paraphrase[rows].max(1).tolist(), strict=True)
        for index, (a, b) in enumerate(widths):
            longest_source, longest_paraphrase = max(longest_source, a), max(longest_paraphrase, b)
            units = index - bounds[-1] + 1
            size = units * unit * (longest_source + longest_paraphrase)
            if units > 1 and (units > most or size > settings.max_characters):
                bounds.append(index)
                longest_source, longest_paraphrase = a, b
        bounds += [len(rows)] if len(rows) else []
    batches = [rows[a:b].ravel() for a, b in pairwise(bounds)]
    return [batches[index] for index in random.permutation(len(batches))]
