"""Draws what the pair encoder learns from.

Pairs that say the same, pairs that do not, broken Chinese, ratings, and judgements that others
made. Each example has targets from 0 to 1 for some tasks of the encoder, and, where a program broke
the paraphrase, the spans that it changed.
"""

from __future__ import annotations

import difflib
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import rjieba

from gaixie.research.pair_encoder.broken import Breaker
from gaixie.research.pair_encoder.judged_edits import FILE as EDITS
from gaixie.research.pair_encoder.judged_edits import Judged, draw_edited, read_judged_edits
from gaixie.research.pair_encoder.judged_edits import held_out as edits_held_out
from gaixie.research.pair_encoder.ratings import HIGHEST, RATINGS, read_json_lines, read_ratings
from gaixie.udfs.paraphrase.edits import Edit, apply, fits
from gaixie.udfs.paraphrase.lexicon import lexical_edits, load

FLUENT_COUNTERPARTS = ("negation", "roles", "roles", "fact", "scope")
"""Fluent counterparts of a written group, and how often each is drawn."""
HELD_OUT = 8
"""One written group in so many is kept for the test."""
RATED = ("paraphrase_core.dev.jsonl", "paraphrase_core2.dev.jsonl", "written_rated.jsonl")
AGAIN = "paraphrase_core2.again.jsonl"
REWRITTEN_RATED = "rewritten_rated.jsonl"
QUESTIONS = ("afqmc.train.tsv", "lcqmc.dev.tsv", "oppo.dev.tsv")
FOLLOWS = {"entailed": 0.5, "neutral": 0.35, "contradicted": 0.15}
"""How much of a premise's meaning a statement keeps that follows from it, may be true, or cannot
be."""
LIKELY = 0.93
"""How sure it is that two good translations of one sentence say the same."""
OWN, LATER = 20_000, 30_000
"""Written groups from these numbers on were written here; counterparts came with the later ones."""
LONGEST = 110
"""Characters of a sentence; pairs with a longer one are left out."""
Span = tuple[int, int]


@dataclass
class Example:
    """A pair and what is known of it."""

    source: str
    paraphrase: str
    targets: dict[str, float]
    spans: list[Span] | None = None
    """Where the paraphrase is wrong; None where nobody looked."""
    worse: Example | None = None
    """Another paraphrase of the source, for which the ``rank`` task has to be lower."""
    rank: str = "same"


@dataclass
class Sets:
    """The sets of a folder, cut by group into what is learned and what is kept apart."""

    versions: list[list[str]]
    """Good translations of one sentence."""
    written: list[dict[str, Any]]
    broken: dict[int, dict[str, str]]
    rated: pd.DataFrame
    """All parts; only the rows of the part ``encoder`` are learned from."""
    exchanged: list[dict[str, Any]]
    """Sentences whose participants were exchanged (exchanged.jsonl), each with its ``wrong``."""
    rewritten: list[dict[str, Any]]
    """Free rewrites of a sentence, and as free ones that say something else (rewritten.jsonl)."""
    premises: list[dict[str, Any]]
    """What a sentence entails, what it leaves open, and what contradicts it (premises.jsonl)."""
    judged: list[Example]
    """Judgements that others made."""
    grammar: list[tuple[str, int]]
    """(sentence, 1 where it is right)."""
    edits: list[Judged] = field(default_factory=list)
    """Sentences whose edits were judged (judged_edits.tsv)."""
    test_edits: list[Judged] = field(default_factory=list)
    kept_written: list[dict[str, Any]] = field(default_factory=list)
    """Groups for the heads of tier full."""
    test_written: list[dict[str, Any]] = field(default_factory=list)
    test_exchanged: list[dict[str, Any]] = field(default_factory=list)
    test_rewritten: list[dict[str, Any]] = field(default_factory=list)
    test_premises: list[dict[str, Any]] = field(default_factory=list)


