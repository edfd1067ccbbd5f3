"""The page, clicked through in a real browser: every part, both languages, both themes, a phone, the keyboard."""

from __future__ import annotations

import csv
import json
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

from gaixie.udfs.meaning.explain import describe
from gaixie.udfs.spscore import SPScore

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
FLAGS += ["--no-first-run", "--disable-component-update"]
TABS = ("run", "score", "paraphrase", "table")
SECONDS = 60_000

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


def until(page, true) -> None:
    """Waits; Playwright's own way evaluates a string, which the page's policy forbids."""
    for _ in range(SECONDS // 50):
        if true():
            return
        page.wait_for_timeout(50)
    raise TimeoutError


def highlighted(page) -> list[str]:
    """What is marked in the sentences because a reason is pointed at."""
    return page.evaluate("[...(CSS.highlights.get('reason') ?? [])].map(String)")


def asked(page, path: str) -> list[str]:
    """Addresses below a path that the page asks for from now on."""
    found: list[str] = []
    page.on("request", lambda request: path in request.url and found.append(request.url))
    return found


def test_the_first_look_is_a_score_that_is_understood(open_page):
    page = open_page("/#score")
    page.wait_for_selector("#score-result .card")
    [scores] = (
        SPScore.load()
        .judge(*([page.input_value(own)] for own in ("#source", "#rewrite")))
        .to_dict("records")
    )
    said = describe(scores["spscore"])
    assert page.inner_text(".whole").startswith(f"{said}, meaning ")
    assert page.is_hidden("#signature")
    page.click("text=About this score")
    assert page.inner_text("#signature").startswith("SPScore-zh|")
    structure = page.locator(".judgement").first
    assert "of the shared words stand in the same order" in structure.inner_text()
    share = "own => own.querySelector('i').offsetWidth / own.querySelector('.bar').offsetWidth"
    assert structure.evaluate(share) == pytest.approx(scores["structure"], abs=0.02)
    page.hover(".reason >> nth=0")
    assert highlighted(page)[0] in page.inner_text(".reason >> nth=0")
    page.focus(".reason >> nth=1")
    assert highlighted(page)[0] in page.inner_text(".reason >> nth=1")
    page.click("#language")
    assert page.inner_text(".whole").startswith(describe(scores["spscore"], "zh"))
    assert "共有词语的顺序" in page.inner_text(".judgements")
    page.reload()
    assert page.get_attribute("html", "lang") == "zh"  # as it was chosen


def test_a_near_copy_is_called_so(open_page):
    page = open_page("/#score")
    page.fill("#rewrite", page.input_value("#source").replace("往下掉", "往下流"))
    until(page, lambda: page.inner_text(".whole").endswith(": a near-copy, meaning kept"))


def test_scores_follow_what_is_typed(open_page):
    """Each answer is of the last text; what is shown is what was written; the address has the pair."""
    page = open_page("/#score")
    page.wait_for_selector("#score-result .card")
    requests = asked(page, "/v1/score")
    page.fill("#source", "今天天气很好，我们一起去公园吧。")
    page.fill("#rewrite", "")
    page.focus("#rewrite")
    page.keyboard.type("天气这么好，咱们一块儿去公园吧！", delay=10)
    until(page, lambda: texts(page, ".sentence")[-1:] == ["天气这么好，咱们一块儿去公园吧！"])
    assert texts(page, "#score-result .sentence") == [
        "今天天气很好，我们一起去公园吧。",
        "天气这么好，咱们一块儿去公园吧！",
    ]
    assert len(requests) < 12
    before = page.inner_text("#score-result .judgements")
    page.keyboard.press("Control+Enter")
    until(page, lambda: page.inner_text("#score-status").startswith("about"))
    page.reload()
    page.wait_for_selector("#score-result .card")
    assert page.inner_text("#score-result .judgements") == before
    page.click("text=Recent pairs")
    assert page.locator("#history-pairs li").count() == 1
    page.click("text=Swap")
    until(
        page,
        lambda: texts(page, "#score-result .sentence")[:1] == ["天气这么好，咱们一块儿去公园吧！"],
    )
    page.fill("#rewrite", " ")
    assert page.locator("#score-result .card").count() == 0
    page.fill("#rewrite", "hi there")
    page.fill("#source", "hello")
    page.wait_for_selector("text=There is no Chinese in it.")


def test_a_replaced_word_has_alternatives(open_page):
    page = open_page("/#score")
    page.click("#score-result button.replaced >> text=不在乎")
    choice = page.locator(".choices button", has_text="不介意")
    assert choice.inner_text()[-5] in "+−"
    choice.click()
    until(page, lambda: "不介意" in page.input_value("#rewrite"))
    assert "不在乎" not in page.input_value("#rewrite")


def test_paraphrases(open_page):
    page = open_page("/#paraphrase", permissions=["clipboard-read", "clipboard-write"])
    page.fill("#texts", "\n".join(source for source, _ in LEARNT))
    page.fill("#count", "2")
    page.focus("#degree")
    page.keyboard.press("End")
    assert texts(page, "#degree-name") == ["5 · a rewrite"]
    page.fill("#keep", "昨天，公园")
    page.click("#paraphrase-form .main")
    page.wait_for_selector("text=2 sentences done.")
    assert texts(page, "#paraphrase-results h2") == [source for source, _ in LEARNT]
    assert "does not have: 昨天" in page.inner_text("#paraphrase-results section:first-of-type")
    second = "#paraphrase-results section:nth-of-type(2) .head + .sentence"
    assert all("昨天" in sentence for sentence in texts(page, second))
    card = page.locator("#paraphrase-results .card").first
    card.locator("text=Copy").click()
    page.wait_for_selector("text=Copied.")
    assert (
        page.evaluate("navigator.clipboard.readText()")
        == card.locator(".sentence").first.inner_text()
    )
    card.locator("text=Edit").click()
    before = card.locator(".whole").inner_text()
    card.locator("textarea").fill("我们去公园散步，那里的花今天开得好看极了。")
    until(page, lambda: card.locator(".whole").inner_text() != before)
    assert card.locator("textarea").evaluate("own => own === document.activeElement")
    page.fill("#texts", "\n".join([LEARNT[0][0]] * 200))
    page.click("#paraphrase-form .main")
    page.wait_for_selector("text=/Working … [1-9]/")
    page.click("#paraphrase-cancel")
    page.wait_for_selector("text=Cancelled.")
    assert page.locator("#paraphrase-results section").count() < 200


def test_on_a_phone_results_come_into_view(open_page):
    page = open_page("/#paraphrase", viewport={"width": 360, "height": 640})
    page.fill("#texts", LEARNT[0][0])
    page.click("#paraphrase-form .main")
    page.wait_for_selector("text=1 sentence done.")
    assert page.locator("#paraphrase-results h2").bounding_box()["y"] < 640


def write_csv(path: Path, rows: list[list], encoding: str) -> None:
    with open(path, "w", newline="", encoding=encoding) as file:
        csv.writer(file).writerows(rows)


def test_a_table(open_page, examples, tmp_path):
    rows = [
        [k, row["source"], 'a "note",\nof two lines', row["paraphrase"]]
        for k, row in enumerate(examples.slice(0, 60).to_pylist())
    ]
    write_csv(tmp_path / "pairs.csv", [["id", "原句", "note", "改写"], *rows], "gb18030")
    page = open_page("/#table")
    page.set_input_files("#file", tmp_path / "pairs.csv")
    page.wait_for_selector("#table-fields:visible")
    found = [
        page.input_value(f"#{name}") for name in ("encoding", "column-source", "column-paraphrase")
    ]
    assert found == ["gb18030", "原句", "改写"]
    page.click("#table-form .main")
    page.wait_for_selector("text=50 of 60 rows")
    scores = [float(text) for text in texts(page, "#table-result tbody td:first-child")]
    assert scores == sorted(scores)
    page.click("#table-result tbody tr:first-child")
    page.wait_for_selector("#table-result .detail .reasons")
    page.dblclick("#table-result tbody tr:first-child")
    assert page.locator("#table-result .detail").count() == 1
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
    """The error is in the page's language, and nothing of the file before is left."""
    write_csv(tmp_path / "right.csv", [["source", "paraphrase"], LEARNT[0]], "utf-8")
    (tmp_path / "wrong.csv").write_text("source,target\na,b,c\n")
    page = open_page("/#table", expected="422", locale="zh-CN")
    page.set_input_files("#file", tmp_path / "right.csv")
    page.click("#table-form .main")
    page.wait_for_selector("#table-result tbody tr")
    page.set_input_files("#file", tmp_path / "wrong.csv")
    page.wait_for_selector("#trouble:visible")
    assert page.inner_text("#trouble") == "第 2 行有 3 个单元格，而表头有 2 列。"
    assert page.locator("#table-result tbody tr").count() == 0


def test_a_run_shows_what_was_applied(open_page, examples):
    """The form prepares; rows, More, sorting and Export follow the applied query, which the address has."""
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
    page.fill("#run-text", "没有这样的文字")  # not applied
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
        )  # the browser's own: nothing goes through the page
    page.reload()
    page.wait_for_selector(f"#run-status:has-text('of {len(kept)} pairs')")
    assert texts(page, first) == [f"{min(kept):.2f}"]
    page.go_back()
    until(page, lambda: texts(page, first) == [f"{max(scores):.2f}"])
    page.fill("#run-text", "没有这样的文字")
    page.click("#run-form .main")
    page.wait_for_selector("text=No pairs match.")


