"""The summary and the page of a run must show its manifest's figures, and escape every text."""

import re

import pytest
from manifests import run_manifest

from gaixie.jobs.scoring.report import EXPLANATIONS, print_summary, report_page
from gaixie.udfs.features import FEATURES
from gaixie.udfs.spscore import JUDGEMENTS
from gaixie.udfs.storage.manifest import RunManifest
from gaixie.udfs.text.validate import MALFORMED, REASONS

FOLDER = "s3a://bucket/gaixie/runs/monday"
ROWS = ("read", "scored", "quarantined", "duplicates")


def example(score: float, stage: int, **more) -> dict:
    pair = {"source": "火势从三楼开始蔓延。", "paraphrase": "火从三楼起。", "origin": "llm"}
    pair |= {"stage": stage, "spscore": score, "reasons": ["fluency: “的的”"]}
    return pair | dict.fromkeys((*FEATURES, *JUDGEMENTS), 0.25) | more


@pytest.fixture
def manifest() -> RunManifest:
    return run_manifest(
        run_id="monday",
        rows={
            "llm": dict(zip(ROWS, (2_400, 2_300, 77, 23), strict=True)),
            "parallel": dict(zip(ROWS, (17_000_000, 16_987_654, 4_346, 8_000), strict=True)),
            "human": dict.fromkeys(ROWS, 0),
        },
        stages={"parallel": dict(enumerate((8_100_000, 3_000_000, 2_900_000, 2_987_654)))}
        | {"llm": {3: 2_300}},
        quarantine={"parallel": {"too_short": 4_000, "null": 346}, "llm": {"too_short": 77}},
        cuts={"parallel": [0.45, 0.55, 0.65], "llm": [0.35, 0.45, None]},
        quantiles={"parallel": {0.05: 0.4, 0.5: 0.6}, "llm": {0.05: 0.7, 0.5: 0.7}},
        histograms={"parallel": {"spscore": [1, 4, 2]}},
    )


def test_the_summary(manifest, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    print_summary(manifest, FOLDER)
    text = capsys.readouterr().out
    rows = [line.split() for line in text.splitlines()]
    stages = ["8,100,000", "3,000,000", "2,900,000"]
    assert ["parallel", "17,000,000", *stages, "2,987,654", "4,346", "8,000"] in rows
    assert ["total", "17,002,400", *stages, "2,989,954", "4,423", "8,023"] in rows
    assert ["too_short", "4,077"] in rows
    assert "human" not in text
    assert f"{FOLDER}/manifest.json" in text


def test_numbers_on_the_page(manifest):
    text = report_page(manifest, FOLDER, [example(0.9, 3), example(0.1, 0, pmd=float("nan"))])
    rows = [re.findall(r"<t[dh][^>]*>\s*(.*?)\s*</t[dh]>", row, re.S) for row in text.split("<tr>")]
    assert ["llm", "2,400", "0", "0", "0", "2,300", "77", "23"] in rows
    assert "17,002,400 = scored 16,989,954 + quarantined 4,423 + duplicates 8,023" in text
    assert ["too_short", "4,077", EXPLANATIONS["too_short"]] in rows
    for cell in ("47.7%", "17.7%", "0.450 / 0.550 / 0.650", "0.350 / 0.450 / –", "0.600"):
        assert cell in text
    assert re.findall(r"height: ([\d.]+)%", text)[-3:] == ["25.0", "100.0", "50.0"]
    assert manifest.signature in text
    assert re.findall(r"<h3>(stage \d)</h3>", text) == ["stage 3", "stage 0"]  # the best first
    assert "pmd –" in text


def test_text_is_escaped(manifest):
    hostile = "火势<script>alert(1)</script>&amp;{{ run_id }}\"'蔓延"
    odd = manifest.model_copy(update={"run_id": "<b>run</b>", "signature": "seg:<i>"})
    pair = example(0.5, 2, source=hostile, paraphrase=hostile, reasons=[hostile])
    text = report_page(odd, "x&y<", [pair])
    assert "<script" not in text
    escaped = "火势&lt;script&gt;alert(1)&lt;/script&gt;&amp;amp;{{ run_id }}&#34;&#39;蔓延"
    assert text.count(escaped) == 3
    assert "<b>run" not in text
    assert "seg:&lt;i&gt;" in text


def test_every_reason_is_explained():
    assert set(EXPLANATIONS) == {*REASONS, MALFORMED}


def test_nothing_scored(capsys):
    rows = {"llm": dict(zip(ROWS, (5, 0, 5, 0), strict=True))}
    bare = run_manifest(rows=rows, quarantine={"llm": {"null": 5}}, cuts={"llm": [None] * 3})
    assert "No pairs were scored" in report_page(bare, FOLDER, [])
    print_summary(bare, FOLDER)
    assert capsys.readouterr().out
