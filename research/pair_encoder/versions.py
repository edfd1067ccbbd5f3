"""Good versions of one sentence out of many: those nearest to the others.

Systems that write badly are left out by name where names are given, refusals and prompts by what
they say. Of the rest each has a utility, its mean similarity with the others (character n-grams up
to four, F1, as in chrF), weighted by how well their systems write: minimum Bayes risk, with the
versions themselves as the sample (Eikema and Aziz 2020). What lies 0.15 below the best is left out.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

HAN = "\u4e00-\u9fff"
LENGTHS = range(10, 81)
MOST = 7
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


def held_out(key: str) -> bool:
    """Whether a foreign sentence is kept for tests: one in fifty, by its hash."""
    return zlib.crc32(key.encode()) % 50 == 7


def read_versions(data: Path) -> Iterator[tuple[str, list[str]]]:
    """(foreign sentence, its good versions, the best first) of the sets of a folder."""
    more = pq.read_table(data / "zh_translations_more.parquet").to_pylist()
    for row in more:
        names = [_system(name) for name in row["systems"]]
        weights = [_WEIGHT.get(name, 0) for name in names]
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
    return [kept[k] for k in order[:MOST]] if len(order) > 1 else []


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
