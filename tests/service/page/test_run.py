"""A run on the page, in a real browser: filters, rows, details, verdicts, downloads, a token."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from services import BROWSER, serving, texts, until, whole_app

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(BROWSER is None, reason="needs Debian's chromium"),
]


def test_a_run_shows_what_was_applied(open_page, examples):
    """Rows, More, sorting and Export must follow the applied query, not the form's unsent changes;
    the address must have the query."""
    page = open_page("/#run")
    scores = examples["spscore"].to_pylist()
    page.wait_for_selector(f"#run-status:has-text('50 of {len(scores)} pairs')")
    first = "#run-rows tbody tr:first-child td:first-child"
    assert texts(page, first) == [f"{max(scores):.2f}"]
    page.click("text=Filters and distributions")
    page.fill("#run-min_spscore", "0.3")
    page.click("#run-form .main")
    kept = [score for score in scores if score >= 0.3]
    page.wait_for_selector(f"#run-status:has-text('50 of {len(kept)} pairs')")
    page.fill("#run-text", "没有这样的文字")  # typed but not applied
    page.click("#run-more")
    page.wait_for_selector(f"#run-status:has-text('100 of {len(kept)} pairs')")
    page.click("th >> text=Score")
    until(page, lambda: texts(page, first) == [f"{min(kept):.2f}"])
    for form in ("CSV", "Parquet"):
        with page.expect_download() as download:
            page.click(f"text=Export {form}")
        path = download.value.path()
        read = pq.read_table(path) if form == "Parquet" else pa.csv.read_csv(path)
        assert len(read) == len(kept)
        assert download.value.url.startswith(
            "http"
        )  # a plain download: nothing goes through the page
    page.reload()
    page.wait_for_selector(f"#run-status:has-text('of {len(kept)} pairs')")
    assert texts(page, first) == [f"{min(kept):.2f}"]
    page.go_back()
    until(page, lambda: texts(page, first) == [f"{max(scores):.2f}"])
    page.fill("#run-text", "没有这样的文字")
    page.click("#run-form .main")
    page.wait_for_selector("text=No pairs match.")


def test_rows_open_link_and_are_sorted_out(open_page):
    page = open_page("/#run", viewport={"width": 1280, "height": 800})
    page.wait_for_selector("#run-rows tbody tr")
    row = page.locator("#run-rows tbody tr").first
    assert row.bounding_box()["y"] < 400
    assert row.locator(".moved, .replaced, .added, .lost").count() > 1
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    row.locator("td.number").last.click()
    page.wait_for_selector("tr.detail .judgements")
    box = page.locator("tr.detail .card").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 1280
    page.dblclick("#run-rows tbody tr:first-child td.number >> nth=1")
    assert page.locator("tr.detail").count() == 1
    assert "pair=" in page.url
    page.reload()
    page.wait_for_selector("tr.detail .judgements")
    page.click("#run-rows .keep >> nth=0")
    page.click("#run-rows .reject >> nth=1")
    assert "1 kept, 1 rejected" in page.inner_text("#run-verdicts")
    with page.expect_download() as download:
        page.click("text=Export verdicts")
    lines = [
        json.loads(line) for line in Path(download.value.path()).read_text("utf-8").splitlines()
    ]
    assert [line["verdict"] for line in lines] == ["keep", "reject"]
    page.click("text=Filters and distributions")
    page.click("#run-figures .histogram >> nth=0 >> button >> nth=10")
    until(page, lambda: "min_spscore=0.5&max_spscore=0.55" in page.url)


def test_a_token_is_asked_for_once(open_page, tmp_path, examples):
    """The page must ask for a token once: the tab keeps it after a reload, and downloads send it in
    a cookie."""
    settings = {"tokens": {"me": "a-secret-of-sixteen"}}
    with serving(whole_app(tmp_path, examples, **settings)) as service:
        page = open_page(url=service.url, path="/#run", expected="401")
        page.wait_for_selector("#trouble:visible")
        assert "bearer token" in page.inner_text("#trouble")
        page.fill("#token-value", "a-secret-of-sixteen")
        page.keyboard.press("Enter")
        page.wait_for_selector("#run-rows tbody tr")
        page.reload()
        page.wait_for_selector("#run-rows tbody tr")
        assert page.is_hidden("#token")
        with page.expect_download() as download:
            page.click("text=Export CSV")
        assert len(pa.csv.read_csv(download.value.path())) == len(examples)


def test_the_report_opens_from_the_run(open_page, tmp_path, examples):
    """A run's report must open in its own tab, also behind a token, with its own styles."""
    report = "<style>body { max-width: 1200px }</style><h1>A report</h1><script>alert(1)</script>"
    (tmp_path / "runs/examples").mkdir(parents=True)
    (tmp_path / "runs/examples/report.html").write_text(report)
    tokens = {"me": "a-secret-of-sixteen"}
    with serving(whole_app(tmp_path, examples, tokens=tokens)) as service:
        page = open_page(url=service.url, path="/#run", expected="401")
        page.fill("#token-value", "a-secret-of-sixteen")
        page.keyboard.press("Enter")
        with page.expect_popup() as opened:
            page.click("#run-facts >> text=Report")
        shown = opened.value
        assert shown.url == f"{service.url}/v1/run/report"
        assert shown.inner_text("h1") == "A report"
        assert shown.locator("body").evaluate("own => getComputedStyle(own).maxWidth") == "1200px"


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (1920, 1080), (390, 844)])
def test_a_row_and_its_details_are_in_the_window(open_page, width, height):
    """A whole row must fit without scrolling, and its details into the window, also in Chinese."""
    page = open_page("/#run", locale="zh-CN", viewport={"width": width, "height": height})
    row = page.locator("#run-rows tbody tr").first
    row.wait_for()
    box = row.bounding_box()
    assert box["y"] + box["height"] <= height
    assert "大模型 · 1" in row.inner_text()
    assert row.locator("td[data-name=评分]").inner_text() == "4.0"
    row.locator("td.pair").click(position={"x": 2, "y": 2})
    page.wait_for_selector("tr.detail .judgements")
    assert "评分：4.0" in page.inner_text("tr.detail")
    box = page.locator("tr.detail .card").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    assert page.evaluate("document.documentElement.scrollWidth") <= width
