"""The commands of `make demo`, as the Makefile gives them: relative paths, processes of their own."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.spark
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
    [total] = re.findall(r"^total +(\d.*)", shown, re.MULTILINE)
    read, *stages, quarantined, duplicates = map(int, total.split())
    assert (read, sum(stages), quarantined, duplicates) == (295, 288, 6, 1)
    assert (
        len(re.findall("^  structure .*  synonyms .*  meaning .*  fluency ", shown, re.MULTILINE))
        == 10
    )
    assert re.search("^  - ", shown, re.MULTILINE)
    [means, rho] = re.findall(r"in stages 0, 1, 2, 3: (.*); Spearman with spscore: (.*)", shown)[0]
    means = [float(mean) for mean in means.split(", ")]
    assert means == sorted(means)  # of pairs that the metric was not fitted on
    assert means[3] - means[0] > 2
    assert float(rho) > 0.6
    assert "report: out/demo/runs/demo/report.html" in shown
    assert (tmp_path / "out/demo/runs/demo/report.html").is_file()
