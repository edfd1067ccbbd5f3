"""score_corpus --new-only must read only files that no run of its signature has scored."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scored_runs import Run

GIVEN = ("--origin-column", "origin")


class Daily:
    """Runs the job over the folder ``pairs`` of a growing corpus, by run id and options."""

    def __init__(self, score: Callable[..., Run], folder: Path):
        self.score, self.pairs, self.root = score, folder / "pairs", folder / "out"

    def __call__(self, run_id: str, *given, fails: bool = False) -> Run:
        given = ("--input", self.pairs, *GIVEN, *given)
        run = self.score(self.root, *given, run_id=run_id)
        assert bool(run.code) == fails, run.stderr
        return run

    def add(self, name: str, *rows: pa.Table) -> None:
        self.pairs.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.concat_tables(rows), self.pairs / f"{name}.parquet")

    def rows(self, *run_ids: str) -> pd.DataFrame:
        folders = [self.root / "runs" / run_id / "scored" for run_id in run_ids]
        files = [file for folder in folders for file in folder.rglob("*.parquet")]
        return pd.concat([pq.ParquetFile(f).read(["pair_id", "n"]).to_pandas() for f in files])


@pytest.fixture(scope="module")
def saved(score, grow, tmp_path_factory) -> tuple[Daily, Run, Path]:
    """Returns the corpus, its run ``first``, and a copy of its folder; manifests name its files."""
    folder = tmp_path_factory.mktemp("daily") / "now"
    daily = Daily(score, folder)
    daily.add("monday", grow(40))
    daily.add("tuesday", grow(40, 40))
    first = daily("first")
    return daily, first, Path(shutil.copytree(folder, folder.with_name("saved")))


@pytest.fixture
def first(saved) -> Run:
    daily, run, copy = saved
    shutil.rmtree(daily.root.parent)
    shutil.copytree(copy, daily.root.parent)
    return run


@pytest.fixture
def later(saved, first) -> Daily:
    """Returns the corpus with the run ``first``."""
    return saved[0]


@pytest.fixture
def daily(later) -> Daily:
    """Returns the corpus without a run."""
    shutil.rmtree(later.root)
    return later


def total(run, key: str) -> int:
    return sum(rows[key] for rows in run.manifest["rows"].values())


def test_files_of_earlier_runs_are_left_out(daily, grow):
    first = daily("first", "--new-only")
    assert total(first, "scored") == 80
    assert first.manifest["earlier_runs"] == []
    [source] = first.manifest["inputs"]
    sizes = {
        file.as_uri().replace("///", "/"): file.stat().st_size for file in daily.pairs.iterdir()
    }
    assert {file["path"]: file["bytes"] for file in source["listing"]} == sizes

    new = grow(30, 80)
    daily.add("wednesday", new, new.slice(0, 5))
    second = daily("second", "--new-only")
    assert [total(second, key) for key in ("read", "scored", "duplicates")] == [35, 30, 5]
    assert second.manifest["earlier_runs"] == ["first"]
    both = daily.rows("first", "second")
    assert both["pair_id"].is_unique
    assert sorted(both["n"]) == list(range(110))

    third = daily("third", "--new-only")
    assert "nothing new to score" in third.stdout
    assert not third.folder.exists()
    assert total(daily("all"), "scored") == 110  # without the option, earlier runs are ignored


def test_a_file_that_changed_is_new(later, grow):
    later.add("tuesday", grow(41, 40))
    second = later("second", "--new-only")
    assert total(second, "read") == 41


def test_what_was_read_in_another_way_is_new(daily):
    """Files that were read with a limit, other length limits or another metric must count as new."""
    daily("other", "--tier", "paper", "--set", "model=null")
    daily("some", "--limit", "50")
    assert total(daily("first", "--new-only"), "scored") == 80
    longer = daily("longer", "--new-only", "--min-characters", "16")
    assert total(longer, "read") == 80


def test_a_manifest_that_cannot_be_read_stops_it(later, first):
    """An unreadable manifest must stop the job, because it may name the same files."""
    manifest = first.folder / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"format_version": 99}))
    assert f"{manifest}: its format_version is 99" in later("b", "--new-only", fails=True).error


def test_of_two_inputs_one_may_have_nothing_new(daily, score, grow, tmp_path):
    inputs = [
        {"path": str(daily.pairs), "origin_column": "origin", "license": "CC0"},
        {"path": str(tmp_path / "more"), "origin": "human"},
    ]
    config = tmp_path / "score.yaml"
    config.write_text(json.dumps({"inputs": inputs}))
    Path(tmp_path / "more").mkdir()
    pq.write_table(grow(5).drop(["origin"]), tmp_path / "more/a.parquet")
    given = ("--config", config, "--new-only")
    assert score(daily.root, *given, run_id="a").code == 0
    pq.write_table(grow(5, 5).drop(["origin"]), tmp_path / "more/b.parquet")
    run = score(daily.root, *given, run_id="b")
    assert run.code == 0, run.stderr
    assert run.manifest["rows"] == {
        "human": {"read": 5, "scored": 5, "quarantined": 0, "duplicates": 0}
    }
    dry = score(daily.root, *given, "--dry-run", run_id="c")
    assert "nothing new to score" in dry.stdout