def load_sets(data: Path, versions: list[list[str]], own: Path) -> Sets:
    """Reads the sets. own: folder of what was written here. FileNotFoundError where a set is
    missing."""
    written = [
        row
        for path in (data / "written_groups.jsonl", own / "written_groups.jsonl")
        for row in read_json_lines(path)
    ]
    broken = {
        row["group"]: row
        for path in (data / "written_broken.jsonl", own / "written_broken.jsonl")
        for row in read_json_lines(path)
    }
    rated = read_ratings([*(data / name for name in RATED), own / REWRITTEN_RATED], data / AGAIN)
    test = {row["group"] for row in written if row["group"] in broken and held_out(row["group"])}
    kept_apart = rated["group"].isin({str(group) for group in test})
    rated.loc[kept_apart & (rated["part"] == "encoder"), "part"] = "test"
    unseen = rated[rated["part"] != "encoder"]
    banned = set(unseen["source"]) | set(unseen["paraphrase"])
    exchanged = read_json_lines(own / "exchanged.jsonl")
    for row in exchanged:
        row["wrong"] = 2 * row["roles"] + row["other"]  # three quarters are exchanged roles
    rewritten = read_json_lines(own / "rewritten.jsonl")
    premises = read_json_lines(own / "premises.jsonl")
    edits = read_judged_edits(own / EDITS, data, written)
    return Sets(
        edits=[row for row in edits if not edits_held_out(row.text) and row.text not in banned],
        test_edits=[row for row in edits if edits_held_out(row.text)],
        versions=[texts for texts in versions if not banned.intersection(texts)],
        written=[
            row for row in written if row["group"] not in test and not for_heads(row["group"])
        ],
        broken=broken,
        rated=rated,
        exchanged=[row for row in exchanged if not held_out(row["group"])],
        rewritten=[row for row in rewritten if not held_out(row["group"])],
        premises=[row for row in premises if not held_out(row["group"])],
        judged=[
            one
            for one in judgements_of_others(data)
            if not banned & {one.source, one.paraphrase}
            and max(len(one.source), len(one.paraphrase)) <= LONGEST
        ],
        grammar=grammar(data),
        kept_written=[
            row for row in written if row["group"] not in test and for_heads(row["group"])
        ],
        test_written=[row for row in written if row["group"] in test],
        test_exchanged=[row for row in exchanged if held_out(row["group"])],
        test_rewritten=[row for row in rewritten if held_out(row["group"])],
        test_premises=[row for row in premises if held_out(row["group"])],
    )


def held_out(group: int) -> bool:
    """Whether a written group is kept for the test."""
    return group % HELD_OUT == HELD_OUT - 1


def for_heads(group: int) -> bool:
    """Whether a written group is kept for the heads of tier full, which read what the encoder
    says."""
    return group >= LATER and group % HELD_OUT in (HELD_OUT - 2, HELD_OUT - 3)


