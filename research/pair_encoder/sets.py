"""Reads the sets that the pair encoder learns from and is tested on, cut by group.

The part of a rated pair, and the held-out groups, are the same for the encoder and for the heads of
tier full, which must read pairs that the encoder has not seen.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from gaixie.research.ratings.rated import Rated, read_rated
from gaixie.research.ratings.tables import read_json_lines
from gaixie.udfs.text.normalise import normalise

HERE = Path(__file__).parent
KINDS = ("negation", "roles", "fact", "scope", "salad")
"""Kinds of counterparts of a written group."""
HELD_OUT = 8
"""One written group in so many is kept for the test."""
GROUPS, BROKEN = "written_groups.jsonl", "written_broken.jsonl"
"""Written groups and their counterparts: in the folder of the sets, and in this one."""
REWRITTEN = ("rewritten.jsonl", "rewritten_later.jsonl")
"""Free rewrites. Tier core was fitted only to those of the first file (conf/spscore.yaml)."""
REWRITTEN_RATED = "rewritten_rated.jsonl"
QUESTIONS = ("afqmc.train.tsv", "lcqmc.dev.tsv", "oppo.dev.tsv")
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
    """Free rewrites of a sentence, and as free ones that say something else (REWRITTEN)."""
    premises: list[dict[str, Any]]
    """What a sentence entails, what it leaves open, and what contradicts it (premises.jsonl)."""
    judged: list[Example]
    """Judgements that others made."""
    grammar: list[tuple[str, int]]
    """(sentence, 1 where it is right)."""
    test_written: list[dict[str, Any]] = field(default_factory=list)
    test_exchanged: list[dict[str, Any]] = field(default_factory=list)
    test_rewritten: list[dict[str, Any]] = field(default_factory=list)
    test_premises: list[dict[str, Any]] = field(default_factory=list)


def load_sets(data: Path, versions: list[list[str]], rated_settings: Rated) -> Sets:
    """Reads the sets. rated_settings: as of conf/spscore.yaml. FileNotFoundError where a set is
    missing."""
    written = read_json_lines(data / GROUPS, HERE / GROUPS)
    broken = {row["group"]: row for row in read_json_lines(data / BROKEN, HERE / BROKEN)}
    rated = read_rated(rated_settings, data)
    test = {row["group"] for row in written if row["group"] in broken and held_out(row["group"])}
    kept_apart = rated["group"].isin({str(group) for group in test})
    rated.loc[kept_apart & (rated["part"] == "encoder"), "part"] = "test"
    unseen = rated[rated["part"] != "encoder"]
    # Other sets have the same sentences with other marks and spaces.
    banned = {normalise(text) for side in ("source", "paraphrase") for text in unseen[side]}

    def free(*texts: str) -> bool:
        return not any(normalise(text) in banned for text in texts)

    exchanged = read_json_lines(HERE / "exchanged.jsonl")
    for row in exchanged:
        row["wrong"] = 2 * row["roles"] + row["other"]  # three quarters are exchanged roles
    rewritten = read_json_lines(*(HERE / name for name in REWRITTEN))
    premises = read_json_lines(HERE / "premises.jsonl")
    return Sets(
        versions=[texts for texts in versions if free(*texts)],
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
            if free(one.source, one.paraphrase)
            and max(len(one.source), len(one.paraphrase)) <= LONGEST
        ],
        grammar=grammar(data),
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


def read_entailment(path: Path) -> pd.DataFrame:
    """Reads OCNLI's pairs that entail or contradict: columns premise, hypothesis, label."""
    names = ["premise", "hypothesis", "label"]
    table = pd.read_csv(path, sep="\t", quoting=3, names=names, dtype=str)
    return table[table["label"].isin(["entailment", "contradiction"])]


def _cells(path: Path, least: int) -> Sequence[list[str]]:
    lines = path.read_text("utf-8").split("\n")
    return [cells for cells in (line.split("\t") for line in lines) if len(cells) >= least]
