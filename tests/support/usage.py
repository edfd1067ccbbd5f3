"""Gets what a command prints. A script's --help comes from this process, as a new one for each
would import PyTorch again."""

import io
import runpy
import subprocess
import sys
from contextlib import redirect_stdout
from functools import cache
from typing import Any

import pytest
from shared import ROOT


def output_of(*line: object, **given: Any) -> str:
    """Returns what a process prints; asserts that it succeeds."""
    done = subprocess.run([*map(str, line)], capture_output=True, text=True, **given)
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
    return done.stdout


@cache
def usage(script: str, *words: str) -> str:
    """Returns a script's help. script: path from the repository's root. words: before --help."""
    said = io.StringIO()
    with redirect_stdout(said), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [script, *words, "--help"])
        with pytest.raises(SystemExit) as end:
            runpy.run_path(str(ROOT / script), run_name="__main__")
    assert not end.value.code
    return said.getvalue()
