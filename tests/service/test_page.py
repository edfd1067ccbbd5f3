"""The page, clicked through in a real browser: every part, both languages, both themes, a phone, the keyboard."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from services import serving
from whole_service import LEARNT, scored_examples, whole_app

pytest.importorskip("duckdb", reason="the pairs of a run are looked at with DuckDB")
pytest.importorskip("playwright", reason="playwright drives the browser")
pytest.importorskip("axe_core_python", reason="axe looks at the page")

from axe_core_python.sync_playwright import Axe
from playwright.sync_api import Browser, sync_playwright

from gaixie.service.app import make_app
from gaixie.service.scoring import ScoringPart
from gaixie.service.settings import ServiceSettings
from gaixie.udfs.spscore import SPScore

ROOT = Path(__file__).parents[2]
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
FLAGS += ["--no-first-run", "--disable-component-update"]
TABS = ("run", "paraphrase", "score", "table")
SECONDS = 30_000

pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs Debian's chromium")


@pytest.fixture(scope="module")
def examples() -> pa.Table:
    return scored_examples()


@pytest.fixture(scope="module")
def service(tmp_path_factory, examples):
    """All parts at once."""
    with serving(whole_app(tmp_path_factory.mktemp("service"), examples)) as service:
        yield service


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser, service):
    """Opens the page; at the end of a test nothing was asked elsewhere, and nothing complained."""
    asked: list[str] = []
    complaints: list[str] = []
    contexts = []

    def start(path: str = "/", url: str = service.url, expected: str = "", **options):
        context = browser.new_context(**{"locale": "en-US"} | options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(SECONDS)
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "console",
            lambda line: (
                line.type == "error"
                and not (expected and expected in line.text)
                and complaints.append(line.text)
            ),
        )
        page.goto(url + path)
        page.wait_for_selector("body[data-ready]")
        return page

    yield start
    for context in contexts:
        context.close()
    assert complaints == []
    own = ("http://127.0.0.1:", "blob:http://127.0.0.1:", "data:")
    assert [url for url in asked if not url.startswith(own)] == []


def texts(page, selector: str) -> list[str]:
    return page.locator(selector).all_inner_texts()


def test_paraphrases(open_page):
    page = open_page("/#paraphrase")
    page.fill("#texts", "\n".join(source for source, _ in LEARNT))
    page.fill("#count", "2")
    page.focus("#degree")
    page.keyboard.press("End")
    assert texts(page, "#degree-name") == ["5 · a rewrite"]
    page.click("#paraphrase-form .main")
    page.wait_for_selector("text=2 sentences done.")
    assert texts(page, "#paraphrase-results h2") == [source for source, _ in LEARNT]
    cards = page.locator("#paraphrase-results .card")
    assert 2 <= cards.count() <= 4
    assert cards.first.locator("meter").count() == 4
    marked = page.locator("#paraphrase-results .sentence .moved")
    assert marked.count() >= 2
    marked.first.hover()
    page.wait_for_selector(".sentence .partner")
    page.fill("#keep", "昨天，公园")
    page.click("#paraphrase-form .main")
    page.wait_for_selector("text=2 sentences done.")
    for sentence in texts(
        page, "#paraphrase-results section:nth-of-type(2) .card > .head + .sentence"
    ):
        assert "昨天" in sentence


def test_a_paraphrase_is_copied_and_another_cancelled(open_page):
    page = open_page("/#paraphrase", permissions=["clipboard-read", "clipboard-write"])
    page.fill("#texts", LEARNT[0][0])
    page.click("#paraphrase-form .main")
    page.click("#paraphrase-results .card:first-of-type >> text=Copy")
    page.wait_for_selector("text=Copied.")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == texts(page, "#paraphrase-results .card .sentence")[0]
    page.fill("#texts", "\n".join([LEARNT[0][0]] * 200))
    page.click("#paraphrase-form .main")
    page.click("#paraphrase-cancel")
    page.wait_for_selector("text=Cancelled.")
    assert page.is_hidden("#paraphrase-cancel")
    assert page.locator("#paraphrase-results section").count() < 200


def test_scores(open_page):
    page = open_page("/#score", locale="zh-CN")
    assert page.get_attribute("html", "lang") == "zh"
    page.click("text=示例")
    page.wait_for_selector("#score-result .card")
    pair = [page.input_value("#source"), page.input_value("#rewrite")]
    expected = SPScore.load().score([pair[0]], [pair[1]])[0]
    assert texts(page, "#score-result .whole")[0].startswith(f"{expected:.3f}")
    assert any("语序未变" in reason for reason in texts(page, ".reasons li"))
    assert page.locator("#score-result .sentence .replaced").count() == 4  # two of each side
    page.click("#language")
    assert page.get_attribute("html", "lang") == "en"
    assert any(
        "of the shared words stand in the same order" in one for one in texts(page, ".reasons li")
    )
    page.click("text=Swap")
    assert [page.input_value("#source"), page.input_value("#rewrite")] == pair[::-1]
    page.fill("#source", "hello")
    page.fill("#rewrite", "hi there")
    page.click("#score-form .main")
    page.wait_for_selector("text=no Chinese in it")
    page.reload()
    assert page.get_attribute("html", "lang") == "en"  # as it was chosen


@pytest.mark.parametrize("encoding", ["utf-8", "gb18030"])
def test_a_table(open_page, examples, tmp_path, encoding):
    with open(tmp_path / "pairs.csv", "w", newline="", encoding=encoding) as file:
        write = csv.writer(file).writerow
        write(["id", "source", "note", "paraphrase"])
        for k, row in enumerate(examples.slice(0, 60).to_pylist()):
            write([k, row["source"], 'a "note",\nof two lines', row["paraphrase"]])
    page = open_page("/#table")
    page.set_input_files("#file", tmp_path / "pairs.csv")
    page.select_option("#encoding", encoding)
    page.click("#table-form .main")
    page.wait_for_selector("text=50 of 60 rows")
    assert page.locator("#table-result tbody tr").count() == 50
    assert page.locator("#table-result .histogram i").count() == 20
    with page.expect_download() as download:
        page.click("text=Download with scores")
    assert download.value.suggested_filename == "pairs-scored.csv"
    with open(download.value.path(), encoding="utf-8-sig", newline="") as file:
        rows = [*csv.DictReader(file)]
    assert [int(row["id"]) for row in rows] == [*range(60)]
    assert {row["note"] for row in rows} == {'a "note",\nof two lines'}
    found = [float(row["spscore"]) for row in rows]
    assert found == pytest.approx(examples["spscore"].slice(0, 60).to_pylist(), abs=1e-5)


def test_a_table_that_is_wrong(open_page, tmp_path):
    (tmp_path / "wrong.csv").write_text("source,target\na,b\n")
    page = open_page("/#table", expected="422")
    page.set_input_files("#file", tmp_path / "wrong.csv")
    page.click("#table-form .main")
    page.wait_for_selector("#trouble:visible")
    assert "expected one column paraphrase, found source, target" in page.inner_text("#trouble")


def test_a_run(open_page, examples):
    page = open_page("/#run")
    page.wait_for_selector(f"#run-status:has-text('{len(examples)} pairs')")
    scores = examples["spscore"].to_pylist()
    assert page.locator("#run-rows tbody tr").count() == 50
    first = "#run-rows tbody tr:first-child td:nth-child(3)"
    assert texts(page, first) == [f"{max(scores):.2f}"]
    page.click("#run-more")
    page.wait_for_selector("#run-rows tbody tr:nth-child(100)")
    page.select_option("#run-order", "asc")
    page.fill("#run-min_spscore", "0.3")
    page.click("#run-form .main")
    kept = [score for score in scores if score >= 0.3]
    page.wait_for_selector(f"#run-status:has-text('{len(kept)} pairs')")
    assert texts(page, first) == [f"{min(kept):.2f}"]
    page.click("#run-rows tbody tr:first-child button")
    page.wait_for_selector("tr.detail .judgements")
    page.click("#run-rows tbody tr:first-child button")
    assert page.locator("tr.detail").count() == 0
    for form in ("CSV", "Parquet"):
        with page.expect_download() as download:
            page.click(f"text=Export {form}")
        path = download.value.path()
        read = pq.read_table(path) if form == "Parquet" else pa.csv.read_csv(path)
        assert len(read) == len(kept)
    page.click("text=Random pairs")
    page.wait_for_selector("#run-status:has-text('pairs')")
    page.fill("#run-text", "没有这样的文字")
    page.click("#run-form .main")
    page.wait_for_selector("text=No pair is like that.")


def test_a_token_is_asked_for(open_page):
    settings = ServiceSettings(tokens={"me": "a-secret-of-sixteen"})
    with serving(make_app([ScoringPart("core", settings)], settings)) as service:
        page = open_page(url=service.url, expected="401")
        page.click("text=Example")
        page.wait_for_selector("#trouble:visible")
        assert "bearer token" in page.inner_text("#trouble")
        page.fill("#token-value", "a-secret-of-sixteen")
        page.keyboard.press("Enter")
        page.click("text=Example")
        page.wait_for_selector("#score-result .card")
        assert page.is_hidden("#trouble")


def test_the_keyboard_alone(open_page):
    page = open_page()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.focus("#tab-run")
    for name in ("paraphrase", "score", "table", "run", "paraphrase"):
        page.keyboard.press("ArrowRight")
        assert page.evaluate("document.activeElement.id") == f"tab-{name}"
        assert page.is_visible(f"#{name}")
    page.keyboard.press("Tab")
    page.keyboard.insert_text(LEARNT[0][0])
    for _ in range(4):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=1 sentence done.")


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_it(open_page, scheme, width):
    """axe finds nothing serious in any part; nothing is wider than the window; the theme is the system's."""
    page = open_page(color_scheme=scheme, viewport={"width": width, "height": 800})
    assert page.get_attribute("html", "data-theme") == scheme
    page.wait_for_selector("#run-rows tbody tr")
    page.click("#run-rows tbody tr:first-child button")
    page.wait_for_selector("tr.detail .judgements")
    for name in TABS:
        page.click(f"#tab-{name}")
        if name == "paraphrase":
            page.fill("#texts", LEARNT[0][0])
            page.click("#paraphrase-form .main")
            page.wait_for_selector("text=1 sentence done.")
        if name == "score":
            page.click("text=Example")
            page.wait_for_selector("#score-result .card")
        faults = Axe().run(page)["violations"]
        serious = [own for own in faults if own["impact"] in ("serious", "critical")]
        assert [(own["id"], own["nodes"][0]["html"]) for own in serious] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
