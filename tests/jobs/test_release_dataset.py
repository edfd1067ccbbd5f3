"""jobs/release_dataset.py: what a release holds, and that only whole releases are published."""

import json
import logging
import os
import shutil
import signal
from pathlib import Path

import datasets
import mlcroissant
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import yaml
from manifests import write_scored
from scored_runs import PARTITIONING
from servers import wait_for

from gaixie.jobs import clean_runs, release_dataset, show_run
from gaixie.jobs.releases import build
from gaixie.jobs.releases import store as release_store
from gaixie.udfs.command_line import UserError
from gaixie.udfs.features import FEATURES
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.storage import storage
from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.pair_id import pair_ids
from gaixie.udfs.text.splits import SPLITS, splits_of

SHARES = {"train": 0.7, "validation": 0.1, "test": 0.2}
NOTE = "the authors agreed"
GIVEN = ["--license", "CC-BY-4.0", "--license-note", NOTE]
GIVEN += ["--split", *SHARES.values(), "--shards-mb", 0.02]
FIRST = ["--runs", "a", "b", "--version", "1.0", *GIVEN, "--keep-columns", "n"]
LINEAGE = ["n", "group", "method", "version", "license", "run"]
"""Further columns of release 1.0: n was asked for; only run a has group, method and license, and
only run b a version that is text."""
COLUMNS = ["pair_id", "source", "paraphrase", *FEATURES, *OUTPUTS, "origin", "stage"]


def release(root: Path, *given: object) -> int:
    """Calls the job in this process."""
    return release_dataset.main([str(word) for word in ("--root", root, *given)])


def refused(root: Path, *given: object) -> str:
    """Returns the line that says what is wrong."""
    with pytest.raises(UserError) as stopped:
        release(root, *given)
    assert "\n" not in str(stopped.value)
    return str(stopped.value)


def build_of(root: Path, version: str) -> Path:
    folder = root / "releases" / version
    return folder / json.loads((folder / "manifest.json").read_text("utf-8"))["build"]


def read_rows(files: list[Path]) -> pd.DataFrame:
    """Returns the rows of data files unchanged, with the split, subset and file of each."""
    tables = []
    for path in sorted(files):
        table = pq.ParquetFile(path).read().to_pandas()
        split, subset = (part.partition("=")[2] for part in path.parts[-3:-1])
        part = path.name.split("-")[1]
        tables.append(table.assign(split=split, subset=subset, file=part))
    return pd.concat(tables, ignore_index=True)


@pytest.fixture(scope="module")
def root(spark, grow, tmp_path_factory) -> Path:
    """Returns a root with two runs that share 200 pairs.

    Each source has a second paraphrase of another origin, where the source is written differently
    but normalises to the same.
    """
    root = tmp_path_factory.mktemp("release")
    random = np.random.default_rng(7)
    for run_id, first in (("a", 0), ("b", 80)):
        table = grow(180, first).to_pandas().assign(origin="parallel")
        turned = np.roll(table["paraphrase"].to_numpy(), 1)
        other = table.assign(source=table["source"] + "　", paraphrase=turned, origin="llm")
        rows = pd.concat([table, other], ignore_index=True)
        texts = [pa.array(rows[name]) for name in ("source", "paraphrase", "origin")]
        ids = pair_ids(*texts).to_pylist()
        rows.insert(0, "pair_id", ids)
        for name in (*FEATURES, *OUTPUTS):
            rows[name] = random.random(len(rows), np.float32)
        score = np.array([int(one[:8], 16) / 2**32 for one in ids], np.float32)
        rows["spscore"] = score
        cuts = [0.2, 0.4 if run_id == "a" else 0.5, 0.6]
        rows["stage"] = np.searchsorted(cuts, score)
        if run_id == "a":
            own = {"group": (rows["n"] // 4).astype(str), "method": "versions"}
            rows = rows.assign(**own, version=1, license="CC-BY-2.0")  # a user's own version
        else:
            rows["version"] = "2"
        tables = {
            key: pa.Table.from_pandas(part.drop(columns=["origin", "stage"]), preserve_index=False)
            for key, part in rows.groupby(["origin", "stage"])
        }
        write_scored(root / "runs" / run_id, tables)
        change(root, run_id, "cuts", {"parallel": cuts})
    return root


def change(root: Path, run_id: str, key: str, value: object) -> None:
    """Changes a key of a run's manifest."""
    path = root / "runs" / run_id / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {key: value}))