class Examples:
    """Draws examples: ``draw()`` gives one, of a set drawn by its weight.

    Of a group that has both, a paraphrase and a wrong one are drawn together and ranked: only what
    sets the two apart is to be learned, not how they differ from the source.
    """

    def __init__(self, sets: Sets, random: Random):
        self.sets, self.random = sets, random
        self.breaker = Breaker([own[0] for own in sets.versions], random)
        rated = sets.rated[sets.rated["part"] == "encoder"]
        short = (rated["source"].str.len() <= LONGEST) & (rated["paraphrase"].str.len() <= LONGEST)
        self.rated = rated[short].to_dict("records")
        self.kinds: dict[str, tuple[float, Callable[[], Example]]] = {
            "versions": (0.18, self.of_versions),
            "written": (0.20, self.of_written),
            "exchanged": (0.08, partial(self.of_groups, sets.exchanged)),
            "rewritten": (0.12, partial(self.of_groups, sets.rewritten)),
            "premises": (0.06, self.of_premises),
            "copies": (0.03, self.of_copies),
            "edits": (0.05, self.of_edits),
            "judged edits": (0.08 * bool(sets.edits), self.of_judged_edits),
            "rated": (0.22, self.of_rated),
            "others": (0.07, self.of_others),
            "grammar": (0.03, self.of_grammar),
        }

    def draw(self) -> Example:
        """One example; what is drawn depends on the state of ``random`` alone."""
        return self.draw_named()[1]

    def draw_named(self) -> tuple[str, Example]:
        """(kind, example), as draw."""
        (name,) = self.random.choices([*self.kinds], [share for share, _ in self.kinds.values()])
        return name, self.kinds[name][1]()

    def of_versions(self) -> Example:
        """Two translations of one sentence; the same, changed alike; one of them broken."""
        random, own = self.random, self.random.choice(self.sets.versions)
        one, other = random.sample(own, 2)
        drawn = random.random()
        if drawn < 0.32:
            return equal(one, other, LIKELY)
        if drawn < 0.45:
            alike = self.breaker.in_both(one, other)
            return Example(*alike, {"same": LIKELY}) if alike else equal(one, other, LIKELY)
        if drawn < 0.85:
            # The change alone tells, not the wording: the source is either of the two.
            source = random.choice((one, other))
            if wrong := self.breaker.meaning(other):
                return changed(source, other, wrong)
        elif drawn < 0.95:
            if salad := self.breaker.salad(other):
                return broken(one, salad, differences(other, salad))
        stranger = random.choice(random.choice(self.sets.versions))
        return Example(one, stranger, {"same": 0, "fluent": 1, "good": 0})

    def of_edits(self) -> Example:
        """A sentence and its edits by the lexicon's sure words: the same; broken as well: not the
        same."""
        text = self.random.choice(self.random.choice(self.sets.versions))
        edits = [own for own in lexical_edits(text, rjieba.tag(text), load()) if own.sure]
        self.random.shuffle(edits)
        taken: list[Edit] = []
        for edit in edits:
            if fits(edit, taken) and self.random.random() < 0.6:
                taken.append(edit)
        edited = apply(text, taken)
        drawn = self.random.random()
        if drawn < 0.4 and (wrong := self.breaker.meaning(edited)):
            return changed(text, edited, wrong)
        if drawn < 0.55 and (salad := self.breaker.salad(edited)):
            return broken(text, salad, differences(edited, salad))
        return equal(text, edited) if taken else Example(text, text, {"same": 1})

    def of_judged_edits(self) -> Example:
        """A sentence with edits that a reader let stand, before the same with one that none did."""
        judged = self.random.choice(self.sets.edits)
        right, wrong, spans = draw_edited(judged, self.random)
        if wrong is None:
            return equal(judged.text, right)
        worse = Example(judged.text, wrong, {"fluent": 0, "good": 0}, spans)
        return ranked(equal(judged.text, right), worse, "fluent")

    def of_copies(self) -> Example:
        """A sentence beside itself, or but for its marks: the same. What is broken comes close to
        it."""
        text = self.random.choice(self.random.choice(self.sets.versions))
        return equal(text, text if self.random.random() < 0.7 else text.rstrip("。！？"))

    def of_written(self) -> Example:
        """Two of a written group, most often before the group's counterpart."""
        random, group = self.random, self.random.choice(self.sets.written)
        one, other = random.sample(group["texts"], 2)
        counterparts, drawn = self.sets.broken.get(group["group"]), random.random()
        if counterparts is None or drawn > 0.92:
            wrong = self.breaker.meaning(other)
            return (
                ranked(equal(one, other), changed(one, other, wrong))
                if wrong
                else equal(one, other)
            )
        if drawn < 0.78:
            wrong = counterparts[random.choice(FLUENT_COUNTERPARTS)]
            return ranked(equal(one, other), unequal(one, wrong))
        if drawn < 0.86:
            return unequal(counterparts[random.choice(FLUENT_COUNTERPARTS)], one)
        return ranked(equal(one, other), broken(one, counterparts["salad"]), "fluent")

    def of_groups(self, groups: Sequence[dict[str, Any]]) -> Example:
        """Two sentences of a group that say the same before a wrong one."""
        random, row = self.random, self.random.choice(groups)
        same = [row["source"], *row["same"]]
        one = random.choice(same)
        if random.random() < 0.2:
            return unequal(random.choice(row["wrong"]), one)
        other = random.choice([text for text in same if text != one])
        return ranked(equal(one, other), unequal(one, random.choice(row["wrong"])))

    def of_premises(self) -> Example:
        """A premise beside what follows from it, before what does not or contradicts it."""
        random, row = self.random, self.random.choice(self.sets.premises)
        names = (
            random.sample([*FOLLOWS], 2) if random.random() < 0.4 else ["entailed", "contradicted"]
        )
        better, worse = (
            Example(
                row["premise"], random.choice(row[name]), {"meaning": FOLLOWS[name], "fluent": 1}
            )
            for name in sorted(names, key=lambda name: -FOLLOWS[name])
        )
        return ranked(better, worse)

    def of_rated(self) -> Example:
        """A rated pair. Of ``same`` and ``fluent`` 1.5 of 5 and below is 0, 4.75 and above is 1."""
        row = self.random.choice(self.rated)
        targets = {name: row[name] / HIGHEST for name in RATINGS}
        same, fluent = (min(1.0, max(0.0, (row[k] - 1.5) / 3.25)) for k in ("meaning", "fluency"))
        targets |= {"same": same, "fluent": fluent, "good": min(same, fluent)}
        return Example(row["source"], row["paraphrase"], targets)

    def of_others(self) -> Example:
        """A pair that others judged."""
        return self.random.choice(self.sets.judged)

    def of_grammar(self) -> Example:
        """A sentence beside itself."""
        text, right = self.random.choice(self.sets.grammar)
        return Example(text, text, {"fluent": right})


