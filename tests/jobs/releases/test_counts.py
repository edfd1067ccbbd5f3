"""A release's counts, made in one pass, and its lineage, which may contain any text."""

import numpy as np
import pandas as pd
import pytest

from gaixie.jobs.releases import counts
from gaixie.jobs.releases.counts import count_lineage, count_scores, count_written, pairs_by
from gaixie.jobs.releases.rows import COLUMNS, read_release
from gaixie.udfs.features import FEATURES
from gaixie.udfs.spscore import OUTPUTS

LINEAGE = {"method": "string", "model": "string", "license": "string", "run": "string"}


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    random = np.random.default_rng(2)
    count = 60
    table = pd.DataFrame(
        {
            "pair_id": [f"{k:032x}" for k in range(count)],
            "source": "原句",
            "paraphrase": "改写",
            **{name: np.float32(0.5) for name in FEATURES},
            **{name: random.random(count).astype(np.float32) for name in OUTPUTS},
            "origin": random.choice(["llm", "human"], count),
            "stage": random.integers(1, 4, count),
            "split": random.choice(["train", "test"], count),
            "run": random.choice(["a", "b"], count),
            "method": "llm",
            "model": "m",
        }
    )
    table["sl"], table["lr"] = random.integers(15, 60, count), np.float32(1.5)
    table["license"] = [f"as agreed with author {k}" if k % 2 else "CC0-1.0" for k in range(count)]
    return table.astype({"stage": np.int32, "sl": np.float32})


@pytest.fixture(scope="module")
def folder(rows, tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("build")
    for (split, stage), part in rows.groupby(["split", "stage"]):
        place = folder / f"data/split={split}/subset=stage-{stage}"
        place.mkdir(parents=True)
        part.drop(columns="split").to_parquet(place / "0.parquet")
    return str(folder)


def test_one_pass_counts_scores_lengths_and_judgements(spark, rows, folder):
    found = count_written(read_release(spark, folder, COLUMNS))
    for table in (found.scores, count_scores(read_release(spark, folder, COLUMNS))):
        expected = rows.groupby(["split", "stage", "origin"]).size().to_dict()
        assert pairs_by(table, "split", "stage", "origin") == expected
    assert set(found.scores) == {"split", "stage", "origin", "bin", "pairs"}
    long = {
        (origin, stage, side, int(np.floor(characters / 10)))
        for side, lengths in (("source", rows["sl"]), ("paraphrase", (rows["sl"] * 1.5).round()))
        for origin, stage, characters in zip(rows["origin"], rows["stage"], lengths, strict=True)
    }
    keys = ["origin", "stage", "side", "bin"]
    assert {*found.lengths[keys].itertuples(index=False, name=None)} == long
    assert found.lengths["pairs"].sum() == 2 * len(rows)
    sums = found.judgements.groupby(["stage", "output"])["sum"].sum()
    for output in OUTPUTS:
        expected = rows.astype({output: float}).groupby("stage")[output].sum()
        np.testing.assert_allclose(sums.xs(output, level="output"), expected)
    assert found.judgements["pairs"].sum() == len(OUTPUTS) * len(rows)


def test_licences_are_listed_up_to_a_number_and_the_rest_counted(spark, rows, folder, monkeypatch):
    everything = count_lineage(spark, folder, LINEAGE)
    assert sum(sum(way.pairs.values()) for way in everything) == len(rows)
    assert len(everything) > 30
    monkeypatch.setattr(counts, "LINEAGES", 4)
    listed = count_lineage(spark, folder, LINEAGE)
    assert len(listed) <= 4 + 4
    kept = [way for way in listed if way.license != counts.OTHERS]
    assert {way.license for way in kept} == {"CC0-1.0"}
    assert all(way in everything for way in kept)
    for run, origin in {(way.run_id, way.origin) for way in everything}:
        both = [
            sum(sum(w.pairs.values()) for w in ways if (w.run_id, w.origin) == (run, origin))
            for ways in (everything, listed)
        ]
        assert both[0] == both[1]
