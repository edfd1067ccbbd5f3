"""`make demo`, `make demo-train` and examples/train_tiny.py must work as documented: relative paths, own processes."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from shared import ROOT
from warm_up import compiling

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.training]


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> tuple[Path, str]:
    """Returns the folder where make demo-train, which begins with make demo, has run, and what it
    printed."""
    tmp_path = tmp_path_factory.mktemp("demo")
    for name in ("jobs", "research", "service", "training", "udfs", "conf", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    line = ["make", "-s", "-f", str(ROOT / "Makefile"), f"BIN={Path(sys.executable).parent}"]
    line += ["-o", ".venv/.spark", "-o", ".venv/.train", "demo-train"]
    few = "trainer.max_steps=4", "trainer.eval_steps=4", "evaluation.generate=4"
    line += ["TRAIN=" + " ".join(f"--set {one}" for one in few)]
    given = {"cwd": tmp_path, "env": os.environ | compiling(), "text": True}
    mine = tmp_path / "out/demo/mine"
    mine.parent.mkdir(parents=True)
    mine.touch()
    refused = subprocess.run(line, capture_output=True, **given)
    assert (refused.returncode, refused.stderr.count("\n"), mine.exists()) == (2, 2, True)
    mine.unlink()
    mine.parent.rmdir()
    done = subprocess.run(line, capture_output=True, **given)
    assert done.returncode == 0, done.stderr
    return tmp_path, done.stdout


def test_demo_train(trained):
    tmp_path, shown = trained
    assert (tmp_path / "out/demo-train/run/model/config.json").is_file()
    total = re.findall(r"^total +(\d.*)", shown, re.MULTILINE)[0]
    read, *stages, quarantined, duplicates = map(int, total.split())
    assert (read, sum(stages), quarantined, duplicates) == (295, 288, 6, 1)
    judged = "^  structure .*  synonyms .*  meaning .*  fluency "
    assert len(re.findall(judged, shown, re.MULTILINE)) == 10
    assert re.search("^  - ", shown, re.MULTILINE)
    found = ds.dataset(tmp_path / "out/demo/runs/demo/scored", partitioning="hive").to_table()
    rated = found.to_pandas().astype({"rated": float})
    means = rated.groupby("stage")["rated"].mean()
    assert means.is_monotonic_increasing  # on pairs that the metric was not fitted on
    assert means[3] - means[0] > 1.5
    assert rated["rated"].corr(rated["spscore"], "spearman") > 0.6
    assert "report: out/demo/runs/demo/report.html" in shown
    tables = shown[shown.index("origin ") : shown.index("time: ")]
    page = (ROOT / "docs/operations.md").read_text("utf-8")
    documented = page[page.index("origin  ") : page.index("time: ")]
    # Eight-bit rounding differs between processors: scores differ by 0.02, so some stages do too.
    number = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])")
    assert number.sub("", tables).split() == number.sub("", documented).split()
    for ours, theirs in zip(number.findall(tables), number.findall(documented), strict=True):
        assert float(ours) == pytest.approx(float(theirs), abs=0.03 if "." in ours else 4)
    assert (tmp_path / "out/demo/runs/demo/report.html").is_file()


def test_train_tiny(trained, monkeypatch, capsys):
    monkeypatch.chdir(trained[0])
    monkeypatch.setattr(sys, "argv", ["", "out/demo/runs/demo", "out/own"])
    runpy.run_path("examples/train_tiny.py", run_name="__main__")
    assert Path("out/own/run/model/config.json").is_file()
    assert "finished: " in capsys.readouterr().out
