"""The command `gaixie`: each of its commands must run an existing script."""

import os
import re
import runpy
import subprocess
import sys
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import pytest

from gaixie.jobs import cli

ROOT = Path(__file__).parents[2]


def gaixie(*words: str) -> subprocess.CompletedProcess:
    line = [sys.executable, "-m", "gaixie.jobs.cli", *words]
    return subprocess.run(line, capture_output=True, text=True)


def test_help_lists_the_commands_in_groups():
    """Help must list commands in groups, with a newcomer's commands first."""
    done = gaixie("--help")
    groups = re.split(r"\n(?=[A-Z][^\n]*\n\n  )", done.stdout)[1:]
    commands = [re.findall(r"^  (\S+)", group, re.MULTILINE) for group in groups]
    assert commands[0] == ["paraphrase", "score", "show", "serve"]
    assert sorted(chain(*commands)) == sorted(cli.COMMANDS)
    assert all(find_spec(f"gaixie.{row['module']}") for row in cli.COMMANDS.values())


def test_mistakes():
    done = gaixie("scroe")
    assert done.returncode == 2
    assert done.stderr == "gaixie: error: scroe: no such command; gaixie --help lists them\n"
    done = gaixie("show", "/no/such/root")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


@pytest.mark.torch
def test_a_wrong_option_is_one_line(monkeypatch, capsys):
    for row in cli.COMMANDS.values():
        monkeypatch.setattr(sys, "argv", ["gaixie", "--no-such-option"])
        with pytest.raises(SystemExit) as end:
            runpy.run_module(f"gaixie.{row['module']}", run_name="__main__", alter_sys=True)
        assert end.value.code == 2
        said = r"[^\n]*: error: [^\n]*; --help lists the options\n"
        assert re.fullmatch(said, capsys.readouterr().err), row


@pytest.mark.parametrize(
    ("line", "extra"),
    [
        (["-m", "gaixie.jobs.cli", "evaluate", "pairs"], "metrics"),
        (["-m", "gaixie.jobs.cli", "train"], "train"),
    ],
)
def test_a_package_of_an_extra_is_missing(tmp_path, line, extra):
    """Without an extra's package, one line must name the extra to install."""
    for name in ("torch", "transformers", "accelerate", "datasets"):
        (tmp_path / f"{name}.py").write_text(f"raise ModuleNotFoundError(name={name!r})")
    done = subprocess.run(
        [sys.executable, *line],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{os.getenv('PYTHONPATH', '')}"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    pattern = r"\w+: error: the package (torch|transformers|datasets|accelerate) is missing; .*\n"
    assert re.fullmatch(pattern, done.stderr)
    assert f"[{extra}]" in done.stderr
