"""A job must end well even if nobody can read what it prints."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
from gaixie.jobs.errors import run

def main():
    print("the summary")
    print("progress", file=sys.stderr)
    with open(sys.argv[1], "w") as file:
        file.write("the work")
    return 0

sys.exit(run("job", main, prints=sys.argv[2:] == ["prints"]))
"""


def call(folder: Path, redirected: str, *given: str) -> subprocess.CompletedProcess:
    (folder / "job.py").write_text(SCRIPT)
    words = [sys.executable, str(folder / "job.py"), str(folder / "file"), *given]
    line = f"exec {' '.join(words)} {redirected}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, env=os.environ)
    assert (folder / "file").read_text() == "the work"
    return done


@pytest.mark.parametrize("redirected", ["", ">&-", "2>&-", ">&- 2>&- <&-", "| head -c 0"])
def test_closed_streams(tmp_path, redirected):
    done = call(tmp_path, redirected)
    assert done.returncode == 0
    assert done.stdout == ("the summary\n" if redirected in ("", "2>&-") else "")
    assert done.stderr in ("progress\n", "")


def test_a_full_disk(tmp_path):
    done = call(tmp_path, ">/dev/full")
    assert done.returncode == 0
    assert done.stderr.endswith("job: its output was lost: No space left on device\n")
    assert call(tmp_path, "2>/dev/full").returncode == 0
    assert call(tmp_path, ">/dev/full", "prints").returncode == 1
