"""Reads the sets that the pair encoder learns from and is tested on, cut by group.

The part of a rated pair, and the held-out groups, are the same for the encoder and for the heads of
tier full, which must read pairs that the encoder has not seen.

Good versions of one sentence, out of many translations, are those nearest to the others. Systems
that write badly are left out by name where names are given, refusals and prompts by what they say.
Of the rest each has a utility, its mean similarity with the others (character n-grams up to four,
F1, as in chrF), weighted by how well their systems write: minimum Bayes risk, with the versions
themselves as the sample (Eikema and Aziz 2020). What lies 0.15 below the best is left out.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

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
"""Free rewrites. Tier core was fitted only to those of the first file."""
REWRITTEN_RATED = "rewritten_rated.jsonl"
QUESTIONS = ("afqmc.train.tsv", "lcqmc.dev.tsv", "oppo.dev.tsv")
PAWSX, MLQE_PE, BQ_PARA = "pawsx_zh.dev.tsv", "mlqe_pe_en_zh.train.jsonl", "bq_para.dev.jsonl"
STSB = ("stsb_zh.train.tsv", "stsb_zh.dev.tsv")
JUDGED = (*QUESTIONS, PAWSX, *STSB, MLQE_PE, BQ_PARA)
"""Judgements that others made; the encoder learns from them."""
OWN, LATER = 20_000, 30_000
"""Written groups from these numbers on were written here; counterparts came with the later ones."""
LONGEST = 110
"""Characters of a sentence; pairs with a longer one are left out."""
Span = tuple[int, int]
HAN = "\u4e00-\u9fff"
LENGTHS = range(10, 81)
MOST_VERSIONS = 7
"""Versions of a sentence that are kept."""
JUNK = re.compile(
    "抱歉|无法翻译|以下是|翻译[:：]|中文[:：]|英[语文][:：]|会议恢复|恢复会[话议]|复会|作为.{0,4}(AI|人工智能)|\ufffd"
)
WEIGHTS = {
    4: "reference ntrex-cn",
    3: "GPT-4 Claude-3.5 ONLINE-W google microsoft Unbabel-Tower70B GPT4-5shot Online-W",
    2: "ONLINE-B ONLINE-A IOL-Research IOL_Research CommandR-plus HW-TSC Lan-BridgeMT ONLINE-Y "
    "Facebook-AI WeChat-AI HuaweiTSC Online-A Online-B Lan-Bridge-MT HappyNewYear Borderline "
    "DLUT-GTCOM",
    1: "Llama3-70B ONLINE-G Aya23 IKUN IKUN-C ONLINE-M ZengHuiMT Online-Y Team-J NTTSU",
}
_WEIGHT = {name: weight for weight, names in WEIGHTS.items() for name in names.split()}
_FULL_WIDTH = str.maketrans(",!?:;()", "，！？：；（）")


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
        judged=[one for one in judgements_of_others(data) if free(one.source, one.paraphrase)],
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
    for _, one, other, label, *_ in _cells(data / PAWSX, 4):
        if label in ("0", "1"):
            found += 3 * [Example(one, other, {"same": float(label), "fluent": 0.9})]
            found += 3 * [Example(other, one, {"same": float(label), "fluent": 0.9})]
    for name in STSB:
        for one, other, score, *_ in _cells(data / name, 3):
            found.append(Example(one, other, {"similar": float(score) / 5}))
    for row in read_json_lines(data / MLQE_PE):
        edited = row["pe_zh"].replace(" ", "")
        found.append(Example(edited, row["mt_zh"], {"quality": row["da_mean"] / 100}))
    for row in read_json_lines(data / BQ_PARA):
        if not human_test(row["source"]):
            found += 2 * [Example(row["source"], row["candidate"], {"human": row["human"]})]
    return [
        one
        for one in found
        if all(0 < len(text) <= LONGEST for text in (one.source, one.paraphrase))
    ]


def human_test(source: str) -> bool:
    """Whether a source of the human scores is kept for the test: one in five, by its hash."""
    return zlib.crc32(source.encode()) % 5 == 0


def grammar(data: Path) -> list[tuple[str, int]]:
    """FCGEC's flags, and MuCGEC's sentences with their first corrections."""
    flagged = _cells(data / "fcgec.dev.tsv", 3)[1:]
    found = [(text, 1 - int(wrong)) for _, text, wrong, *_ in flagged]
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


# Good versions of one sentence


def foreign_test(key: str) -> bool:
    """Whether a foreign sentence is kept for tests: one in fifty, by its hash."""
    return zlib.crc32(key.encode()) % 50 == 7


def read_versions(data: Path) -> Iterator[tuple[str, list[str]]]:
    """(foreign sentence, its good versions, the best first) of the sets of a folder."""
    for row in pq.read_table(data / "zh_translations_more.parquet").to_pylist():
        weights = [_WEIGHT.get(name, 0) for name in [_system(name) for name in row["systems"]]]
        if good := consensus(row["translations_zh"], weights):
            yield row["source_text"], good
    for row in pq.read_table(data / "wmt_en_zh_translations.parquet").to_pylist():
        texts = [text for text in row["translations_zh"] if text]
        if good := consensus(texts, [1] * len(texts)):
            yield row["source_en"], good


def consensus(texts: Sequence[str], weights: Sequence[float]) -> list[str]:
    """The versions nearest to the others, the best first; none where fewer than three are
    usable."""
    best: dict[str, float] = {}
    for text, weight in zip(texts, weights, strict=True):
        plain = clean(text)
        if weight > 0 and usable(plain):
            best[plain] = max(weight, best.get(plain, 0))
    if len(best) < 3:
        return []
    kept, strength = list(best), np.array([*best.values()])
    grams = [_grams(text) for text in kept]
    likeness = np.array([[_f1(a, b) for b in grams] for a in grams])
    np.fill_diagonal(likeness, 0)
    utility = (likeness * strength).sum(1) / (strength.sum() - strength)
    least = max(0.22, utility.max() - 0.15)
    order = [k for k in np.argsort(-(utility + 0.03 * strength)) if utility[k] >= least]
    return [kept[k] for k in order[:MOST_VERSIONS]] if len(order) > 1 else []


def clean(text: str) -> str:
    """NFC, no spaces beside Chinese, and Chinese punctuation behind Chinese."""
    text = " ".join(unicodedata.normalize("NFC", text).split())
    beside = f"[{HAN}，。！？、；：“”]"
    text = re.sub(f"(?<={beside}) +| +(?={beside})", "", text)
    text = re.sub(
        f"(?<=[{HAN}”）])[,!?:;](?!\\d)", lambda mark: mark.group().translate(_FULL_WIDTH), text
    )
    text = re.sub(f"(?<=[{HAN}”）])\\.$|(?<=[{HAN}])\\.(?=[{HAN}])", "。", text)
    return re.sub('"([^"]*)"', "“\\1”", text)


def usable(text: str) -> bool:
    """Whether a version is Chinese of a usual length, no refusal, and does not stammer."""
    if len(text) not in LENGTHS or JUNK.search(text) or re.search(r"(.{2,6})\1\1", text):
        return False
    han = len(re.findall(f"[{HAN}]", text))
    latin = sum(character.isascii() and character.isalpha() for character in text)
    return han >= 0.55 * len(text) and latin <= 0.25 * len(text)


def _system(name: str) -> str:
    """A system's name, out of that of its file."""
    return name.split(".hyp.")[1].rsplit(".zh", 1)[0] if ".hyp." in name else name


def _grams(text: str) -> Counter[str]:
    return Counter(text[k : k + n] for n in range(1, 5) for k in range(len(text) - n + 1))


def _f1(one: Counter[str], other: Counter[str]) -> float:
    return 2 * (one & other).total() / (one.total() + other.total())
