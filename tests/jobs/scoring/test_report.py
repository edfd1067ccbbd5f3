import html
import io
import math
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from manifests import run_manifest
from PIL import Image
from rich.console import Console

from gaixie.jobs.corpus.reporting import BARS
from gaixie.jobs.scoring.report import (
    EXPLANATIONS,
    Report,
    chinese,
    draw_report,
    print_summary,
    write_report,
)
from gaixie.jobs.scoring.sample import MEASURED, Sample
from gaixie.udfs.features import FEATURES
from gaixie.udfs.spscore import JUDGEMENTS
from gaixie.udfs.spscore.stages import ORIGINS
from gaixie.udfs.storage.manifest import RunManifest
from gaixie.udfs.text.validate import MALFORMED, REASONS

NAN = math.nan
FOLDER = "s3a://bucket/gaixie/runs/monday"


class Files(dict):
    """Keeps files in memory, as storage does."""

    def write(self, path, content):
        self[path] = content


def example(source="据目击者描述，火势从三楼开始蔓延。", score=0.5, **more):
    features = dict.fromkeys(FEATURES, 0.25) | {"sl": 17.0, "lr": 1.0588}
    features |= {"structure": 0.41, "synonyms": 0.52, "meaning": 0.93, "fluency": 0.84}
    pair = {"source": source, "paraphrase": "目击的人们讲，火是从三楼开始的。", "origin": "llm"}
    reasons = ["meaning: the number “三” is missing", "fluency: “的的” reads oddly"]
    pair |= {"stage": 2, "spscore": score, "reasons": reasons}
    return pair | features | more


SIZE = len(MEASURED)
SAMPLE = Sample(
    rows=200_000,
    correlations=[[1.0 if i == j else 0.05 * (i - j) for j in range(SIZE)] for i in range(SIZE)],
    judgements={
        origin: {name: list(range(BARS)) for name in JUDGEMENTS} for origin in ("parallel", "llm")
    },
    examples=[example(score=0.9, stage=3), example(score=0.1, spa=None, pmd=NAN, stage=0)],
)


def rows_of(read, scored, quarantined, duplicates):
    return {"read": read, "scored": scored, "quarantined": quarantined, "duplicates": duplicates}


ROWS = {
    "llm": rows_of(2_400, 2_300, 77, 23),
    "parallel": rows_of(17_000_000, 16_987_654, 4_346, 8_000),
    "human": rows_of(0, 0, 0, 0),
}


@pytest.fixture
def summary() -> Report:
    manifest = run_manifest(
        run_id="monday",
        rows=ROWS,
        stages={
            "parallel": {0: 8_100_000, 1: 3_000_000, 2: 2_900_000, 3: 2_987_654},
            "llm": {3: 2_300},
        },
        quarantine={"parallel": {"too_short": 4_000, "null": 346}, "llm": {"too_short": 77}},
        cuts={"parallel": [0.45, 0.55, 0.65], "llm": [0.35, 0.45, None]},
        min_meaning={"parallel": 0.8, "llm": 0.0},
        quantiles={"parallel": {0.05: 0.4, 0.5: 0.6}, "llm": {0.05: 0.7, 0.5: 0.7}},
        seconds={"score": 300.04, "stages": 20.0, "write": 80.0},
    )
    bins = {"parallel": {4_000: 8_100_000, 6_000: 8_887_654}, "llm": {7_000: 2_300}}
    return Report(manifest, FOLDER, bins, SAMPLE)


def changed(report: Report, **changes) -> Report:
    """Returns the report with some keys of its manifest changed."""
    values = report.manifest.model_dump(by_alias=True)
    manifest = RunManifest.model_validate(values | changes | {"run_id": "monday"})
    given = {"run_id": changes.get("run_id", "monday")}  # may be any text: the page escapes it
    return replace(report, manifest=manifest.model_copy(update=given))


# The console


def printed(summary, width=110) -> str:
    console = Console(file=io.StringIO(), width=width)
    print_summary(summary, console)
    return console.file.getvalue()


def row(text: str, name: str) -> list[str]:
    """Returns the cells of the first line that begins with a name."""
    line = next(line for line in text.splitlines() if line.split()[:1] == [name])
    return [cell.strip() for cell in line.replace("│", " ").split()[1:]]


def test_counts_on_a_narrow_console(summary):
    text = printed(summary, 40)
    stages = ["8,100,000", "3,000,000", "2,900,000"]
    assert row(text, "parallel") == ["17,000,000", *stages, "2,987,654", "4,346", "8,000"]
    assert row(text, "llm") == ["2,400", "0", "0", "0", "2,300", "77", "23"]
    assert row(text, "total") == ["17,002,400", *stages, "2,989,954", "4,423", "8,023"]
    assert row(text, "too_short") == ["4,077"]
    assert "human" not in text
    assert text.index("parallel") < text.index("llm")


# The page


