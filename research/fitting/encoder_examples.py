"""What the pair encoder learns from before it sees a rated pair: judgements that others made.

An example is a pair (the source may be empty), values in [0, 1] for some tasks, and, where someone
marked errors in the paraphrase, their spans in characters.
"""

from __future__ import annotations

import difflib
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq
from pydantic import Field

from gaixie.research.fitting.negatives import CORRUPTIONS, Tagged, make_negatives
from gaixie.udfs.storage.settings import Strict
from gaixie.udfs.text.normalise import normalise

Span = tuple[int, int]


@dataclass
class Example:
    source: str
    paraphrase: str
    targets: dict[str, float]
    spans: list[Span] | None = None
    """Where something is wrong in the paraphrase; None where nobody looked."""
    weight: float = 1.0


class PairSet(Strict):
    """A TSV of sentence pairs with a label."""

    path: str
    task: str
    columns: tuple[int, int, int] = (0, 1, 2)
    header: bool = False
    scale: float = 1.0
    limit: int | None = None
    both_ways: bool = False
    weight: float = 1.0


class Sentences(Strict):
    path: str
    column: str = "text"
    limit: int = 6000


class Phase(Strict):
    epochs: int = Field(1, ge=1)
    learning_rate: float = Field(gt=0)
    batch_tokens: int = Field(2048, ge=128)
    negatives_per_pair: float = Field(0.0, ge=0)
    human_pairs: int = Field(0, ge=0)


class EncoderConfig(Strict):
    """conf/pair_encoder.yaml; what each setting means stands there."""

    encoder: str
    seed: int = 0
    longest: int = 150
    note: str = ""
    """For the card."""
    sets: list[PairSet] = Field(default=[])
    mlqe: str | None = None
    esa: str | None = None
    esa_held_out: float = Field(0.25, ge=0, lt=1)
    grammar: str | None = None
    corrections: str | None = None
    translations: str | None = None
    translation_pairs: int = 6000
    sentences: Sentences | None = None
    first: Phase
    second: Phase

    def paths(self) -> list[str]:
        """The files of the sets, relative to the data folder."""
        others = (self.mlqe, self.esa, self.grammar, self.corrections, self.translations)
        plain = self.sentences.path if self.sentences else None
        return [*(data_set.path for data_set in self.sets), *filter(None, (*others, plain))]