@pytest.fixture(scope="module")
def scored(root) -> pd.DataFrame:
    """Returns the rows of stages 1 to 3 of both runs, the first run's first."""
    tables = []
    for run_id in ("a", "b"):
        files = ds.dataset(root / "runs" / run_id / "scored", partitioning=PARTITIONING)
        tables.append(files.to_table().to_pandas().assign(run=run_id))
    rows = pd.concat(tables, ignore_index=True)
    return rows[rows["stage"] > 0]


@pytest.fixture(scope="module")
def released(root) -> Path:
    """Returns the build folder of release 1.0; read-only."""
    assert release(root, *FIRST) == 0
    return build_of(root, "1.0")


@pytest.fixture(scope="module")
def manifest(released) -> dict:
    return json.loads((released.parent / "manifest.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def rows(released) -> pd.DataFrame:
    return read_rows([*released.rglob("*.parquet")])


# What a release holds


def test_rows_are_the_runs_rows_once(rows, scored, manifest):
    once = scored.drop_duplicates("pair_id", keep="first")
    assert len(scored) - len(once) > 50
    assert (scored.groupby("pair_id")["stage"].nunique() > 1).any()  # the first run's stage wins
    columns = [*COLUMNS, *LINEAGE]
    for name, run in {"group": "a", "method": "a", "license": "a", "version": "b"}.items():
        once = once.assign(**{name: once[name].astype(object).where(once["run"] == run, None)})
    found = rows[columns].sort_values("pair_id", ignore_index=True)
    expected = once[columns].sort_values("pair_id", ignore_index=True)
    pd.testing.assert_frame_equal(found, expected, check_exact=True)
    for origin, counts in manifest["rows"].items():
        in_runs = int((scored["origin"] == origin).sum())
        left = int((once["origin"] == origin).sum())
        assert counts == {"in_runs": in_runs, "duplicates": in_runs - left, "released": left}


def test_files(released, rows, manifest):
    """Files must have plain columns of the right types, with the stage; folders must name them."""
    listed = {entry["path"]: entry for entry in manifest["files"]}
    found = {path.relative_to(released).as_posix(): path for path in released.rglob("*")}
    assert listed.keys() == {name for name, path in found.items() if path.is_file()}
    assert {"README.md", "croissant.json"} < listed.keys()
    for name, entry in listed.items():
        assert entry["bytes"] == found[name].stat().st_size
        assert entry["sha256"] == storage.sha256(str(found[name]))
        if name.endswith(".parquet"):
            schema = pq.read_schema(found[name])
            assert schema.names == [*COLUMNS, *LINEAGE]
            assert schema.field("stage").type == pa.int32()
            assert {schema.field(c).type for c in (*FEATURES, *OUTPUTS)} == {pa.float32()}
            assert entry["rows"] == pq.read_metadata(found[name]).num_rows
    assert (rows["subset"] == "stage-" + rows["stage"].astype(str)).all()
    table = rows.groupby(["split", "stage", "origin"]).size()
    for (split, stage, origin), count in table.items():
        assert manifest["counts"][split][str(stage)][origin] == count
    assert set(manifest["counts"]) == set(SPLITS)


def expected_splits(keys: pd.Series) -> list[str]:
    return [SPLITS[k] for k in splits_of(pa.array(keys), [*SHARES.values()], 13)]


def test_no_group_is_on_two_sides(rows):
    """A pair without a group counts by its source, however that is written."""
    alone = rows[rows["group"].isna()]
    sources = alone["source"].map(normalise)
    assert alone.groupby(sources)["source"].nunique().max() > 1
    assert alone.groupby(sources)["split"].nunique().max() == 1
    assert rows.groupby("group")["source"].nunique().max() > 2
    assert rows["split"].tolist() == expected_splits(rows["group"].fillna(rows["source"]))


@pytest.fixture(scope="module")
def second(root, released) -> Path:
    """Makes release 1.1 of a run alone.

    The store does not confirm its manifest. Its files must stay, since the manifest may exist.
    """
    create = storage.create

    def create_and_lose(uri: str, content: str) -> None:
        create(uri, content)
        raise ConnectionError(f"{uri}: the store cannot be reached")

    given = ["--runs", "a", "--version", "1.1", "--license", "Our own licence", *GIVEN[2:]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage, "create", create_and_lose)
        assert "cannot be reached" in refused(root, *given, "--stages", 0, 3)
    return build_of(root, "1.1")


def test_a_release_of_one_run(root, second, scored):
    rows = read_rows([*second.rglob("*.parquet")])
    assert {*rows["stage"]} == {0, 3}
    expected = scored[(scored["run"] == "a") & (scored["stage"] == 3)]
    assert {*rows[rows["stage"] == 3]["pair_id"]} == {*expected["pair_id"]}
    text = (second / "README.md").read_text("utf-8")
    assert "cut at different scores" not in text
    assert yaml.safe_load(text.split("---\n")[1])["license_name"] == "our-own-licence"


def test_latest_moves_and_rolls_back(root, released, second, capsys):
    assert release_store.read_latest(str(root)) == "1.0"
    assert release(root, "--set-latest", "1.1") == release(root, "--list") == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed if "(latest)" in line] == ["1.1"]
    assert release(root, "--set-latest", "1.0") == 0
    pointer = json.loads((root / "releases" / "latest.json").read_text())
    assert (root / pointer["manifest"]).parent.name == "1.0"
    assert "no release '3.0'" in refused(root, "--set-latest", "3.0")


# What reads it


def test_datasets_reads_it(released, rows, tmp_path):
    parts = {"default": rows, "stage-1": rows[rows["stage"] == 1]}
    for name, part in parts.items():
        loaded = datasets.load_dataset(str(released), name, cache_dir=str(tmp_path))
        found = {split: len(table) for split, table in loaded.items()}
        assert found == part["split"].value_counts().to_dict()
    assert loaded["train"].column_names == [*COLUMNS, *LINEAGE]
    features = loaded["train"].features
    assert (features["stage"].dtype, features["origin"].dtype) == ("int32", "string")
    assert set(loaded["train"]["stage"]) == {1}


def test_card(root, released, manifest):
    text = (released / "README.md").read_text("utf-8")
    head = yaml.safe_load(text.split("---\n")[1])
    assert (head["license"], head["language"]) == ("cc-by-4.0", ["zh"])
    assert datasets.load.DatasetCard(text).data.license == "cc-by-4.0"
    assert manifest["signature"] in text
    assert "no group is in two splits" in text
    assert "| b | parallel | 0.200 / 0.500 / 0.600 |" in text
    assert manifest["input_licenses"] == ["CC-BY-2.0"]
    licence = text.split("## Licence")[1]
    assert "CC-BY-2.0" in licence
    assert NOTE in licence
    for run in manifest["runs"]:
        digest = storage.sha256(str(root / "runs" / run["run_id"] / "manifest.json"))
        assert run["manifest_sha256"] == digest
        assert digest in text


def test_croissant(released, rows, caplog):
    with caplog.at_level(logging.WARNING):
        described = mlcroissant.Dataset(jsonld=str(released / "croissant.json"))
    issues = described.metadata.ctx.issues
    assert [*issues.errors, *issues.warnings, *caplog.records] == []
    part = rows[(rows["split"] == "train") & (rows["stage"] == 3)]
    records = [*described.records("train-stage-3")]
    found = sorted(record["train-stage-3/pair_id"].decode() for record in records)
    assert found == sorted(part["pair_id"])
    assert {record["train-stage-3/stage"] for record in records} == {3}


# Verify


def test_verify(root, released, second, tmp_path, capsys):
    for version in ("1.0", "1.1"):
        assert release(root, "--verify", version) == 0
    assert "no release '9.9'" in refused(root, "--verify", "9.9")
    shutil.copytree(released.parent, tmp_path / "releases" / "1.0")
    folder = build_of(tmp_path, "1.0")
    damaged, gone = sorted(folder.rglob("*.parquet"))[:2]
    spoil(damaged, "SHA-256")
    spoil(gone, "missing")
    (folder / "stray").touch()
    capsys.readouterr()
    assert release(tmp_path, "--verify", "1.0") == 1
    faults = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())
    assert "SHA-256" in faults[damaged.relative_to(folder).as_posix()]
    assert "missing" in faults[gone.relative_to(folder).as_posix()]
    assert "not in the manifest" in faults["stray"]
    assert len(faults) == 4  # and a last line