def equal(source: str, paraphrase: str, sure: float = 1.0) -> Example:
    """A good paraphrase."""
    return Example(source, paraphrase, {"same": sure, "fluent": sure, "good": sure}, [])


def unequal(source: str, wrong: str) -> Example:
    """A fluent sentence that says something else."""
    return Example(source, wrong, {"same": 0, "fluent": 1, "good": 0})


def ranked(better: Example, worse: Example, rank: str = "same") -> Example:
    """Two paraphrases of one source, of which the second is worse by the task ``rank``."""
    better.worse, better.rank = worse, rank
    return better


def changed(source: str, right: str, wrong: str) -> Example:
    """A paraphrase that a program made say something else."""
    return Example(source, wrong, {"same": 0, "good": 0}, differences(right, wrong))


def broken(source: str, salad: str, spans: list[Span] | None = None) -> Example:
    """A paraphrase that is no Chinese."""
    return Example(source, salad, {"fluent": 0, "good": 0}, spans)


def differences(right: str, wrong: str) -> list[Span]:
    """Spans of wrong that differ from right; a deletion is marked on the character behind it."""
    matcher = difflib.SequenceMatcher(None, right, wrong, autojunk=False)
    return [
        (start, max(end, start + 1))
        for operation, _, _, start, end in matcher.get_opcodes()
        if operation != "equal"
    ]


def judgements_of_others(data: Path) -> list[Example]:
    """Question pairs, PAWS-X, similarity, post-edited translations, and human scores of
    paraphrases."""
    found = [
        Example(one, other, {"question": float(label)})
        for name in QUESTIONS
        for one, other, label, *_ in _cells(data / name, 3)
        if label in ("0", "1")
    ]
    for _, one, other, label, *_ in _cells(data / "pawsx_zh.dev.tsv", 4):
        if label in ("0", "1"):
            found += 3 * [Example(one, other, {"same": float(label), "fluent": 0.9})]
            found += 3 * [Example(other, one, {"same": float(label), "fluent": 0.9})]
    for name in ("stsb_zh.train.tsv", "stsb_zh.dev.tsv"):
        for one, other, score, *_ in _cells(data / name, 3):
            found.append(Example(one, other, {"similar": float(score) / 5}))
    for row in read_json_lines(data / "mlqe_pe_en_zh.train.jsonl"):
        edited = row["pe_zh"].replace(" ", "")
        found.append(Example(edited, row["mt_zh"], {"quality": row["da_mean"] / 100}))
    for row in read_json_lines(data / "bq_para.dev.jsonl"):
        if not human_test(row["source"]):
            pair = Example(row["source"], row["candidate"], {"human": row["human"]})
            found += 2 * [pair]
    return [one for one in found if one.source and one.paraphrase]


def human_test(source: str) -> bool:
    """Whether a source of the human scores is kept for the test: one in five, by its hash."""
    return zlib.crc32(source.encode()) % 5 == 0


def grammar(data: Path) -> list[tuple[str, int]]:
    """FCGEC's flags, and MuCGEC's sentences with their first corrections."""
    found: list[tuple[str, int]] = []
    for _, text, wrong, *_ in _cells(data / "fcgec.dev.tsv", 3)[1:]:
        found.append((text, 1 - int(wrong)))
    for _, wrong, right, *_ in _cells(data / "mucgec.dev.tsv", 3):
        if right not in ("", wrong, "没有错误"):
            found += [(wrong, 0), (right, 1)]
    return [(text, right) for text, right in found if 8 <= len(text) <= 80]


def _cells(path: Path, least: int) -> Sequence[list[str]]:
    lines = path.read_text("utf-8").split("\n")
    return [cells for cells in (line.split("\t") for line in lines) if len(cells) >= least]