@dataclass
class Reader:
    """Reads the sets of a config. banned: sentences that no example may hold (those of rated pairs)."""

    config: EncoderConfig
    folder: Path
    banned: set[str]
    tag: Callable[[str], Tagged]
    rng: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.config.seed)

    def examples(self) -> list[Example]:
        """Every example, shuffled."""
        config = self.config
        examples = [example for data_set in config.sets for example in self._pairs(data_set)]
        if config.grammar:
            examples += self._grammar(config.grammar)
        if config.corrections:
            examples += self._corrections(config.corrections)
        if config.mlqe:
            examples += self._post_edits(config.mlqe)
        if config.esa:
            examples += self._judged_translations(config.esa)
        plain = self._plain()
        if config.translations and plain:
            examples += self._made_from_translations(config.translations, plain)
        examples += self._made_from_sentences(plain)
        examples = [example for example in map(self._tidy, examples) if example]
        self.rng.shuffle(examples)
        return examples

    def _tidy(self, example: Example) -> Example | None:
        longest = self.config.longest
        example.source, texts = normalise(example.source), example.paraphrase
        example.paraphrase = normalise(texts)
        if example.spans and example.paraphrase != texts:
            example.spans = None  # they count the characters of another text
        pair = example.source, example.paraphrase
        if not pair[1] or self.banned & set(pair) or max(map(len, pair)) > longest:
            return None
        return example

    def _rows(self, path: str, columns: int, header: bool = False) -> list[list[str]]:
        lines = (self.folder / path).read_text(encoding="utf-8").split("\n")[header:]
        rows = [line.split("\t") for line in lines]
        return [row for row in rows if len(row) >= columns]

    def _pairs(self, pairs: PairSet) -> Iterator[Example]:
        a, b, label = pairs.columns
        rows = self._rows(pairs.path, max(pairs.columns) + 1, pairs.header)
        if pairs.limit is not None:
            self.rng.shuffle(rows)
            rows = rows[: pairs.limit]
        for row in rows:
            try:
                target = {pairs.task: float(row[label]) / pairs.scale}
            except ValueError:
                continue  # an empty label
            yield Example(row[a], row[b], target, weight=pairs.weight)
            if pairs.both_ways:
                yield Example(row[b], row[a], target, weight=pairs.weight)

    def _grammar(self, path: str) -> Iterator[Example]:
        for _, sentence, error, *_ in self._rows(path, 3):
            yield Example("", sentence, {"correct": 1.0 - float(error)})

    def _corrections(self, path: str) -> Iterator[Example]:
        for _, wrong, right, *_ in self._rows(path, 3):
            wrong, right = normalise(wrong), normalise(right)
            if right and wrong != right and right != "没有错误":
                spans = differences(right, wrong)
                yield Example(right, wrong, {"correct": 0.0}, spans)
                yield Example("", wrong, {"correct": 0.0}, spans)
                yield Example(wrong, right, {"correct": 1.0}, [])
                yield Example("", right, {"correct": 1.0}, [])

    def _post_edits(self, path: str) -> Iterator[Example]:
        for line in (self.folder / path).read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            edited = row["pe_zh"].replace(" ", "")
            yield Example(edited, row["mt_zh"], {"quality": row["da_mean"] / 100})
            if self.rng.random() < 0.3:
                yield Example(row["mt_zh"], edited, {"quality": 0.9})

    def _judged_translations(self, path: str) -> Iterator[Example]:
        held_out = held_out_documents(self.folder / path, self.config)
        for texts in read_segments(self.folder / path):
            if texts[0]["document"] in held_out:
                continue
            texts = sorted(texts, key=lambda text: -text["score"])
            for text in texts:
                best = [other for other in texts[:5] if other["text"] != text["text"]]
                spans = [
                    (s["start_i"], s["end_i"]) for s in text["spans"] if s["start_i"] != "missing"
                ]
                for other in self.rng.sample(best, min(2, len(best))):
                    targets = {"quality": text["score"] / 100}
                    yield Example(other["text"], text["text"], targets, spans, 1.5)

    def _plain(self) -> list[str]:
        if not self.config.sentences:
            return []
        path = self.folder / self.config.sentences.path
        column = pq.read_table(path, columns=[self.config.sentences.column]).column(0)
        texts = [text for text in column.to_pylist() if text and 15 <= len(text) <= 90]
        self.rng.shuffle(texts)
        return texts

    def _made_from_translations(self, path: str, plain: list[str]) -> Iterator[Example]:
        lists = pq.read_table(self.folder / path, columns=["translations_zh"]).column(0).to_pylist()
        self.rng.shuffle(lists)
        left = self.config.translation_pairs
        for texts in lists:
            texts = [text for text in map(normalise, texts) if 12 <= len(text) <= 100]
            if left <= 0:
                return
            if len(texts) < 4 or self.banned.intersection(texts):
                continue
            source, paraphrase = self.rng.sample(texts, 2)
            if not _alike(source, paraphrase):
                continue
            left -= 1
            yield Example(source, paraphrase, {"faithful": 0.9, "natural": 0.9}, [])
            for _ in range(2):
                example = self._corrupted(source, paraphrase, self.rng.choice(plain), left)
                if example:
                    yield example

    def _made_from_sentences(self, plain: list[str]) -> Iterator[Example]:
        limit = self.config.sentences.limit if self.config.sentences else 0
        for number, text in enumerate(map(normalise, plain[:limit])):
            example = self._corrupted(text, text, plain[-number - 1], number)
            if example and self.rng.random() < 0.5:
                example.source = ""
                example.targets.pop("faithful", None)
                example.targets.setdefault("natural", 1.0)
                if example.targets["natural"] == 1:
                    example.spans = None
            if example:
                yield example
            if number % 2:
                yield Example("", text, {"natural": 1.0}, [])

    def _corrupted(self, source: str, paraphrase: str, other: str, seed: int) -> Example | None:
        # What only reading tells needs the most examples.
        rare = ("negation_inserted", "roles_swapped", "name_changed", "number_changed", "edit")
        kind = self.rng.choice([*CORRUPTIONS, *rare, "characters_replaced", "unrelated"])
        name = kind if kind == "unrelated" else f"own_{kind}"
        text = make_negatives(source, paraphrase, other, self.tag, seed, [name]).get(name)
        if text is None:
            return None
        no_spans = ("unrelated", "words_shuffled", "first_half", "last_half", "repeated")
        spans = None if kind in no_spans else differences(paraphrase, normalise(text))
        return Example(source, text, dict(FAULTS[kind]), spans)


_BROKEN, _BOTH = {"natural": 0.0}, {"natural": 0.0, "faithful": 0.0}
_OTHER, _FLUENT = {"faithful": 0.0}, {"faithful": 0.0, "natural": 1.0}
FAULTS = {
    **dict.fromkeys(("edit", "two_edits", "repeated"), _BROKEN),
    **dict.fromkeys(("words_shuffled", "characters_replaced"), _BOTH),
    **dict.fromkeys(("unrelated", "number_changed", "name_changed", "clause_added"), _FLUENT),
    **dict.fromkeys(("first_half", "last_half", "clause_dropped", "roles_swapped"), _OTHER),
    **dict.fromkeys(("negation_inserted", "negation_dropped"), _OTHER),
}
"""What each corruption makes of a sentence: no longer natural, no longer faithful, or both."""


def differences(right: str, wrong: str) -> list[Span]:
    """Spans of wrong that differ from right; a deletion is marked on the character behind it."""
    matcher = difflib.SequenceMatcher(None, right, wrong, autojunk=False)
    return [
        (start, max(end, start + 1))
        for operation, _, _, start, end in matcher.get_opcodes()
        if operation != "equal"
    ]


def read_segments(path: Path) -> list[list[dict]]:
    """The judged translations of each segment."""
    segments: dict[int, list[dict]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        segments.setdefault(row["segment"], []).append(row)
    return list(segments.values())


def held_out_documents(path: Path, config: EncoderConfig) -> set[str]:
    """Documents of the judged translations that nothing is trained on."""
    documents = sorted({texts[0]["document"] for texts in read_segments(path)})
    random.Random(config.seed).shuffle(documents)
    return set(documents[: int(len(documents) * config.esa_held_out)])


def _alike(source: str, paraphrase: str) -> bool:
    """Whether two translations of one sentence can be paraphrases: the lists hold junk too."""
    a, b = set(source), set(paraphrase)
    ratio = len(paraphrase) / len(source)
    return source != paraphrase and len(a & b) > 0.3 * len(a | b) and 0.6 < ratio < 1.6
