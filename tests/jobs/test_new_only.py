"""score_corpus --new-only must read only new files and pairs; --rescore must score earlier runs'
pairs again under another signature."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scored_runs import Run

from gaixie.jobs.errors import JobError
from gaixie.jobs.releases.store import unreleased_runs
from gaixie.jobs.scoring.chunks import ChunkScorer

GIVEN = ("--origin-column", "origin")
OTHER = ("--tier", "paper", "--set", "model=null")
"""Options that give another signature."""


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


def test_files_and_pairs_of_earlier_runs_are_left_out(daily, grow):
    first = daily("first", "--new-only")
    assert total(first, "scored") == 80
    assert first.manifest["earlier_runs"] == []
    [source] = first.manifest["inputs"]
    sizes = {
        file.as_uri().replace("///", "/"): file.stat().st_size for file in daily.pairs.iterdir()
    }
    assert {file["path"]: file["bytes"] for file in source["listing"]} == sizes

    new, old = grow(30, 80), grow(10, 35)
    daily.add("wednesday", new, old, old, new.slice(0, 5))
    second = daily("second", "--new-only")
    assert "1 of 3 files are new" in second.stderr
    assert [total(second, key) for key in ("read", "scored", "duplicates")] == [55, 30, 25]
    assert sum(second.manifest["known_pairs"].values()) == 20
    assert second.manifest["earlier_runs"] == ["first"]
    assert "20 of the duplicates are in earlier runs" in second.stdout
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
    assert [total(second, key) for key in ("read", "scored")] == [41, 1]


def test_what_was_read_in_another_way_is_new(daily, tmp_path):
    """Files read with a limit or with other length limits must count as new."""
    daily("other", "--limit", "70", *OTHER)
    daily("some", "--limit", "50")
    assert total(daily("first", "--new-only"), "scored") == 30  # 50 of the 80 pairs are known
    longer = daily("longer", "--new-only", "--min-characters", "16")
    assert total(longer, "read") == 80
    assert total(longer, "duplicates") + total(longer, "quarantined") == 80


def test_files_since(daily):
    assert "nothing new" in daily("none", "--since", "2999-01-01").stdout
    assert total(daily("all", "--since", "2001-01-01T12:00+02:00"), "scored") == 80


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


def rescored(later, score, run_id: str, *given, fails: bool = False):
    """Returns a run with --rescore under the other signature."""
    run = score(later.root, "--rescore", *given, *OTHER, run_id=run_id)
    assert bool(run.code) == fails, run.stderr
    return run


def test_a_new_signature_scores_what_earlier_runs_have(later, score, grow):
    short = pa.table({"n": [-1], "source": ["短句"], "paraphrase": ["句短"], "origin": ["llm"]})
    later.add("wednesday", grow(30, 80), grow(10, 35), short)
    second = later("second")
    refused = later("again", "--new-only", *OTHER, fails=True)
    assert (
        "monday.parquet: run 'second' scored it under another signature: --rescore" in refused.error
    )

    dry = rescored(later, score, "again", "unreleased", "--dry-run")
    assert "dry run: nothing was written" in dry.stdout
    assert not dry.folder.exists()
    again = rescored(later, score, "again", "unreleased")
    assert again.manifest["rescored"] == ["first", "second"]
    counts = [total(again, key) for key in ("read", "scored", "duplicates", "quarantined")]
    assert counts == [190, 110, 80, 0]  # without the short pair
    assert again.manifest["signature"] != second.manifest["signature"]
    both = later.rows("first", "second").drop_duplicates()
    key = {"by": "pair_id", "ignore_index": True}
    assert later.rows("again").sort_values(**key).equals(both.sort_values(**key))
    assert [*again.scored.columns] == [*second.scored.columns]
    assert not again.scored["spscore"].equals(second.scored["spscore"])
    assert "nothing new to score" in rescored(later, score, "none", "unreleased", "first").stdout
    assert unreleased_runs(str(later.root)) == ["again"]

    later.add("thursday", grow(5, 110), grow(5))
    thursday = later("thursday", "--new-only", *OTHER)
    assert [total(thursday, key) for key in ("read", "scored", "duplicates")] == [10, 5, 5]
    assert unreleased_runs(str(later.root)) == ["again", "thursday"]
    later("tomorrow")
    with pytest.raises(
        JobError, match=r"than run 'tomorrow': thursday; score their .* --rescore thursday, or"
    ):
        unreleased_runs(str(later.root))


def test_rescoring_goes_on_where_it_was_killed(later, score, monkeypatch):
    with monkeypatch.context() as patch:
        work = ChunkScorer._score_chunk

        def killed(self, chunk, *given):
            return work(self, chunk, *given) if chunk.number < 2 else 1 / 0

        patch.setattr(ChunkScorer, "_score_chunk", killed)
        dead = rescored(later, score, "again", "first", fails=True)
    assert not (dead.folder / "manifest.json").exists()
    again = rescored(later, score, "again", "first", "--resume")
    assert again.stderr.count(": already done") == 2
    assert [total(again, key) for key in ("read", "scored")] == [80, 80]


def test_mistakes_in_rescoring(later, first, score):
    for given, fault in (
        (("firts",), "--rescore firts: not a published run; published: first"),
        (("1.0",), "no release '1.0'; published: none"),
        (("first", "--limit", "5"), "--limit: not valid with --rescore"),
        (("first", "--input", later.pairs, *GIVEN), "--input: not valid with --rescore"),
    ):
        assert fault in rescored(later, score, "again", *given, fails=True).error
    first.files("scored")[0].unlink()
    fault = rescored(later, score, "again", "first", fails=True).error
    assert "first/scored: its files differ from the run's manifest" in fault
