"""The command `gaixie`: each of its commands must run an existing script."""

import os
import re
import runpy
import subprocess
import sys
from importlib.util import find_spec

import pytest
from shared import ROOT

from gaixie.jobs import cli


def gaixie(*words: str, **environment: str) -> subprocess.CompletedProcess:
    line, given = [sys.executable, "-m", "gaixie.jobs.cli", *words], os.environ | environment
    return subprocess.run(line, cwd=ROOT, env=given, capture_output=True, text=True)


def test_help_lists_the_commands_in_groups():
    """Help must list each command once, with a newcomer's commands first."""
    commands = re.findall(
        r"^  (\S+)", gaixie("--help").stdout.partition("Start here")[2], re.MULTILINE
    )
    assert commands[:4] == ["paraphrase", "score", "show", "serve"]
    assert sorted(commands) == sorted(cli.COMMANDS)
    assert all(find_spec(f"gaixie.{row['module']}") for row in cli.COMMANDS.values())


def test_a_mistake():
    done = gaixie("scroe")
    assert done.returncode == 2
    assert done.stderr == "gaixie: error: scroe: no such command; gaixie --help lists them\n"
    done = gaixie("show", "/no/such/root")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


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
    ("words", "extra"), [(("evaluate", "pairs"), "metrics"), (("train",), "train")]
)
def test_a_package_of_an_extra_is_missing(tmp_path, words, extra):
    """Without an extra's package, one line must name the extra to install."""
    for name in ("torch", "transformers", "accelerate", "datasets"):
        (tmp_path / f"{name}.py").write_text(f"raise ModuleNotFoundError(name={name!r})")
    done = gaixie(*words, PYTHONPATH=f"{tmp_path}{os.pathsep}{os.getenv('PYTHONPATH', '')}")
    assert done.returncode == 2
    pattern = r"\w+: error: the package (torch|transformers|datasets|accelerate) is missing; .*\n"
    assert re.fullmatch(pattern, done.stderr)
    assert f"[{extra}]" in done.stderr
