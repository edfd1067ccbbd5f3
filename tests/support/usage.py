"""Gets a script's --help in this process; a new process for each would import PyTorch again."""

import io
import runpy
import sys
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


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