class Page(HTMLParser):
    """Parses a page into tables of cells in one language, and the names of all tags."""

    def __init__(self, text, language="en"):
        super().__init__()
        self.other = {"en": "zh", "zh": "en"}[language]
        self.tables, self.tags, self.open = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in ("meta", "img", "br", "input"):
            hidden = tag != "html" and ("lang", self.other) in attrs
            self.open.append(self.other if hidden else tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() in (tag, self.other)

    def handle_data(self, data):
        if {"td", "th"} & {*self.open} and self.other not in self.open:
            self.tables[-1][-1][-1] += data

    def table(self, *head):
        return next(table for table in self.tables if table[0][: len(head)] == list(head))


def written(summary) -> tuple[str, bytes]:
    files = Files()
    write_report(summary, draw_report(summary), files, FOLDER)
    assert set(files) == {f"{FOLDER}/report.png", f"{FOLDER}/report.html"}
    return files[f"{FOLDER}/report.html"], files[f"{FOLDER}/report.png"]


def test_numbers_on_the_page(summary):
    text, _ = written(summary)
    page = Page(text)
    assert page.open == []
    assert page.table("origin", "read")[1:] == [
        ["parallel", "17,000,000", "16,987,654", "4,346", "8,000"],
        ["llm", "2,400", "2,300", "77", "23"],
        ["total", "17,002,400", "16,989,954", "4,423", "8,023"],
    ]
    assert "17,002,400 = 16,989,954 + 4,423 + 8,023" in text
    assert "do not add up" not in text
    shares = [row[1:5] for row in page.table("origin", "stage 0")[1:]]
    assert shares[1] == ["0 (0.0%)", "0 (0.0%)", "0 (0.0%)", "2,300 (100.0%)"]
    assert [row[5:] for row in page.table("origin", "stage 0")[1:]] == [
        ["0.45 / 0.55 / 0.65", "0.8"],
        ["0.35 / 0.45 / -", "0"],
    ]
    assert page.table("origin", "5 %")[1] == ["parallel", "0.400", "0.600"]
    assert page.table("reason", "rows")[1] == ["too_short", "4,077", EXPLANATIONS["too_short"]]
    assert page.table("step")[-1] == ["total", "400.0"]
    assert summary.manifest.signature in text


def test_the_page_in_chinese(summary):
    """Headings, words in tables and reasons must be Chinese, and the coloured square explained."""
    text, _ = written(summary)
    page = Page(text, "zh")
    assert page.table("来源", "读入")[1][:2] == ["平行语料", "17,000,000"]
    assert [row[0] for row in page.table("步骤")][-1] == "合计"
    assert not {"origin", "read", "total", "reason"} & {
        row[0] for own in page.tables for row in own
    }
    assert "语义：丢失数字“三”" in text
    assert "通顺：“的的”不通顺" in text
    assert "斯皮尔曼等级相关" in text
    assert "Spearman's rank correlation" in html.unescape(text)
    assert all(chinese(own) != own for own in EXPLANATIONS.values())


def test_accounts_that_do_not_close(summary):
    text, _ = written(changed(summary, rows=ROWS | {"llm": rows_of(2_400, 2_300, 77, 22)}))
    assert "17,002,400 ≠ 16,989,954 + 4,423 + 8,022" in text
    assert "do not add up" in text


def test_examples_from_lowest_to_highest(summary):
    text, _ = written(summary)
    assert text.index("<b>0.100</b>") < text.index("<b>0.900</b>")
    shown = text[text.index("Example pairs") :]
    assert shown.index("<h3>") < shown.index("stage 0") < shown.index("stage 3")
    assert shown.count("<h3>") == 2
    low, high = [t[1] for t in Page(text).tables if t[0] == list(FEATURES)]
    assert low == ["0.250", "-", "-", "0.250", "0.250", "0.250", "17", "1.059"]
    assert high[1] == "0.250"
    assert text.count('<p lang="zh">') == 4


def test_text_is_escaped(summary):
    hostile = "火势<script>alert(1)</script>&amp;{{ run_id }}\"'蔓延"
    odd = replace(
        changed(summary, run_id="<b>run</b>", signature="seg:<i>"),
        folder="x&y<",
        sample=replace(
            SAMPLE, examples=[example(source=hostile, paraphrase=hostile, reasons=[hostile])]
        ),
    )
    text, _ = written(odd)
    assert "script" not in Page(text).tags
    escaped = "火势&lt;script&gt;alert(1)&lt;/script&gt;&amp;amp;{{ run_id }}&#34;&#39;蔓延"
    assert text.count(escaped) == 3
    assert "<b>run" not in text
    assert "seg:&lt;i&gt;" in text
    assert "x&amp;y&lt;" in text


def test_every_reason_is_explained():
    assert set(EXPLANATIONS) == {*REASONS, MALFORMED}


def test_nothing_scored(summary):
    bare = changed(
        summary,
        rows={"llm": rows_of(5, 0, 5, 0)},
        stages={},
        quarantine={"llm": {"null": 5}},
        cuts={"llm": [None] * 3},
        quantiles={},
        seconds={},
    )
    bare = replace(bare, bins={}, sample=Sample())
    text, png = written(bare)
    assert "5 = 0 + 5 + 0" in text
    assert "No pairs were scored" in text
    assert picture(png).size == (1680, 1260)
    assert row(printed(bare), "total") == ["5", "0", "0", "0", "0", "5", "0"]


# The picture


def picture(png: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(png))
    assert image.format == "PNG"
    image.load()
    assert len(png) < 300_000
    return image


SPREAD = {index: 1 + index % 7 for index in range(10_001)}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "change",
    [
        {"bins": dict.fromkeys(ORIGINS, SPREAD)},
        {"bins": {"parallel": {5_000: 9_000_000}, "llm": {}}, "sample": Sample()},
        {"cuts": {"llm": [None, 1.0, 1.5], "parallel": [0.5, 0.5, 0.5]}},
    ],
)
def test_picture(summary, change):
    other = changed(summary, **{"cuts": summary.manifest.thresholds} | change)
    other = replace(other, **{name: change[name] for name in ("bins", "sample") if name in change})
    other = changed(other, rows={origin: rows_of(1, 1, 0, 0) for origin in other.bins})
    _, png = written(other)
    image = picture(png)
    assert image.size == (1680, 1260)
    assert len(image.convert("RGB").getcolors(1 << 24)) > 10
