"""jobs/releases/trace.py on folders written here: files that are gone, older runs, inputs."""

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from manifests import release_manifest, run_manifest

from gaixie.jobs.errors import JobError
from gaixie.jobs.releases.trace import trace
from gaixie.udfs.features import FEATURES
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.storage.manifest import NAME, ReleaseManifest

IDS = [f"{k:032x}" for k in range(40)]


def table(ids: list[str], **columns: str | None) -> pa.Table:
    rows = {
        "pair_id": ids,
        "source": [f"原句{i}" for i in ids],
        "paraphrase": [f"改写{i}" for i in ids],
    }
    rows |= {name: [0.5] * len(ids) for name in (*FEATURES, *OUTPUTS)}
    return pa.table(rows | {name: [value] * len(ids) for name, value in columns.items()})


def put(path: Path, rows: pa.Table) -> dict:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, path, row_group_size=4)
    return {"bytes": path.stat().st_size, "sha256": "0", "rows": len(rows)}


@pytest.fixture
def root(tmp_path) -> Path:
    """Writes a release without lineage, as by an earlier Gaixie, of runs a (even pairs), b (odd).

    Run a read two files of a build_pairs folder, by a pattern; run b read CSV.
    """
    for run_id, ids in (("a", IDS[::2]), ("b", IDS[1::2])):
        folder = tmp_path / "runs" / run_id
        file = folder / "scored/origin=llm/stage=2/part-00000.parquet"
        put(file, table(ids, group="g", method="llm" if run_id == "a" else None, license="CC0-1.0"))
        path = f"{tmp_path}/made/*/pairs" if run_id == "a" else "gone/b.csv"
        inputs = [{"path": path, "origin": None}, {"path": "other.csv", "origin": "human"}]
        listed = [{"path": file.relative_to(folder).as_posix(), "bytes": 1}]
        manifest = run_manifest(
            run_id=run_id,
            settings={"segmenter": "jieba", "inputs": inputs},
            cuts={"llm": [0.1, 0.2, None]},
            files={"scored": listed},
        )
        (folder / NAME).write_text(manifest.to_json(), "utf-8")
    for number, ids in enumerate((IDS[:20:2], IDS[20::2])):
        put(tmp_path / f"made/x/pairs/part-{number}.parquet", table(ids))
    built = '{"method": "llm", "created": "2025", "inputs": [{"path": "sentences.txt"}]}'
    (tmp_path / "made/x" / NAME).write_text(built, "utf-8")
    return tmp_path


@pytest.fixture
def manifest(root) -> ReleaseManifest:
    files = []
    for number in range(4):
        path = f"data/split=train/subset=stage-2/part-{number:05d}.parquet"
        rows = table(IDS[10 * number : 10 * number + 10], origin="llm")
        rows = rows.append_column("stage", pa.array([2] * 10, pa.int32()))
        files.append({"path": path} | put(root / "releases/1.0/build-0" / path, rows))
    runs = [{"run_id": r, "created": "2025", "manifest_sha256": "0", "rows": 20} for r in "ab"]
    return release_manifest(runs=runs, files=files)


def lines(root: Path, manifest: ReleaseManifest, pair_id: str) -> dict[str, str]:
    return {what: value for what, value in trace(str(root), manifest, pair_id) if what}


@pytest.mark.parametrize("place", [0, 38])
def test_what_only_the_run_knows(root, manifest, place):
    told = lines(root, manifest, IDS[place])
    assert (told["method"], told["group"], told["licence"]) == ("llm", "g", "CC0-1.0")
    assert told["run"].startswith("a, ")
    assert told["input"] == f"{root}/made/x/pairs/part-{int(place > 19)}.parquet"
    assert told["stage"] == "2, cut points 0.100, 0.200, not stated"
    assert told["source"] == f"原句{IDS[place]}"
    everything = str(trace(str(root), manifest, IDS[place]))
    assert "made by build_pairs llm, 2025, from sentences.txt" in everything
    assert "other.csv" not in everything


def test_a_text_input_is_named_though_it_is_not_searched(root, manifest):
    told = lines(root, manifest, IDS[3])
    assert told["run"].startswith("b, ")
    assert told["input"] == "gone/b.csv"
    assert told["method"] == "not stated"


def test_a_pair_that_was_scored_again(root, manifest):
    listed = [{"path": "scored/origin=llm/stage=2/a.parquet", "bytes": 1}]
    put(root / "runs/c" / listed[0]["path"], table(IDS, license="CC0-1.0"))
    run = run_manifest(run_id="c", rescored=["gone", "b", "a"], files={"scored": listed})
    (root / "runs/c" / NAME).write_text(run.to_json(), "utf-8")
    runs = [manifest.runs[0].model_copy(update={"run_id": "c"})]
    told = trace(str(root), manifest.model_copy(update={"runs": runs}), IDS[0])
    values = [value for _, value in told]
    assert "scored again the pairs of gone, b, a" in values
    assert [value[:2] for what, value in told if what == "run"] == ["c,", "a,"]
    assert f"{root}/made/x/pairs/part-0.parquet" in values


def test_what_is_gone_is_said(root, manifest):
    shutil.rmtree(root / "runs")
    told = lines(root, manifest, IDS[3])
    assert told["run"] == f"unknown: no longer in {root}/runs"
    assert told["judgements"].endswith("spscore 0.500")


def test_a_damaged_file_is_named(root, manifest):
    [path] = root.glob("releases/1.0/build-0/data/*/*/part-00000.parquet")
    path.write_bytes(b"no Parquet")
    with pytest.raises(JobError, match=r"part-00000\.parquet: not readable as Parquet"):
        trace(str(root), manifest, IDS[1])
