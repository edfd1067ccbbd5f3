"""The command `gaixie`: each of its names runs a script that is there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from gaixie.jobs import cli

ROOT = Path(__file__).parents[2]


def gaixie(*words: str) -> subprocess.CompletedProcess:
    line = [sys.executable, "-m", "gaixie.jobs.cli", *words]
    return subprocess.run(line, capture_output=True, text=True)


def test_help_lists_the_commands():
    done = gaixie()
    assert (done.returncode, done.stderr) == (0, "")
    for name, row in cli.COMMANDS.items():
        assert f"\n  {name} " in done.stdout
        spec = find_spec(f"gaixie.{row['module']}")
        assert spec is not None


def test_help_groups_the_commands_and_begins_with_the_five_of_a_newcomer():
    groups = re.split(r"\n(?=[A-Z][^\n]*\n\n  )", gaixie("--help").stdout)[1:]
    commands = {
        group.split("\n")[0]: re.findall(r"^  (\S+)", group, re.MULTILINE) for group in groups
    }
    assert commands["Start here"] == ["paraphrase", "score", "show", "serve", "check"]
    assert len(commands) == 5
    assert sum(map(len, commands.values())) == len(cli.COMMANDS)


@pytest.mark.parametrize("name", ["score", "show", "metrics", "release"])
def test_a_command_has_its_script_s_options(name):
    done = gaixie(name, "--help")
    script = subprocess.run(
        [sys.executable, "-m", f"gaixie.{cli.COMMANDS[name]['module']}", "--help"],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, script.stdout, script.stderr)


def test_mistakes():
    done = gaixie("scroe")
    assert done.returncode == 2
    assert done.stderr == "gaixie: error: scroe: no such command; did you mean score?\n"
    done = gaixie("show", "/no/such/root")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_a_wrong_option_is_one_line(name):
    """Also where a required option is missing."""
    done = gaixie(name, "--no-such-option")
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(
        "[^\n]*unrecognized arguments: --no-such-option; --help lists the options\n", done.stderr
    )


@pytest.mark.parametrize(
    ("line", "extra"),
    [
        (["-m", "gaixie.jobs.cli", "generate", "model", "file"], "train"),
        (["training/curriculum.py"], "train"),
        (["training/tokenize_text.py", "--help"], "train"),
        (["training/warm_start.py"], "train"),
        (["research/identify_paraphrases.py"], "metrics"),
    ],
)
def test_a_package_of_an_extra_is_missing(tmp_path, line, extra):
    """As on an installation without extras."""
    for name in ("torch", "transformers"):
        (tmp_path / f"{name}.py").write_text(f"raise ModuleNotFoundError(name={name!r})")
    done = subprocess.run(
        [sys.executable, *line],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{os.getenv('PYTHONPATH', '')}"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    pattern = rf"\w+: error: the package (torch|transformers) is missing; pip install 'gaixie\[{extra}\]' brings it\n"
    assert re.fullmatch(pattern, done.stderr)
