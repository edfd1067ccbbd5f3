"""The programs of examples/ run as they stand, on what the commands before them in the README made."""

import runpy
import sys
from pathlib import Path

import pytest

from gaixie.udfs.spscore import SPScore

ROOT = Path(__file__).parents[2]


@pytest.fixture
def example(monkeypatch, capsys):
    """(name, arguments) -> what the program printed."""

    def run(name: str, *arguments: object) -> str:
        path = ROOT / "examples" / name
        monkeypatch.setattr(sys, "argv", [str(path), *map(str, arguments)])
        runpy.run_path(str(path), run_name="__main__")
        return capsys.readouterr().out

    return run


@pytest.fixture(scope="module")
def demo(score, tmp_path_factory):
    """A run of the sample pairs, as make demo makes it; its root."""
    root = tmp_path_factory.mktemp("demo")
    pairs = ["--input", ROOT / "examples/pairs.jsonl", "--origin-column", "origin"]
    run = score(root, *pairs, run_id="demo")
    assert run.code == 0, run.stderr
    return root


def test_score_in_pandas(example):
    printed = example("score_in_pandas.py")
    assert "tier:core" in printed
    assert "spscore" in printed
    assert "structure: " in printed


def test_own_metric(example):
    [moved, pinc, spscore] = example("own_metric.py").splitlines()
    assert "Moved" in moved
    assert "PINC" in pinc
    assert "SPScore-zh" in spscore
    assert float(spscore.split()[0]) > float(moved.split()[0]) > float(pinc.split()[0])


def test_paraphrase(example):
    lines = example("paraphrase.py").splitlines()
    assert len(lines) == 20
    assert sum(line.startswith("  → ") for line in lines) == 10
    assert lines == example("paraphrase.py", 1).splitlines()


def test_score_in_spark(spark, example):
    table = example("score_in_spark.py")
    rows = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("|")][1:]
    assert sum(int(row[2]) for row in rows) == 288
    assert {row[0].strip() for row in rows} == {"parallel", "back_translation", "llm", "human"}


def test_read_a_release(demo, example, capsys):
    from gaixie.jobs import release_dataset

    given = ["--root", str(demo), "--runs", "demo", "--version", "1.0", "--license", "CC-BY-4.0"]
    assert release_dataset.main(given) == 0
    capsys.readouterr()
    printed = example("read_a_release.py", demo)
    assert printed.startswith("release 1.0, CC-BY-4.0, ")
    assert printed.count(".parquet: ") == 3


def test_train_tiny(demo, example, tmp_path):
    pytest.importorskip("torch")
    printed = example("train_tiny.py", demo / "runs/demo", tmp_path)
    assert (tmp_path / "run/model/config.json").is_file()
    assert "finished at step 60" in printed


def test_score_in_polars(example):
    pytest.importorskip("polars", reason="the example is about it")
    printed = example("score_in_polars.py")
    assert all(name in printed for name in ("human", "llm", "parallel", "spscore"))


def test_score_in_duckdb(example):
    pytest.importorskip("duckdb", reason="the example is about it")
    printed = example("score_in_duckdb.py")
    assert "agreement" in printed
    assert "72" in printed


def test_evaluate_metric(monkeypatch):
    evaluate = pytest.importorskip("evaluate", reason="the example is about it")
    metric = evaluate.load(str(ROOT / "examples/evaluate_metric"))
    texts = (["他昨天去了北京。"], ["昨天他去了北京。"])
    found = metric.compute(sources=texts[0], predictions=texts[1])
    assert found["scores"] == SPScore.load().score(*texts).tolist()
    assert found["signature"] == SPScore.load().signature()


def test_the_notebook_runs():
    nbclient = pytest.importorskip("nbclient", reason="what runs notebooks")
    pytest.importorskip("ipykernel", reason="what runs notebooks")
    import nbformat

    book = nbformat.read(ROOT / "examples/first_corpus.ipynb", as_version=4)
    assert len(book.cells) == 10
    assert not any(cell.get("outputs") for cell in book.cells)
    done = nbclient.NotebookClient(book, resources={"metadata": {"path": ROOT / "examples"}})
    done.execute()
    tables = [out for cell in book.cells for out in cell.get("outputs", ())]
    assert any("image/png" in out.get("data", {}) for out in tables)
