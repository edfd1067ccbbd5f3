"""jobs/release_dataset.py: what a release holds, and that only whole releases are published."""

import io
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import NamedTuple

import datasets
import mlcroissant
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from manifests import run_manifest, write_scored
from servers import wait_for

from gaixie.jobs import clean_runs, release_dataset, show_run
from gaixie.jobs.releases import build
from gaixie.jobs.releases import store as release_store
from gaixie.udfs.command_line import run_command
from gaixie.udfs.features import FEATURES
from gaixie.udfs.storage import storage
from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.pair_id import pair_ids
from gaixie.udfs.text.splits import SPLITS, splits_of

ROOT = Path(__file__).parents[2]
SHARES = {"train": 0.7, "validation": 0.1, "test": 0.2}
NOTE = "the authors agreed"
GIVEN = ["--license", "CC-BY-4.0", "--license-note", NOTE]
GIVEN += ["--split", *SHARES.values(), "--shards-mb", 0.02]
OUTPUTS = ("structure", "synonyms", "meaning", "fluency", "spscore")
LINEAGE = ["n", "method", "version", "license", "run"]
"""Further columns of release 1.0: n was asked for; only run a has method and license, and only run
b a version that is text."""
COLUMNS = ["pair_id", "source", "paraphrase", *FEATURES, *OUTPUTS, "origin", "stage"]


class Outcome(NamedTuple):
    code: int
    stdout: str
    stderr: str

    @property
    def error(self) -> str:
        """Returns the one line that names the error."""
        lines = [line for line in self.stderr.splitlines() if ": done in " not in line]
        assert len(lines) == 1, self.stderr
        assert lines[0].startswith("release_dataset: error: "), self.stderr
        assert self.code == 2
        return lines[0]


def release(root: Path | str, *given) -> Outcome:
    """Calls the job in this process. Returns its outcome."""
    line = [str(word) for word in ("--root", root, *given)]
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        main = partial(release_dataset.main, line)
        code = run_command("release_dataset", main, mistakes=())
    return Outcome(code, out.getvalue(), err.getvalue())


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


def publish(root: Path, run_id: str, rows: pd.DataFrame) -> None:
    """Publishes a run of these pairs, as the scoring job does."""
    folder, sizes = root / "runs" / run_id, rows.groupby(["origin", "stage"]).size()
    write_scored(
        folder,
        {
            key: pa.Table.from_pandas(part.drop(columns=["origin", "stage"]), preserve_index=False)
            for key, part in rows.groupby(["origin", "stage"])
        },
    )
    stages = {origin: sizes[origin].to_dict() for origin in rows["origin"].unique()}
    read = {origin: sum(counts.values()) for origin, counts in stages.items()}
    files = [
        {
            "path": path.relative_to(folder).as_posix(),
            "bytes": path.stat().st_size,
            "sha256": storage.sha256(str(path)),
        }
        for path in sorted(folder.rglob("*.parquet"))
    ]
    manifest = run_manifest(
        run_id=run_id,
        stages=stages,
        rows={o: {"read": n, "scored": n} | NOT_SCORED for o, n in read.items()},
        files={"scored": files},
    )
    (folder / "manifest.json").write_text(manifest.to_json(), "utf-8")


NOT_SCORED = {"quarantined": 0, "duplicates": 0}


