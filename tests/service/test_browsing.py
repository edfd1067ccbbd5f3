"""A run in the browser: queries against pandas, the paths below /v1/run, and the command
show_run.py --serve."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from contextlib import closing
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from manifests import release_manifest, write_scored
from servers import free_port, wait_for
from services import answers, scored_examples
from shared import ROOT
from starlette.testclient import TestClient

from gaixie.service import browsing
from gaixie.service.app import make_app
from gaixie.service.browsing import BINS, SCORES, BrowsingPart, Filter, Pairs
from gaixie.service.settings import ServiceSettings
from gaixie.udfs.meaning.explain import explainer
from gaixie.udfs.spscore import SPScore
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import read_run

ROWS = 400
TEXTS = ["图书馆", "公园", "今天%", "_好", "' OR 1=1 --", '"', "天气", "市"]


def write_run(folder: Path, table: pd.DataFrame) -> str:
    by = table.groupby(["origin", "stage"])
    tables = {key: pa.Table.from_pandas(part.drop(columns=by.keys)) for key, part in by}
    return write_scored(folder, tables)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    random = np.random.default_rng(5)
    table = pd.DataFrame({"pair_id": [f"{k:04x}" for k in random.permutation(ROWS)]})
    for side in ("source", "paraphrase"):
        table[side] = ["".join(random.choice(TEXTS, 3)) for _ in range(ROWS)]
    table["origin"] = random.choice(["llm", "human"], ROWS)
    table["stage"] = random.integers(0, 4, ROWS)
    for name in SCORES:  # few distinct values, so many are equal
        table[name] = (random.integers(0, 21, ROWS) / 20).astype(np.float32)
    return table


@pytest.fixture(scope="module")
def pairs(tmp_path_factory, table):
    uri = write_run(tmp_path_factory.mktemp("runs") / "tiny", table)
    read = []
    made = Pairs(uri, read_run(uri), read.append)
    assert sum(read) == ROWS
    yield made
    made.close()


bound = st.one_of(st.none(), st.integers(0, 20).map(lambda k: k / 20))
bounds = dict.fromkeys(("min_spscore", "max_spscore", "min_meaning", "max_fluency"), bound)
filters = st.builds(
    Filter,
    origin=st.sampled_from([None, "llm", "human", "other"]),
    stage=st.sampled_from([None, 0, 1, 2, 3, 9]),
    text=st.sampled_from([None, "", *TEXTS, "图书馆公园"]),
    **bounds,
)


def by_pandas(table: pd.DataFrame, wanted: Filter) -> pd.DataFrame:
    kept = pd.Series(True, table.index)
    for name in ("origin", "stage"):
        if (value := getattr(wanted, name)) is not None:
            kept &= table[name] == value
    if wanted.text:
        both = table["source"] + "\n" + table["paraphrase"]
        kept &= both.str.contains(wanted.text, regex=False)
    for name in SCORES:
        low, high = getattr(wanted, f"min_{name}"), getattr(wanted, f"max_{name}")
        kept &= table[name] >= np.float32(0 if low is None else low)
        kept &= table[name] <= np.float32(1 if high is None else high)
    return table[kept]


@given(filters, st.sampled_from(SCORES), st.booleans(), st.integers(9, 90))
@settings(max_examples=60)
def test_pages_are_all_rows_in_order(pairs, table, wanted, sort, descending, limit):
    ascending = [not descending, True]
    expected = by_pandas(table, wanted).sort_values([sort, "pair_id"], ascending=ascending)
    found: list[dict] = []
    while page := pairs.page(pairs.cursor(), wanted, limit, sort, descending, len(found)):
        found += page
    assert [row["pair_id"] for row in found] == expected["pair_id"].tolist()
    for row, (_, other) in zip(found[:3], expected.iterrows(), strict=False):
        assert row == other[[*row]].to_dict()


@given(filters)
@settings(max_examples=40)
def test_histograms_count_all_rows(pairs, table, wanted):
    kept = by_pandas(table, wanted)
    count, counts = pairs.histograms(pairs.cursor(), wanted)
    assert count == len(kept)
    for name in SCORES:
        bins = np.minimum(np.floor(kept[name].to_numpy() * np.float32(BINS)), BINS - 1).astype(int)
        assert counts[name] == np.bincount(bins, minlength=BINS).tolist()


@given(filters, st.integers(1, 60), st.integers(-5, 5))
@settings(max_examples=30)
def test_samples_and_selections(pairs, table, wanted, count, seed):
    known = {*by_pandas(table, wanted)["pair_id"]}

    def drawn(seed: int) -> list[str]:
        return [row["pair_id"] for row in pairs.page(pairs.cursor(), wanted, count, seed=seed)]

    sample = drawn(seed)
    assert len({*sample}) == len(sample) == min(count, len(known))
    assert {*sample} <= known
    assert drawn(seed) == sample
    if len(known) > 100 and count > 30:
        assert drawn(seed + 1) != sample
    pieces = b"".join(pairs.export(pairs.cursor(), wanted, "parquet"))
    exported = pq.read_table(pa.BufferReader(pieces))["pair_id"].to_pylist()
    assert sorted(exported) == sorted(known)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_an_export_comes_in_pieces(pairs, table, form, monkeypatch):
    """The pieces of an export must form one file that has every row once."""
    monkeypatch.setattr(browsing, "PIECE", 150)
    pieces = [*pairs.export(pairs.cursor(), Filter(), form)]
    assert len(pieces) == 4  # three with rows, and the end
    read = pq.read_table if form == "parquet" else pa.csv.read_csv
    exported = read(pa.BufferReader(b"".join(pieces))).to_pandas()
    found, expected = (one.set_index("pair_id").sort_index() for one in (exported, table))
    pd.testing.assert_frame_equal(found[[*expected]], expected, check_dtype=False, rtol=1e-6)


def test_no_question_reaches_another_file(pairs, tmp_path):
    """Even if SQL slipped through, DuckDB must open no file and keep its settings."""
    (tmp_path / "secret.csv").write_text("a\n1\n")
    for sql in (
        f"SELECT * FROM read_csv('{tmp_path}/secret.csv')",
        f"COPY pairs TO '{tmp_path}/out.csv'",
        f"ATTACH '{tmp_path}/other.duckdb'",
        "SET enable_external_access = true",
    ):
        with pytest.raises(duckdb.Error):
            pairs.cursor().execute(sql)
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]


def test_a_run_of_before_and_one_with_ratings(tmp_path, table):
    """A run without judgements, and one whose column rated holds anything, must be readable."""
    old = table[["pair_id", "source", "paraphrase", "origin", "stage", "spscore"]]
    old = old.assign(rated=[*map(str, range(ROWS - 1)), "x"])
    uri = write_run(tmp_path / "old", old)
    with closing(Pairs(uri, read_run(uri))) as pairs:
        assert pairs.scores == ["spscore"]
        rows = pairs.page(pairs.cursor(), Filter(text=""), ROWS)
    assert "meaning" not in rows[0]
    assert [row["rated"] for row in rows].count(None) == 1


def test_a_release(tmp_path, table):
    path = "data/train/stage-1/part.parquet"
    (tmp_path / "1.0/build-0" / path).parent.mkdir(parents=True)
    rows = pa.Table.from_pandas(table.assign(split="train"))
    pq.write_table(rows, tmp_path / "1.0/build-0" / path)
    listed = {"path": path, "bytes": 1, "sha256": "", "rows": ROWS}
    with closing(Pairs(str(tmp_path / "1.0"), release_manifest(files=[listed]))) as pairs:
        assert pairs.values("split") == ["train"]
        assert pairs.histograms(pairs.cursor(), Filter(split="train"))[0] == ROWS


def test_files_that_cannot_be_read(tmp_path, table):
    """An unreadable file must give one line that names it, and leave no temporary folder."""
    uri = write_run(tmp_path / "gone", table)
    manifest, files = read_run(uri), [*Path(uri).rglob("*.parquet")]
    for name, damage in (
        ("no such file", lambda path: path.unlink()),
        ("arquet", lambda path: path.write_bytes(b"PAR1")),
        ("no column", lambda path: pq.write_table(pa.table({"a": [1]}), path)),
    ):
        for file in files:
            damage(file)
        with pytest.raises((OSError, ValueError), match=name) as refused:
            Pairs(uri, manifest)
        assert "\n" not in str(refused.value)
        assert ".parquet" in str(refused.value)


def test_a_run_in_a_store(admin, table, tmp_path):
    """A run on s3a:// must give the same rows as on disk."""
    uri, there = write_run(tmp_path / "tiny", table), "s3a://gaixie/browsed/runs/tiny"
    for path in Path(uri).rglob("*"):
        if path.is_file():
            storage.copy(str(path), f"{there}/{path.relative_to(uri)}")
    with closing(Pairs(there, read_run(there))) as pairs:
        found = pairs.page(pairs.cursor(), Filter(), ROWS)
    expected = table.sort_values(["spscore", "pair_id"], ascending=[False, True])
    assert [row["pair_id"] for row in found] == expected["pair_id"].tolist()


