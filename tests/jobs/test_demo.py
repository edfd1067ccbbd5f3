"""The commands of `make demo`, as the Makefile gives them: relative paths, processes of their own."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_demo(tmp_path):
    for name in ("jobs", "udfs", "conf", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    makefile = (ROOT / "Makefile").read_text("utf-8")
    rule = makefile.partition("\ndemo: .venv/.base\n")[2].partition("\n\n")[0]
    commands = [line.strip() for line in rule.splitlines()]
    commands = [line.removeprefix("$(BIN)/python ") for line in commands if "$(BIN)" in line]
    assert len(commands) == 2
    shown = ""
    for command in commands:
        done = subprocess.run(
            [sys.executable, *command.split()], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        shown += done.stdout
    assert "total               295       144        49        74        21" in shown
    assert "report: out/demo/runs/demo/report.html" in shown
    assert (tmp_path / "out/demo/runs/demo/report.html").is_file()
