"""The real pairs and the test tables of tests/bench/experiment.py.

Pairs to train on, from the shared data: WMT system outputs of one English sentence in both
directions (parallel), and post-edited machine translations and idioms that people paraphrased
(human). Test tables hold sources that no training pair has a sentence of:

    wmt     source: one system's translation, mt: another system's of the same English sentence
    mlqe    source: a machine translation, human: its post-edit
    idioms  source: a sentence with an idiom, human: its paraphrase without
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from gaixie.training.modeling.generator import SPACE_BESIDE_CHINESE
from gaixie.udfs.text.normalise import normalise

MIN_CHARACTERS, MAX_CHARACTERS = 15, 40
TEST_ROWS = 1_000
SEED = 7


def write_experiment(data: Path, output: Path) -> None:
    """Writes OUTPUT/pairs/ORIGIN/*.parquet, OUTPUT/sentences.parquet and OUTPUT/test/NAME.parquet."""
    parallel, wmt = _wmt(data)
    mlqe = _mlqe(data)
    idioms = [_csv(data / f"cip_idiom.{part}.csv") for part in ("in_domain", "out_domain")]
    tests = {"wmt": wmt, "mlqe": mlqe[-TEST_ROWS:], "idioms": idioms[1][:TEST_ROWS]}
    kept_apart = {text for frame in tests.values() for column in frame for text in frame[column]}
    human = pd.concat([mlqe[:-TEST_ROWS], idioms[0]]).rename(columns={"human": "paraphrase"})
    pairs = {"parallel": parallel, "human": human}
    for origin, frame in pairs.items():
        known = frame["source"].isin(kept_apart) | frame["paraphrase"].isin(kept_apart)
        pairs[origin] = frame[~known]
        _write(pairs[origin], output / "pairs" / origin / "pairs.parquet")
        print(f"{origin}: {len(pairs[origin]):,} pairs, {known.sum():,} left out as test sentences")
    sentences = pd.concat([f[c] for f in pairs.values() for c in f]).drop_duplicates()
    _write(sentences.to_frame("text"), output / "sentences.parquet")
    for name, frame in tests.items():
        _write(frame, output / "test" / f"{name}.parquet")
        print(f"test {name}: {len(frame):,} sources")


def _fits(text: str) -> bool:
    return MIN_CHARACTERS <= len(text) <= MAX_CHARACTERS


def _wmt(data: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training pairs, and test rows from other English sentences: one row for each."""
    table = pq.read_table(data / "wmt_en_zh_translations.parquet", columns=["translations_zh"])
    random = np.random.default_rng(SEED)
    lists = [
        sorted({s for s in map(normalise, filter(None, row)) if _fits(s)})
        for row in table.column(0).to_pylist()
    ]
    lists = [row for row in lists if len(row) > 1]
    order = random.permutation(len(lists))
    drawn = [random.permutation(lists[k])[:2].tolist() for k in order[:TEST_ROWS]]
    training = [lists[k] for k in order[TEST_ROWS:]]
    pairs = [(a, b) for row in training for a in row for b in row if a != b]
    frame = pd.DataFrame(pairs, columns=["source", "paraphrase"])
    frame = frame.iloc[random.permutation(len(frame))]
    return frame, pd.DataFrame(drawn, columns=["source", "mt"])


def _mlqe(data: Path) -> pd.DataFrame:
    frame = pd.read_json(data / "mlqe_pe_en_zh.train.jsonl", lines=True)
    frame = pd.DataFrame({"source": frame["mt_zh"], "human": frame["pe_zh"]})
    return _usable(frame.map(lambda text: SPACE_BESIDE_CHINESE.sub("", normalise(text))))


def _csv(path: Path) -> pd.DataFrame:
    frame = pd.read_csv(path)[["src", "dst"]].set_axis(["source", "human"], axis=1)
    return _usable(frame.dropna().map(normalise))


def _usable(frame: pd.DataFrame) -> pd.DataFrame:
    frame = frame[frame.map(_fits).all(axis=1) & (frame["source"] != frame["human"])]
    return frame.drop_duplicates("source").sample(frac=1, random_state=SEED)


def _write(frame: pd.DataFrame, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    pq.write_table(table, path, row_group_size=50_000, compression="zstd")
