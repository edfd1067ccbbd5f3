"""The programs in examples/ must run unchanged on the output of the README's earlier commands."""

import runpy
import sys

import pyarrow.parquet as pq
import pytest
from shared import ROOT


@pytest.fixture
def example(monkeypatch, capsys):
    """Returns a function of (name, arguments) that gives what the program printed."""

    def run(name: str, *arguments: object) -> str:
        path = ROOT / "examples" / name
        monkeypatch.setattr(sys, "argv", [str(path), *map(str, arguments)])
        runpy.run_path(str(path), run_name="__main__")
        return capsys.readouterr().out

    return run


def test_tables_in_memory(example):
    assert "tier:core" in example("score_in_pandas.py")


def test_own_metric(example):
    [moved, pinc, spscore] = example("own_metric.py").splitlines()
    assert "Moved" in moved
    assert "PINC" in pinc
    assert "SPScore-zh" in spscore
    assert float(spscore.split()[0]) > float(moved.split()[0]) > float(pinc.split()[0])


def test_paraphrase(example, known_writer):
    assert example("paraphrase.py").count("  → ") == 8


def test_score_in_spark(spark, example):
    table = example("score_in_spark.py")
    rows = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("|")][1:]
    assert sum(int(row[2]) for row in rows) == 288
    assert {row[0].strip() for row in rows} == {"parallel", "back_translation", "llm", "human"}


WMT = """<dataset id="tiny"><collection id="news"><doc id="d1" origlang="en" domain="news">
<src lang="en"><p><seg id="1">It rained.</seg></p></src>
<ref lang="zh" translator="A"><p><seg id="1">下雨了。</seg></p></ref>
<hyp system="X" lang="zh"><p><seg id="1">天下雨了。</seg></p></hyp>
</doc></collection></dataset>"""


def test_translations_of_wmt(example, tmp_path, monkeypatch):
    """The program must read a set as WMT publishes it, which stands in for the download."""
    from sacrebleu.dataset import DATASETS, base, wmt_xml

    monkeypatch.setattr(base, "SACREBLEU_DIR", str(tmp_path))
    monkeypatch.setattr(wmt_xml.WMTXMLDataset, "maybe_download", lambda _: None)
    tiny = wmt_xml.WMTXMLDataset("tiny", data=[], langpairs={"en-zh": ["tiny.xml"]})
    (tmp_path / "tiny/raw").mkdir(parents=True)
    (tmp_path / "tiny/raw/tiny.xml").write_text(WMT, "utf-8")
    monkeypatch.setitem(DATASETS, "tiny", tiny)
    table = tmp_path / "wmt.parquet"
    assert "1 sentences, 2 translations" in example("wmt_translations.py", table, "tiny")
    expected = {"source_en": "It rained.", "translations_zh": ["下雨了。", "天下雨了。"]}
    assert pq.read_table(table).to_pylist() == [expected]


def test_the_notebook_runs():
    import nbclient
    import nbformat

    book = nbformat.read(ROOT / "examples/first_corpus.ipynb", as_version=4)
    done = nbclient.NotebookClient(book, resources={"metadata": {"path": ROOT / "examples"}})
    done.execute()
    tables = [out for cell in book.cells for out in cell.get("outputs", ())]
    assert any("image/png" in out.get("data", {}) for out in tables)
