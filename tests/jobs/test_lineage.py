"""conf/spark/lineage.conf must send a run's events to OpenLineage and write Spark's event log."""

import json
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from scored_runs import ROOT
from servers import PATIENCE

from gaixie.jobs.corpus.s3a import fetch_jars
from gaixie.udfs.command_line import UserError
from gaixie.udfs.storage.cache import cache_folder

CONF = (ROOT / "conf/spark/lineage.conf").read_text("utf-8")


@pytest.fixture(scope="module")
def jar() -> Path:
    """Returns the jar of the listener that the file names."""
    (name,) = re.findall(r"io\.openlineage:[\w.:-]+\w", CONF)
    folder = cache_folder() / name.replace(":", "-")
    try:
        return next(iter([*folder.glob("*.jar")] or fetch_jars(folder, "--packages", name)))
    except UserError as error:
        pytest.skip(str(error))


class Receiver(ThreadingHTTPServer):
    """Receives events like an OpenLineage server, but fails at the first one."""

    def __init__(self):
        self.events: list[dict] = []
        self.asked: list[tuple[str, str | None]] = []
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, self.headers["Authorization"]))
        first = len(self.server.asked) == 1
        if not first:
            self.server.events.append(event)
        self.send_response(503 if first else 201)
        self.end_headers()

    def log_message(self, *_) -> None:
        return


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def names(event: dict, side: str) -> list[str]:
    return [dataset["name"] for dataset in event[side]]


@pytest.mark.long
@pytest.mark.spark
def test_a_server_hears_what_a_run_read_and_wrote(launch, receiver, jar, tmp_path):
    log, out, pairs = tmp_path / "log", tmp_path / "out", ROOT / "examples/pairs.jsonl"
    log.mkdir()
    conf = CONF.replace("https://lineage.example.com", f"http://127.0.0.1:{receiver.server_port}")
    conf = conf.replace("s3a://CHANGE-ME/spark-events", log.as_uri())
    (tmp_path / "spark-defaults.conf").write_text(f"{conf}\nspark.jars {jar}\n")
    auth = {"type": "http", "auth": {"type": "api_key", "apiKey": "k3y"}}
    env = {"SPARK_CONF_DIR": str(tmp_path), "OPENLINEAGE__TRANSPORT": json.dumps(auth)}
    given = ("--input", pairs, "--origin-column", "origin", "--max-characters", 40)
    process = launch(out, *given, env=env)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err

    assert {*receiver.asked} == {("/api/v1/lineage", "Bearer k3y")}
    run = out / "runs/r"
    work = str(run / "_work/unit-00000")
    tables = [(work, str(run / name)) for name in ("scored", "quarantine")]
    for source, written in ((str(pairs), work), *tables):
        of_step = [e for e in receiver.events if names(e, "outputs") == [written]]
        assert {e["eventType"] for e in of_step} >= {"START", "COMPLETE"}
        assert all(names(e, "inputs") == [source] for e in of_step)
    assert {e["job"]["namespace"] for e in receiver.events} == {"gaixie"}
    (events,) = log.rglob("events_1_*")
    assert not {path for path in (events, run / "manifest.json") if b"k3y" in path.read_bytes()}