def test_a_slow_old_answer_is_not_shown(open_page, examples):
    page = open_page("/#run")
    page.wait_for_selector("#run-rows tbody tr")

    def slowly(route) -> None:
        if "min_spscore" not in route.request.url:
            page.wait_for_timeout(1500)
        route.continue_()

    page.route("**/v1/run/pairs?*sort=meaning*", slowly)
    page.click("th >> text=Meaning")
    page.click("text=Filters and distributions")
    page.fill("#run-min_spscore", "0.5")
    page.click("#run-form .main")
    kept = sum(score >= 0.5 for score in examples["spscore"].to_pylist())
    page.wait_for_selector(f"#run-status:has-text('of {kept} pairs')")
    page.wait_for_timeout(2500)
    assert all(float(text) >= 0.5 for text in texts(page, "#run-rows td:first-child"))


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
    """After a reload the tab still has it; a download takes it in a cookie."""
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


def test_the_keyboard_and_back(open_page):
    page = open_page()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.focus("#tab-run")
    for name in ("score", "paraphrase", "table", "run", "score", "paraphrase"):
        page.keyboard.press("ArrowRight")
        assert page.evaluate("document.activeElement.id") == f"tab-{name}"
        assert page.is_visible(f"#{name}")
    page.keyboard.press("Tab")
    page.keyboard.insert_text(LEARNT[0][0])
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("text=1 sentence done.")
    page.go_back()
    assert page.is_visible("#score")
    page.evaluate("location.hash = 'table'")
    page.wait_for_selector("#table:visible")


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_it(open_page, scheme, width):
    """axe finds nothing in any part; nothing is wider than the window; the theme is the system's."""
    page = open_page(color_scheme=scheme, viewport={"width": width, "height": 800})
    assert page.get_attribute("html", "data-theme") == scheme
    page.wait_for_selector("#run-rows tbody tr")
    page.click("#run-rows tbody tr:first-child td.number button")
    page.wait_for_selector("tr.detail .judgements")
    page.click("text=Filters and distributions")
    for name in TABS:
        page.click(f"#tab-{name}")
        if name == "paraphrase":
            page.fill("#texts", LEARNT[0][0])
            page.click("#paraphrase-form .main")
            page.wait_for_selector("text=1 sentence done.")
        if name == "score":
            page.wait_for_selector("#score-result .card")
        faults = Axe().run(page)["violations"]
        assert [(own["id"], own["nodes"][0]["html"]) for own in faults] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_reference_of_the_api(open_page, service):
    context = open_page().context.browser.new_page()
    context.goto(f"{service.url}/docs")
    text = context.inner_text("main")
    for own in (
        "POST /v1/score",
        "pairs.source",
        "number, 0 to 1",
        "curl -s localhost:8000/v1/score",
    ):
        assert own in text
    assert [own["id"] for own in Axe().run(context)["violations"]] == []
    context.close()
