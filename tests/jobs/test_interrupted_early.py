"""Ctrl-C and SIGTERM during a script's imports must give one line and exit code 130 or 143."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gaixie.jobs.cli import COMMANDS

ROOT = Path(__file__).parents[2]
CUSTOMIZE = """
import atexit, os, signal, sys

class Interrupt:
    def find_spec(name, path=None, target=None):
        if name == os.environ["INTERRUPTED_AT"]:
            try:
                os.kill(os.getpid(), int(os.environ["SIGNAL"]))
            except KeyboardInterrupt:
                if "SWALLOWED" not in os.environ:
                    raise

sys.meta_path.insert(0, Interrupt)
if os.environ["INTERRUPTED_AT"] == "exit":
    atexit.register(os.kill, os.getpid(), int(os.environ["SIGNAL"]))
signal.signal(signal.SIGINT, signal.default_int_handler)
"""
"""A sitecustomize, which Python imports first; it sends a signal at the import of one module."""


def interrupted(
    folder: Path, name: str, *line: str, by: signal.Signals = signal.SIGINT
) -> tuple[int, str]:
    """Returns exit code and standard error of a command interrupted at the import of a module."""
    (folder / "sitecustomize.py").write_text(CUSTOMIZE)
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    env = os.environ | {"PYTHONPATH": path, "INTERRUPTED_AT": name, "SIGNAL": str(int(by))}
    done = subprocess.run([sys.executable, *line], env=env, capture_output=True, text=True)
    assert done.stdout == ""
    return done.returncode, done.stderr


SCRIPT = (str(ROOT / "jobs/score_corpus.py"),)
COMMAND = ("-m", "gaixie.jobs.cli", "train", "--help")


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("line", "at"),
    [
        (SCRIPT, "argparse"),  # its first import after the handler's
        (COMMAND, "gaixie.jobs"),  # the first import of all
        (COMMAND, "pydantic"),
    ],
)
def test_any_import(line, at, by, tmp_path):
    word = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}[by]
    code, err = interrupted(tmp_path, at, *line, by=by)
    assert (code, err.partition(": ")[2]) == (128 + by, f"{word}; nothing was done\n")


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_while_python_clears_up(by, tmp_path):
    """A signal while Python cleans up must not spoil the exit; its handlers are gone by then."""
    line = ("-m", "gaixie.jobs.cli", "nothing")
    code, err = interrupted(tmp_path, "exit", *line, by=by)
    assert (code, err.count("\n")) == (2, 1)


@pytest.mark.long
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command(command, tmp_path):
    """Every command must end cleanly, also run as a module, which is imported after its package."""
    module = f"gaixie.{COMMANDS[command]['module']}"
    package = module.rpartition(".")[0] if module != "gaixie.udfs.metrics" else module
    code, err = interrupted(tmp_path, package, "-m", module, "--help")
    line = f"{module.rpartition('.')[2]}: interrupted; nothing was done\n"
    assert (code, err) == (130, line)


@pytest.mark.parametrize("is_swallowed", [False, True])
def test_at_work_it_is_an_exception_again(is_swallowed, tmp_path, monkeypatch):
    """At work, a signal must raise an exception, even if a library swallows it as its own error."""
    if is_swallowed:
        monkeypatch.setenv("SWALLOWED", "1")
    given = ("--input", str(ROOT / "examples/pairs.jsonl"), "--origin-column", "origin")
    given = (*given, "--output", str(tmp_path / "out"))
    line = (str(ROOT / "jobs" / "score_corpus.py"), *given)
    code, err = interrupted(tmp_path, "gaixie.jobs.scoring.run", *line)
    assert code == 130
    assert err == "score_corpus: interrupted; the run can be resumed with --resume\n"
