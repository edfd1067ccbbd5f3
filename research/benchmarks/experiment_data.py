"""Makes the real pairs and the test table of research/benchmarks/experiment.py.

The training pairs come from the shared data: WMT system outputs of one English sentence, in both
directions (parallel), and post-edited machine translations and idioms that people paraphrased
(human). The column `group` is the English sentence, or the row. Splits are by group: training has
no group and no sentence of validation or test.

    test.parquet         table    source                     beside it
                         wmt      one system's translation   mt: another's of that sentence
                         mlqe     a machine translation      human: its post-edit
                         idioms   a sentence with an idiom   human: its paraphrase without
                         and in each, noised: the source with words dropped, swapped and doubled
    validation.parquet   source: as in wmt, for the evaluations while training
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from gaixie.training.modeling.generator import SPACE_BESIDE_CHINESE
from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.segmenters import load_segmenter

MIN_CHARACTERS, MAX_CHARACTERS = 15, 40
SEED = 7
TRIES = 50


def write_experiment(
    data: Path, output: Path, tested: int, validated: int, noise: float, limit: int | None = None
) -> None:
    """Writes OUTPUT/pairs/ORIGIN/pairs.parquet, validation.parquet and test.parquet.

    tested: number of sources of each test table. validated: number of validation sources. noise:
    the rate of ``noised``. limit: maximum of WMT's English sentences, and of rows of other sets.
    """
    random = np.random.default_rng(SEED)
    texts = _wmt(data, limit)
    shared = [group for group, own in texts.items() if len(own) > 1]
    shared = [shared[k] for k in random.permutation(len(shared))]
    held_out = {"wmt": shared[:tested], "validation": shared[tested : tested + validated]}
    drawn = {
        name: pd.DataFrame(
            [(group, *random.permutation(texts[group])[:2]) for group in groups],
            columns=["group", "source", "mt"],
        )
        for name, groups in held_out.items()
    }
    apart = {*held_out["wmt"], *held_out["validation"]}
    known = {text for group in apart for text in texts[group]}
    mlqe = _mlqe(data)[:limit]
    idioms = [_csv(data / f"cip_idiom.{part}.csv")[:limit] for part in ("in_domain", "out_domain")]
    tables = {"wmt": drawn["wmt"], "mlqe": mlqe[-tested:], "idioms": idioms[1][:tested]}
    test = pd.concat([frame.assign(table=name) for name, frame in tables.items()])
    test = test.drop_duplicates("source").astype(object).where(lambda frame: frame.notna(), None)
    test["noised"] = noised(test["source"].tolist(), noise)
    known |= {text for name in ("source", "mt", "human") for text in test[name] if text}
    both = [
        (a, b, group)
        for group, row in texts.items()
        if group not in apart
        for a, b in permutations(row, 2)
    ]
    pairs = {
        "parallel": pd.DataFrame(both, columns=["source", "paraphrase", "group"]),
        "human": pd.concat([mlqe[:-tested], idioms[0]]).rename(columns={"human": "paraphrase"}),
    }
    for origin, frame in pairs.items():
        out = frame["source"].isin(known) | frame["paraphrase"].isin(known)
        pairs[origin] = frame[~out].sample(frac=1, random_state=SEED)
        _write(pairs[origin], output / "pairs" / origin / "pairs.parquet")
        print(f"{origin}: {len(pairs[origin]):,} pairs, {out.sum():,} left out as held out")
    _write(drawn["validation"], output / "validation.parquet")
    _write(test.reset_index(drop=True), output / "test.parquet")
    counts = test["table"].value_counts().to_dict()
    print(f"{validated} validation sources; test sources: {counts}")


def noised(texts: Sequence[str], rate: float, seed: int = SEED) -> list[str]:
    """Returns sentences with a share of their words dropped, swapped with the next, or doubled.

    Chance decides which of the three. Punctuation stays, and every sentence changes. The score a
    metric gives to these is its score for noise.
    """
    random = np.random.default_rng(seed)
    lines = []
    for text, words in zip(texts, load_segmenter().cut(texts), strict=True):
        made = text
        for _ in range(TRIES):
            if made == text:  # in a short sentence, chance may change no word
                made = _noised(words, rate, random)
        lines.append(made)
    return lines


def _noised(words: Sequence[str], rate: float, random: np.random.Generator) -> str:
    chosen = random.random(len(words)) < rate
    kinds = random.integers(3, size=len(words))
    made: list[str] = []
    k = 0
    while k < len(words):
        word, after = words[k], words[k + 1 : k + 2]
        k += 1
        if not chosen[k - 1] or not word.isalnum():
            made.append(word)
        elif kinds[k - 1] == 1 and after and after[0].isalnum():
            made += [*after, word]
            k += 1
        elif kinds[k - 1] == 2:
            made += [word, word]
    return "".join(made)


def _fits(text: str) -> bool:
    return MIN_CHARACTERS <= len(text) <= MAX_CHARACTERS


def _wmt(data: Path, limit: int | None) -> dict[str, list[str]]:
    """Returns the distinct sentences of suitable length of each English sentence."""
    table = pq.read_table(data / "wmt_en_zh_translations.parquet").slice(0, limit).to_pydict()
    groups: dict[str, dict[str, None]] = {}
    for english, row in zip(table["source_en"], table["translations_zh"], strict=True):
        own = groups.setdefault(" ".join(english.split()), {})
        own |= dict.fromkeys(filter(_fits, map(normalise, filter(None, row))))
    return {f"wmt-{number}": sorted(own) for number, own in enumerate(groups.values())}


def _mlqe(data: Path) -> pd.DataFrame:
    frame = pd.read_json(data / "mlqe_pe_en_zh.train.jsonl", lines=True)
    frame = pd.DataFrame({"source": frame["mt_zh"], "human": frame["pe_zh"]})
    frame = frame.map(lambda text: SPACE_BESIDE_CHINESE.sub("", normalise(text)))
    return _usable(frame, "mlqe")


def _csv(path: Path) -> pd.DataFrame:
    frame = pd.read_csv(path)[["src", "dst"]].set_axis(["source", "human"], axis=1)
    return _usable(frame.dropna().map(normalise), path.stem)


def _usable(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    frame = frame[frame.map(_fits).all(axis=1) & (frame["source"] != frame["human"])]
    frame = frame.drop_duplicates("source").sample(frac=1, random_state=SEED)
    return frame.assign(group=[f"{name}-{k}" for k in range(len(frame))])


def _write(frame: pd.DataFrame, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}")
    table = pa.Table.from_pandas(frame, preserve_index=False)
    pq.write_table(table, part, row_group_size=50_000, compression="zstd")
    part.replace(path)
