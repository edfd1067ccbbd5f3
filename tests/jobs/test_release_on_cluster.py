"""On a standalone cluster, executors must digest and verify a release."""

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest
from servers import PATIENCE, event_log

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.long


def test_executors_digest_every_file_and_find_each_that_is_spoilt(
    cluster, spark_submit, local, tmp_path
):
    root, events = local.folder.parents[1], tmp_path / "events"
    events.mkdir()

    def release(*given: str) -> tuple[int, str]:
        line = [*spark_submit(event_log(events)), "jobs/release_dataset.py", "--root", root, *given]
        line = [str(word) for word in line]
        done = subprocess.run(
            line, cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=PATIENCE
        )
        assert "the driver reads them" not in done.stderr
        return done.returncode, done.stdout + done.stderr

    code, said = release("--runs", "r", "--version", "1.0", "--license", "MIT")
    assert code == 0, said
    folder = root / "releases/1.0"
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    build = folder / manifest["build"]
    files = {file["path"]: file["sha256"] for file in manifest["files"]}
    assert {
        name: hashlib.sha256((build / name).read_bytes()).hexdigest() for name in files
    } == files
    assert "no faults" in release("--verify", "1.0")[1]

    for name in files:  # changes a byte in each
        data = bytearray((build / name).read_bytes())
        data[len(data) // 2] ^= 1
        (build / name).write_bytes(data)
    code, said = release("--verify", "1.0")
    assert code == 1
    named = {line.partition(": SHA-256 is ")[0] for line in said.splitlines() if "SHA-256" in line}
    assert named == {*files}
