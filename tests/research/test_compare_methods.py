"""research/compare_methods.py: rates and means worked by hand, on runs that are written here."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from manifests import run_manifest

from gaixie.research import compare_methods
from gaixie.research.comparison.methods import compare
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.storage.manifest import NAME, PairsManifest

BUILT = {
    "method": "llm",
    "created": "2025-01-01T00:00:00+00:00",
    "gaixie": "0.1.0",
    "spark": "4.1.2",
    "settings": {},
    "limit": None,
    "inputs": [],
    "rows": 10,
    "read": 10,
    "used": 8,
    "quarantine": {"refused": 2},
    "groups": 8,
    "pairs": 16,
    "seconds": 4.0,
    "figures": {"tokens_in": 1_000, "tokens_out": 600, "cost": 0.08},
    "files": {},
}


def write(folder: Path, name: str, rows: list[dict]) -> None:
    path = folder / name / "part-00000.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), path)


def row(source: str, paraphrase: str, score: float, method: str | None, model: str | None = None):
    values = {"source": source, "paraphrase": paraphrase, "group": source[:2]}
    return values | dict.fromkeys(OUTPUTS, score) | {"method": method, "model": model}


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    """40 sources: method llm has two pairs of each, one in stage 1 and one in stage 3; method versions has
    one pair of each but the last ten, half of them in stage 0; of each third source one is in quarantine."""
    root = tmp_path_factory.mktemp("methods")
    sources = [f"{k:02d}号句子，写得不长也不短。" for k in range(40)]
    a, b = root / "runs/a", root / "runs/b"
    write(a, "scored/origin=llm/stage=1", [row(s, s + "甲", 0.4, "llm", "tiny") for s in sources])
    write(a, "scored/origin=llm/stage=3", [row(s, s + "乙", 0.8, "llm", "tiny") for s in sources])
    shared = sources[:30]
    write(
        b,
        "scored/origin=parallel/stage=0",
        [row(s, s + "丙", 0.1, "versions") for s in shared[::2]],
    )
    write(
        b,
        "scored/origin=parallel/stage=2",
        [row(s, s + "丁", 0.6, "versions") for s in shared[1::2]],
    )
    left = [
        {"source": s, "paraphrase": s, "group": s[:2], "method": "versions", "origin": "parallel"}
        for s in shared[::3]
    ]
    write(b, "quarantine/reason=identical", [*left, left[0] | {"source": None}])
    (root / "made/pairs").mkdir(parents=True)
    built = PairsManifest.model_validate(BUILT)
    (root / "made" / NAME).write_text(built.to_json(), "utf-8")
    for folder, path in ((a, root / "made/pairs"), (b, root / "gone.parquet")):
        inputs = [{"path": str(path), "origin": None}]
        manifest = run_manifest(
            run_id=folder.name, settings={"segmenter": "jieba", "inputs": inputs}
        )
        (folder / NAME).write_text(manifest.to_json(), "utf-8")
    return root


def test_by_hand(root):
    found = compare(str(root), ["a", "b"], "source", 1_000, 3, 200, 1)
    assert (found.units, found.drawn) == (30, 30)
    llm, versions = found.methods
    assert (llm.name, versions.name) == ("llm tiny", "versions")
    assert (llm.pairs, llm.units, versions.pairs) == (60, 30, 40)
    assert [estimate.score for estimate in llm.kept.values()] == [1, 0.5, 0.5]
    assert [estimate.score for estimate in versions.kept.values()] == [15 / 40, 15 / 40, 0]
    assert versions.quarantined.score == 0.25
    assert versions.reasons == {"identical": 10}
    assert llm.means["meaning"].score == pytest.approx(0.6)
    assert llm.means["meaning"].low == pytest.approx(0.6)  # each source has the same pairs
    assert versions.means["spscore"].score == pytest.approx((15 * 0.1 + 15 * 0.6) / 30)
    assert versions.means["spscore"].low < 0.35 < versions.means["spscore"].high
    [apart] = found.differences
    assert apart["spscore"].score == pytest.approx(0.25)
    assert apart["kept"].score == pytest.approx(1 - 15 / 40)


def test_examples_show_the_best_pair_of_each(root):
    found = compare(str(root), ["a", "b"], "source", 1_000, 3, 10, 1)
    assert len(found.examples) == 3
    for rows in found.examples:
        assert [*rows["name"]] == ["llm tiny", "versions"]
        assert rows["source"].nunique() == 1
        assert rows.iloc[0]["paraphrase"].endswith("乙")
    again = compare(str(root), ["b", "a"], "source", 1_000, 3, 10, 1)
    assert [rows["source"].iloc[0] for rows in again.examples] == [
        rows["source"].iloc[0] for rows in found.examples
    ]


def test_a_sample_of_the_sources(root):
    found = compare(str(root), ["a", "b"], "source", 12, 2, 50, 1)
    assert (found.units, found.drawn) == (30, 12)
    assert {method.units for method in found.methods} == {12}
    assert np.isfinite(found.differences[0]["spscore"]).all()


def test_by_group_and_each_on_its_own(root):
    assert compare(str(root), ["a", "b"], "group", 1_000, 1, 10, 1).units == 30
    found = compare(str(root), ["a", "b"], "all", 1_000, 1, 10, 1)
    assert found.units == 40
    assert {method.name: method.units for method in found.methods} == {
        "llm tiny": 40,
        "versions": 30,
    }
    assert not found.examples


def test_the_report(root, tmp_path, capsys):
    line = [str(root), "--runs", "a", "b", "--output", str(tmp_path), "--samples", "50"]
    assert compare_methods.main(line) == 0
    page = (tmp_path / "methods.md").read_text("utf-8")
    assert "| llm tiny | a | 30 | 60 | 100.0 % (100.0 to 100.0) |" in page
    assert f"| {root}/made | llm | 10 | 8 | 16 | 4 | 250.00 | 100,000 | 5 |" in page
    assert page.count("## Example") == 5
    told = json.loads((tmp_path / "methods.json").read_text("utf-8"))
    assert told["builds"][f"{root}/made"]["figures"]["cost"] == 0.08
    assert "30 sources that all methods have pairs of" in capsys.readouterr().out


def test_mistakes_are_one_line(root, tmp_path, capsys):
    other = tmp_path / "runs/c"
    write(
        other,
        "scored/origin=llm/stage=1",
        [row("另一个句子。", "别的句子。", 0.5, "back-translation")],
    )
    manifest = run_manifest(run_id="c")
    (other / NAME).write_text(manifest.to_json(), "utf-8")
    (root / "runs/c").symlink_to(other)
    (root / "runs/d").mkdir(exist_ok=True)
    changed = run_manifest(run_id="d", signature="SPScore-zh|v:0.1|tier:core|other")
    (root / "runs/d" / NAME).write_text(changed.to_json(), "utf-8")
    for runs, message in [
        (["a"], "one method in these runs (llm tiny), expected two or more"),
        (["a", "c"], "no source that all methods have (back-translation, llm tiny); --by all"),
        (["a", "d"], "runs 'a' and 'd' have different metric signatures"),
        (["a", "../runs/a"], "../runs/a: a run's id has letters, digits"),
        (["a", "x"], "runs/x/manifest.json: no such file: the run is not published"),
    ]:
        line = [str(root), "--runs", *runs, "--output", str(tmp_path / "o")]
        assert compare_methods.main(line) == 2
        err = capsys.readouterr().err
        assert message in err
        assert err.count("\n") == 1