def spoil(path: Path, fault: str) -> None:
    """Does to a file what --verify calls by these words."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    if fault == "missing":
        path.unlink()
    else:
        (path if fault == "SHA-256" else path.with_name("more.parquet")).write_bytes(data)


# What is refused


def test_dry_run(root, manifest, capsys):
    before = sorted((root / "releases").rglob("*"))
    assert release(root, "--runs", "a", "b", "--version", "2.0", *GIVEN, "--dry-run") == 0
    lines = capsys.readouterr().out.splitlines()
    total = next(line.split() for line in lines if line.startswith("total"))
    assert int(total[-1]) == sum(rows["released"] for rows in manifest["rows"].values())
    assert release(root, "--unreleased", "--version", "2.0", *GIVEN) == 0  # all runs are released
    assert sorted((root / "releases").rglob("*")) == before


BAD = [
    ("--runs half", "runs/half/manifest.json"),
    ("--runs a ../runs/a", "--runs"),
    ("--runs a other", "'other'"),
    ("--license MIT", "'CC-BY-2.0'"),
    ("--version ../1", "--version"),
    ("--version 1.0", "--version"),
    ("--split 0.9 0.2 0.1", "--split"),
    ("--keep-columns m", "--keep-columns m"),
]
"""What is given, and what the error names."""


@pytest.fixture
def copy(root, tmp_path) -> Path:
    """Returns a root with the same runs, for a test to damage."""
    shutil.copytree(root / "runs", tmp_path / "runs")
    return tmp_path


def test_bad_input(copy):
    (copy / "runs/half/scored").mkdir(parents=True)
    shutil.copytree(copy / "runs/b", copy / "runs/other")
    path = copy / "runs/other/manifest.json"
    path.write_text(path.read_text("utf-8").replace("model:lightgbm", "model:other"))
    storage.write(f"{copy}/releases/1.0/manifest.json", "{}")
    for words, named in BAD:
        given = ["--runs", "a", "--version", "3.0", "--license", "CC-BY-2.0", *words.split()]
        assert named in refused(copy, *given), words
        assert not (copy / "releases/3.0").exists()


ALONE = ["--runs", "a", "--version", "1.0", "--license", "CC-BY-2.0"]


@pytest.mark.parametrize("fault", ["SHA-256", "missing", "not in the manifest"])
def test_a_run_whose_files_changed_is_used_for_nothing(copy, fault, monkeypatch, capsys):
    path = copy / "runs/a/scored/origin=llm/stage=3/part-00000.parquet"
    assert show_run.main([str(copy / "runs/a"), "--verify"]) == 0
    capsys.readouterr()
    spoil(path, fault)
    assert show_run.main([str(copy / "runs/a"), "--verify"]) == 1
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("scored/origin=llm/stage=3/")
    assert fault in first
    assert last.endswith("files: 1 faults")
    if fault != "SHA-256":  # the others are found without Spark
        monkeypatch.setattr(build, "start_session", None)
    line = refused(copy, *ALONE)
    assert str(path.parent) in line
    assert fault in line
    assert not [*copy.rglob("releases/1.0/*")]


def test_licences_are_compared_before_spark_starts(copy, monkeypatch):
    for run_id, license in (("a", "CC-BY-2.0"), ("b", "ODbL")):
        change(copy, run_id, "settings", {"inputs": [{"license": license}, {"license": "none"}]})
        read = {"path": "x", "format": "jsonl", "bytes": 1}
        change(copy, run_id, "inputs", [read | {"files": 1}, read | {"files": 0}])
    monkeypatch.setattr(build, "start_session", None)
    given = ["--runs", "a", "b", "--version", "1.0", "--license", "MIT"]
    assert "declare 'CC-BY-2.0', 'ODbL'" in refused(copy, *given)


def test_accounts_that_do_not_close(copy):
    """If a run lost rows after it was published, there must be no release and nothing left."""
    stages = json.loads((copy / "runs/a/manifest.json").read_text("utf-8"))["stages"]
    stages["llm"]["2"] += 1
    change(copy, "a", "stages", stages)
    with pytest.raises(RuntimeError, match=r"^llm, stage 2: [^\n]* nothing was published$"):
        release(copy, *ALONE)
    assert [*(copy / "releases" / "1.0").iterdir()] == []


# Killed


@pytest.mark.long
@pytest.mark.spark
def test_killed_while_it_writes(copy, rows, launch, spark):
    """A killed release may leave only a build folder, which the next one ignores and clean deletes.
    The next one has the same rows in the same order, however the input is partitioned."""
    process = launch("release_dataset.py", "--root", copy, *FIRST)
    folder = copy / "releases" / "1.0"
    wait_for(lambda: any(folder.glob("build-*/data/**/*.parquet")), "the data", process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    [left] = folder.iterdir()
    assert left.name.startswith("build-")
    assert "no published release" in refused(copy, "--list")

    spark.conf.set("spark.sql.files.maxPartitionBytes", "3k")
    assert release(copy, *FIRST) == 0
    spark.conf.set("spark.sql.files.maxPartitionBytes", "16m")
    again = read_rows([*build_of(copy, "1.0").rglob("*.parquet")])
    pd.testing.assert_frame_equal(again, rows, check_exact=True)
    assert clean_runs.main([str(copy), "--older-than", "0"]) == 0
    names = {path.name for path in folder.iterdir()}
    assert names == {"manifest.json", build_of(copy, "1.0").name}