# Over HTTP


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> tuple[Path, pa.Table]:
    """Returns (folder, pairs) of a run of the scored examples."""
    folder, table = tmp_path_factory.mktemp("root") / "runs" / "examples", scored_examples()
    write_scored(folder, {("llm", 1): table})
    return folder, table


@pytest.fixture(scope="module")
def client(run):
    uri, why, settings = str(run[0]), explainer("SPScore-zh|tier:core|"), ServiceSettings()
    manifest, false = read_run(uri), "meaning: “从来” has no counterpart in the source"
    part = BrowsingPart(Pairs(uri, manifest), manifest, lambda *own: [*why(*own), false], settings)
    with TestClient(make_app([part], settings)) as client:
        yield client


def get(client, path: str, **query) -> dict:
    answer = client.get(f"/v1/run{path}", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_what_it_is_about(client, run):
    facts = client.get("/v1/about").json()["parts"]["run"]
    found = [facts[name] for name in ("name", "origins", "stages", "scores")]
    assert found == ["examples", ["llm"], [1], [*SCORES]]


def test_all_histograms_at_once(client):
    found = get(client, "/histograms", min_meaning=0.5)
    assert {*found["counts"]} == {*SCORES}
    pairs = [row["meaning"] for row in get(client, "/pairs", min_meaning=0.5, limit=1000)["rows"]]
    assert {sum(counts) for counts in found["counts"].values()} == {found["count"]} == {len(pairs)}
    assert found["counts"]["meaning"][-1] == sum(value >= 0.95 for value in pairs)


def test_a_pair_says_why(client, run):
    pair = run[1].slice(5, 1).to_pylist()[0]
    one = get(client, f"/pair/{pair['pair_id']}")
    assert one["reasons"] == SPScore.load().explain(pair["source"], pair["paraphrase"])
    [row] = get(client, "/pairs", changes=True, limit=1, seed=1)["rows"]
    for source, shown in ((row["source"], row), (pair["source"], one)):
        assert "".join(own["text"] for own in shown["changes"]["source"]) == source
    assert client.get("/v1/run/pair/nothing").status_code == 404


def test_what_is_refused(client):
    for path, named in {
        "/pairs?sort=pair_id": "sort",
        "/pairs?min_meaning=2": "min_meaning",
        f"/pairs?stage={10**12}": "stage",
        "/pairs?split=train": "no such column",
        "/pairs?text=a%00": "NUL",
        "/export?format=xlsx": "format",
    }.items():
        answer = client.get(f"/v1/run{path}")
        assert 400 <= answer.status_code < 500
        assert named in answer.json()["error"]["message"]


def test_the_command(run, tmp_path):
    """The command must print its address, answer, end at SIGINT without a trace, and delete its
    database."""
    folder, table = run
    port = free_port()
    line = [sys.executable, "jobs/show_run.py", folder.parents[1], "--run-id", "examples"]
    line += ["--serve", "--port", port]
    process = subprocess.Popen(
        [*map(str, line)],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    url = f"http://127.0.0.1:{port}"
    wait_for(lambda: answers(url), "the service", process)
    with urllib.request.urlopen(f"{url}/v1/run/histograms") as answer:
        assert json.load(answer)["count"] == len(table)
    with urllib.request.urlopen(url) as answer:
        assert b"<title>Gaixie" in answer.read()
    assert [*tmp_path.glob("gaixie-browse-*")]
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert stderr.splitlines() == [f"{url}  1 process"]  # and no warning of DuckDB about leaks
    assert not [*tmp_path.glob("gaixie-browse-*")]
