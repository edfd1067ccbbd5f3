"""GET /v1/run and the paths below it, and the command show_run.py --serve."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from manifests import write_scored
from servers import free_port, wait_for
from services import answers, scored_examples
from starlette.testclient import TestClient

from gaixie.jobs import show_run
from gaixie.service.app import make_app
from gaixie.service.browsing.pairs import Pairs
from gaixie.service.browsing.part import BrowsingPart
from gaixie.service.paraphrasing import ParaphrasingPart
from gaixie.service.scoring import ScoringPart
from gaixie.service.settings import ServiceSettings
from gaixie.udfs.command_line import run_command
from gaixie.udfs.meaning.explain import explainer
from gaixie.udfs.spscore import SPScore
from gaixie.udfs.storage.manifest import read_run

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> tuple[Path, pa.Table]:
    """Returns (folder, pairs) of a run of the scored examples."""
    folder, table = tmp_path_factory.mktemp("root") / "runs" / "examples", scored_examples()
    write_scored(folder, {("llm", 1): table})
    (folder / "report.html").write_text("<title>A report</title>")
    return folder, table


@pytest.fixture(scope="module")
def client(run):
    folder, _ = run
    manifest = read_run(str(folder))
    core = "SPScore-zh|tier:core|"
    settings = ServiceSettings()
    part = BrowsingPart(Pairs(str(folder), manifest), manifest, explainer(core), settings)
    with TestClient(make_app([part], settings)) as client:
        yield client


def get(client, path: str, **query) -> dict:
    answer = client.get(f"/v1/run{path}", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_every_field_and_parameter_is_described(run):
    settings = ServiceSettings()
    uri = str(run[0])
    manifest = read_run(uri)
    parts = [
        ScoringPart("core", settings),
        ParaphrasingPart("core", settings),
        BrowsingPart(Pairs(uri, manifest), manifest, lambda *_: [], settings),
    ]
    document = make_app(parts, settings).openapi()
    places = [
        (path, own["name"], own)
        for path, methods in document["paths"].items()
        for operation in methods.values()
        for own in operation.get("parameters", ())
    ] + [
        (name, field, own)
        for name, schema in document["components"]["schemas"].items()
        if name not in ("Changes", "Segment")
        for field, own in schema.get("properties", {}).items()
    ]
    assert len(places) > 90
    assert [place[:2] for place in places if not place[2].get("description")] == []


def test_what_it_is_about(client, run):
    facts = client.get("/v1/about").json()["parts"]["run"]
    assert (facts["name"], facts["origins"], facts["stages"]) == ("examples", ["llm"], [1])
    assert facts["scores"][0] == "spscore"
    assert facts["report"]


def test_the_report_is_served_as_it_was_published(client, run):
    folder, _ = run
    answer = client.get("/v1/run/report")
    assert answer.text == (folder / "report.html").read_text()
    assert "style-src 'unsafe-inline'" in answer.headers["content-security-policy"]
    assert "script" not in answer.headers["content-security-policy"]


def test_all_histograms_at_once(client):
    found = get(client, "/histograms", min_meaning=0.5)
    assert [*found["counts"]] == ["spscore", "structure", "synonyms", "meaning", "fluency"]
    pairs = [row["meaning"] for row in get(client, "/pairs", min_meaning=0.5, limit=1000)["rows"]]
    assert {sum(counts) for counts in found["counts"].values()} == {found["count"]} == {len(pairs)}
    assert found["counts"]["meaning"][-1] == sum(value >= 0.95 for value in pairs)


def test_pages_by_next(client, run):
    _, table = run
    rows, after = [], None
    while True:
        given = {"after": after} if after else {}
        page = get(client, "/pairs", sort="meaning", order="asc", limit=70, **given)
        rows += page["rows"]
        if not (after := page["next"]):
            break
    expected = table.sort_by([("meaning", "ascending"), ("pair_id", "ascending")])
    assert [row["pair_id"] for row in rows] == expected["pair_id"].to_pylist()


def test_a_pair_says_why(client, run):
    _, table = run
    one = get(client, f"/pair/{5:032x}")
    [row] = get(client, "/sample", changes=True, n=1)["rows"]
    assert "".join(own["text"] for own in row["changes"]["source"]) == row["source"]
    source, paraphrase = (table[side][5].as_py() for side in ("source", "paraphrase"))
    assert one["reasons"] == SPScore.load().explain(source, paraphrase)
    assert "".join(own["text"] for own in one["changes"]["source"]) == source
    assert client.get("/v1/run/pair/nothing").status_code == 404


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_exports(client, run, form):
    _, table = run
    query = {"min_meaning": 0.5, "max_spscore": 0.6, "format": form}
    answer = client.get("/v1/run/export", params=query)
    assert answer.status_code == 200
    assert f"examples-selection.{form}" in answer.headers["content-disposition"]
    kept = table.to_pandas().query("meaning >= 0.5 and spscore <= 0.6")
    if form == "csv":
        rows = [*csv.DictReader(io.StringIO(answer.text))]
        assert [row["source"] for row in rows] == kept["source"].tolist()
    else:
        rows = pq.read_table(io.BytesIO(answer.content)).to_pylist()
        assert [row["pair_id"] for row in rows] == kept["pair_id"].tolist()
    assert 0 < len(rows) < len(table)
    nothing = client.get("/v1/run/export", params={"text": "没有的", "format": form})
    assert nothing.status_code == 200


@pytest.mark.parametrize(
    ("path", "query", "named"),
    [
        ("/pairs", {"sort": "pair_id"}, "sort"),
        ("/pairs", {"min_meaning": 2}, "min_meaning"),
        ("/pairs", {"stage": 10**12}, "stage"),
        ("/pairs", {"split": "train"}, "no such column"),
        ("/pairs", {"text": "a\0"}, "NUL"),
        ("/export", {"format": "xlsx"}, "format"),
    ],
)
def test_what_is_refused(client, path, query, named):
    answer = client.get(f"/v1/run{path}", params=query)
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


def test_a_mistake(run, capsys):
    given = [str(run[0].parents[1]), "--run-id", "examples", "--release", "1.0", "--serve"]
    assert run_command("show_run", lambda: show_run.main(given)) == 2
    [line] = capsys.readouterr().err.splitlines()[-1:]
    assert "--run-id or --release" in line
