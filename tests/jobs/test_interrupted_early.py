"""Ctrl-C while a script imports what it needs: one line, exit code 130."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CUSTOMIZE = """
import os, signal, sys

class Interrupt:
    def find_spec(name, path=None, target=None):
        if name == os.environ["INTERRUPTED_AT"]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt)
signal.signal(signal.SIGINT, signal.default_int_handler)
"""
"""Python imports this as sitecustomize before anything else; the import of one name is Ctrl-C."""


def interrupted(folder: Path, name: str, *line: str) -> tuple[int, str]:
    """Exit code and standard error of a command that is interrupted at the import of a module."""
    (folder / "sitecustomize.py").write_text(CUSTOMIZE)
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    env = os.environ | {"PYTHONPATH": path, "INTERRUPTED_AT": name}
    done = subprocess.run([sys.executable, *line], env=env, capture_output=True, text=True)
    assert done.stdout == ""
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    "script", ["jobs/score_corpus.py", "research/fit_spscore.py", "jobs/fetch_jars.py"]
)
def test_a_script(script, tmp_path):
    line = f"{Path(script).stem}: interrupted; nothing was done\n"
    at = "gaixie.jobs.corpus" if script == "jobs/fetch_jars.py" else "gaixie.udfs"
    assert interrupted(tmp_path, at, str(ROOT / script)) == (130, line)


@pytest.mark.parametrize("command", ["score", "train"])
def test_a_command(command, tmp_path):
    code, err = interrupted(tmp_path, "gaixie.udfs", "-m", "gaixie.jobs.cli", command, "--help")
    assert (code, err.partition(": ")[2]) == (130, "interrupted; nothing was done\n")


def test_at_work_it_is_an_exception_again(tmp_path):
    given = ("--input", str(ROOT / "examples/pairs.jsonl"), "--origin-column", "origin")
    given = (*given, "--output", str(tmp_path / "out"))
    line = (str(ROOT / "jobs" / "score_corpus.py"), *given)
    code, err = interrupted(tmp_path, "gaixie.jobs.scoring.run", *line)
    assert code == 130
    assert err == "score_corpus: interrupted; the run can be resumed with --resume\n"