@pytest.fixture(scope="module")
def root(spark, grow, tmp_path_factory) -> Path:
    """Returns a root with two runs that share 100 pairs.

    Each source has a second paraphrase of another origin, where the source is written differently
    but normalises to the same.
    """
    root = tmp_path_factory.mktemp("release")
    random = np.random.default_rng(7)
    for run_id, first in (("a", 0), ("b", 80)):
        table = grow(180, first).to_pandas()
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
        rows["stage"] = np.searchsorted([0.2, 0.4 if run_id == "a" else 0.5, 0.6], score)
        if run_id == "a":
            own = {"group": (rows["n"] // 4).astype(str), "method": "versions"}
            rows = rows.assign(**own, version=1, license="CC-BY-2.0")  # a user's own version
        else:
            rows["version"] = "2"
        publish(root, run_id, rows)
    return root


@pytest.fixture(scope="module")
def scored(root) -> pd.DataFrame:
    """Returns the rows of stages 1 to 3 of both runs, the first run's first."""
    tables = []
    for run_id in ("a", "b"):
        for path in sorted((root / "runs" / run_id / "scored").rglob("*.parquet")):
            origin, stage = (part.partition("=")[2] for part in path.parts[-3:-1])
            table = pq.ParquetFile(path).read().to_pandas()
            tables.append(table.assign(origin=origin, stage=np.int32(stage), run=run_id))
    rows = pd.concat(tables, ignore_index=True)
    return rows[rows["stage"] > 0]


@pytest.fixture(scope="module")
def released(root) -> Path:
    """Returns the build folder of release 1.0; read-only."""
    done = release(root, "--runs", "a", "b", "--version", "1.0", *GIVEN, "--keep-columns", "n")
    assert done.code == 0, done.stderr
    assert f"{root}/releases/latest.json: 1.0" in done.stdout
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
    for name, run in {"method": "a", "license": "a", "version": "b"}.items():
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


def test_no_source_is_on_two_sides(rows):
    sources = rows["source"].map(normalise)
    assert (rows["source"] != sources).any()
    assert rows.groupby(sources)["origin"].nunique().max() > 1
    assert rows.groupby(sources)["split"].nunique().max() == 1
    assert rows["split"].tolist() == expected_splits(rows["source"])


@pytest.fixture(scope="module")
def second(root, released) -> Path:
    """Makes release 1.1 of the run whose pairs have a column group; here a group has four
    sources."""
    given = ["--runs", "a", "--version", "1.1", "--license", "Our own licence", *GIVEN[2:]]
    done = release(root, *given, "--stages", 0, 3)
    assert done.code == 0, done.stderr
    return build_of(root, "1.1")


def test_no_group_is_on_two_sides(root, second, scored):
    rows = read_rows([*second.rglob("*.parquet")])
    assert rows.groupby("group")["source"].nunique().max() > 2
    assert rows.groupby("group")["split"].nunique().max() == 1
    assert rows["split"].tolist() == expected_splits(rows["group"])
    assert {*rows["stage"]} == {0, 3}
    expected = scored[(scored["run"] == "a") & (scored["stage"] == 3)]
    assert {*rows[rows["stage"] == 3]["pair_id"]} == {*expected["pair_id"]}
    text = (second / "README.md").read_text("utf-8")
    assert "no group is in two splits" in text
    head = yaml.safe_load(text.split("---\n")[1])
    assert (head["license"], head["license_name"]) == ("other", "our-own-licence")


def test_latest_moves_and_rolls_back(root, released, second):
    place = str(root)
    assert release_store.read_latest(place) == "1.1"
    listed = release(root, "--list").stdout
    assert [line.split()[0] for line in listed.splitlines() if "latest" in line] == ["1.1"]
    assert release(root, "--set-latest", "1.0").code == 0
    assert release_store.read_latest(place) == "1.0"
    pointer = json.loads((root / "releases" / "latest.json").read_text())
    assert (root / pointer["manifest"]).exists()
    assert "no release '3.0'" in release(root, "--set-latest", "3.0").error


# What reads it


def test_datasets_reads_it(released, rows, tmp_path):
    cache = str(tmp_path)
    for name, part in [
        ("default", rows),
        *((f"stage-{s}", rows[rows["stage"] == s]) for s in (1, 3)),
    ]:
        loaded = datasets.load_dataset(str(released), name, cache_dir=cache)
        assert {split: len(table) for split, table in loaded.items()} == {
            split: int(count) for split, count in part["split"].value_counts().items()
        }
    features = loaded["train"].features
    assert features["stage"].dtype == "int32"
    assert features["origin"].dtype == "string"
    files = f"{released}/data/split=train/subset=stage-1/*.parquet"
    plain = datasets.load_dataset("parquet", data_files=files, split="train", cache_dir=cache)
    assert plain.column_names == [*COLUMNS, *LINEAGE]
    assert set(plain["stage"]) == {1}


def test_card(released, manifest):
    text = (released / "README.md").read_text("utf-8")
    head = yaml.safe_load(text.split("---\n")[1])
    assert head["license"] == "cc-by-4.0"
    assert head["language"] == ["zh"]
    assert head["size_categories"] == ["n<1K"]
    assert datasets.load.DatasetCard(text).data.license == "cc-by-4.0"
    assert manifest["signature"] in text
    assert manifest["input_licenses"] == ["CC-BY-2.0"]
    assert "CC-BY-2.0" in text.split("## Licence")[1]
    assert NOTE in text.split("## Licence")[1]
    for run_ in manifest["runs"]:
        assert run_["manifest_sha256"] in text
        digest = storage.sha256(
            str(released.parents[2] / "runs" / run_["run_id"] / "manifest.json")
        )
        assert run_["manifest_sha256"] == digest
    assert "$" not in text


def test_croissant(released, rows, caplog):
    with caplog.at_level(logging.WARNING):
        described = mlcroissant.Dataset(jsonld=str(released / "croissant.json"))
    issues = described.metadata.ctx.issues
    assert not issues.errors
    assert not issues.warnings
    assert not caplog.records
    part = rows[(rows["split"] == "train") & (rows["stage"] == 3)]
    records = [*described.records("train-stage-3")]
    found = {record["train-stage-3/pair_id"].decode() for record in records}
    assert found == set(part["pair_id"])
    assert len(records) == len(part)
    assert {record["train-stage-3/stage"] for record in records} == {3}


# Verify


def test_verify(root, released):
    done = release(root, "--verify", "1.0")
    assert done.code == 0, done.stdout + done.stderr
    assert "no faults" in done.stdout
    assert "no release '9.9'; published: 1.0" in release(root, "--verify", "9.9").error


@pytest.fixture
def copy(root, released, tmp_path) -> Path:
    """Returns a root with a copy of release 1.0, for a test to damage."""
    shutil.copytree(released.parent, tmp_path / "releases" / "1.0")
    return tmp_path


def some_file(root: Path, pattern: str = "data/split=train/*/*.parquet") -> Path:
    return sorted(build_of(root, "1.0").glob(pattern))[0]


def flip_a_byte(path: Path) -> str:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    return "SHA-256"


def remove(path: Path) -> str:
    path.unlink()
    return "missing"


@pytest.mark.parametrize(
    ("spoil", "name"),
    [(flip_a_byte, "data/split=train/*/*.parquet"), (remove, "*.json")],
)
def test_verify_names_the_spoilt_file(copy, spoil, name):
    path = some_file(copy, name)
    expected = spoil(path)
    path.with_name("stray").touch()
    done = release(copy, "--verify", "1.0")
    assert done.code == 1
    line = done.stdout.splitlines()[0]
    assert line.startswith(path.relative_to(build_of(copy, "1.0")).as_posix())
    assert expected in line
    assert "stray: not in the manifest" in done.stdout


# What is refused


def test_dry_run(root, released):
    before = sorted((root / "releases").rglob("*"))
    done = release(root, "--runs", "a", "b", "--version", "2.0", *GIVEN, "--dry-run")
    assert done.code == 0
    total = next(line.split() for line in done.stdout.splitlines() if line.startswith("total"))
    manifest = json.loads((released.parent / "manifest.json").read_text("utf-8"))
    assert int(total[-1]) == sum(rows["released"] for rows in manifest["rows"].values())
    assert sorted((root / "releases").rglob("*")) == before


OK = {"--runs": "a", "--version": "3.0", "--license": "CC-BY-2.0"}
BAD = [
    ("--runs", "half", "runs/half/manifest.json"),
    ("--runs", "a ../runs/a", "--runs"),
    ("--runs", "a other", "'other'"),
    ("--license", "MIT", "'CC-BY-2.0'"),
    ("--version", "../1", "--version"),
    ("--version", "1.0", "--version"),
    ("--split", "0.9 0.2 0.1", "--split"),
    ("--keep-columns", "m", "--keep-columns m"),
]
"""An option, its values, and what the error names."""


@pytest.fixture(scope="module")
def crowded(root, released) -> Path:
    """Returns the root with runs that cannot be released."""
    (root / "runs" / "half" / "scored").mkdir(parents=True)
    (root / "runs" / "half" / "scored" / "x.parquet").touch()
    shutil.copytree(root / "runs" / "b", root / "runs" / "other")
    path = root / "runs" / "other" / "manifest.json"
    path.write_text(path.read_text("utf-8").replace("model:lightgbm", "model:other"))
    yield root
    for name in ("half", "other"):
        shutil.rmtree(root / "runs" / name)


@pytest.mark.parametrize(("option", "words", "named"), BAD)
def test_bad_input(crowded, option, words, named):
    given = []
    for name, values in (OK | {option: words}).items():
        given += [name, *values.split()] if values else []
    assert named in release(crowded, *given).error
    assert not (crowded / "releases" / "3.0").exists()


def add(path: Path) -> str:
    shutil.copy(path, path.with_name("more.parquet"))
    return "not in the manifest"


@pytest.mark.parametrize("spoil", [flip_a_byte, remove, add])
def test_a_run_whose_files_changed_is_used_for_nothing(root, tmp_path, spoil, monkeypatch, capsys):
    shutil.copytree(root / "runs" / "a", tmp_path / "runs" / "a")
    verify = [str(tmp_path / "runs" / "a"), "--verify"]
    assert show_run.main(verify) == 0
    path = tmp_path / "runs/a/scored/origin=llm/stage=3/part-00000.parquet"
    fault = spoil(path)
    assert show_run.main(verify) == 1
    first, last = capsys.readouterr().out.splitlines()[-2:]
    assert first.startswith("scored/origin=llm/stage=3/")
    assert fault in first
    assert last.endswith("files: 1 faults")
    if spoil is not flip_a_byte:  # the others are found without Spark
        monkeypatch.setattr(build, "start_session", None)
    line = release(tmp_path, "--runs", "a", "--version", "1.0", "--license", "CC-BY-2.0").error
    assert str(path.parent) in line
    assert fault in line
    assert not [*tmp_path.rglob("releases/1.0/*")]


def test_accounts_that_do_not_close(root, tmp_path):
    """If a run lost rows after it was published, there must be no release and nothing left."""
    shutil.copytree(root / "runs" / "a", tmp_path / "runs" / "a")
    path = tmp_path / "runs" / "a" / "manifest.json"
    manifest = json.loads(path.read_text("utf-8"))
    manifest["stages"]["llm"]["2"] += 1
    path.write_text(json.dumps(manifest))
    done = release(tmp_path, "--runs", "a", "--version", "1.0", "--license", "CC-BY-2.0")
    assert done.code == 1
    line, _, log = done.stderr.splitlines()[-1].rpartition(" ")
    assert re.search(r"llm, stage 2: .* nothing was published", line)
    Path(log).unlink()
    assert [*(tmp_path / "releases" / "1.0").iterdir()] == []


def test_an_answer_that_never_comes(root, tmp_path, monkeypatch):
    """If the store does not confirm the manifest, its files must stay: it may have been created.
    Then no run is left to release."""
    for name in "ab":  # other tests add runs
        shutil.copytree(root / "runs" / name, tmp_path / "runs" / name)
    create = storage.create

    def create_and_lose(uri: str, content: str) -> None:
        create(uri, content)
        raise ConnectionError(f"{uri}: the store cannot be reached")

    given = ("--unreleased", "--license", "cc-by-2.0")
    with monkeypatch.context() as patch:
        patch.setattr(storage, "create", create_and_lose)
        lost = release(tmp_path, *given, "--version", "1.0")
    assert lost.code == 2
    assert "cannot be reached" in lost.stderr.splitlines()[-1]
    assert release(tmp_path, "--verify", "1.0").code == 0
    manifest = json.loads((tmp_path / "releases/1.0/manifest.json").read_text("utf-8"))
    assert [entry["run_id"] for entry in manifest["runs"]] == ["a", "b"]
    again = release(tmp_path, *given, "--version", "1.1")
    told = f"{tmp_path}: no unreleased runs: nothing to release\n"
    assert (again.code, again.stdout) == (0, told)
    assert not (tmp_path / "releases/1.1").exists()


# Killed


@pytest.mark.long
@pytest.mark.spark
def test_killed_while_it_writes(root, rows, tmp_path, spark):
    """A killed release may leave only a build folder, which the next one ignores and clean deletes.
    The next one has the same rows in the same order, however the input is partitioned."""
    shutil.copytree(root / "runs", tmp_path / "runs")
    given = ["--runs", "a", "b", "--version", "1.0", *GIVEN, "--keep-columns", "n"]
    line = [sys.executable, ROOT / "jobs/release_dataset.py", "--root", tmp_path, *given]
    environment = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    process = subprocess.Popen(
        [str(word) for word in line],
        cwd=ROOT,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    folder = tmp_path / "releases" / "1.0"
    wait_for(lambda: any(folder.glob("build-*/data/**/*.parquet")), "the data", process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    [left] = folder.iterdir()
    assert left.name.startswith("build-")
    assert "no published release" in release(tmp_path, "--list").error
    assert "no release '1.0'" in release(tmp_path, "--verify", "1.0").error

    spark.conf.set("spark.sql.files.maxPartitionBytes", "3k")
    done = release(tmp_path, *given)
    spark.conf.set("spark.sql.files.maxPartitionBytes", "16m")
    assert done.code == 0, done.stderr
    again = read_rows([*build_of(tmp_path, "1.0").rglob("*.parquet")])
    pd.testing.assert_frame_equal(again, rows, check_exact=True)
    assert clean_runs.main([str(tmp_path), "--older-than", "0"]) == 0
    names = {path.name for path in folder.iterdir()}
    assert names == {"manifest.json", build_of(tmp_path, "1.0").name}
