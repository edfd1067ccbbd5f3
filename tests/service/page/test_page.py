"""The page in a real browser: every part, both languages and themes, a phone, the keyboard."""

import configparser
import csv
from pathlib import Path

import pytest
from axe_core_python.sync_playwright import Axe
from gaixie.service.edit_writer import EditWriter
from pages import BROWSER, TABS, texts, until
from services import serving
from whole_service import LEARNT

from gaixie.service.app import make_app
from gaixie.service.paraphrasing import ParaphrasingPart
from gaixie.service.settings import ServiceSettings
from gaixie.udfs.meaning import explain
from gaixie.udfs.spscore import SPScore
from gaixie.udfs.spscore.stages import ORIGINS

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(BROWSER is None, reason="needs Debian's chromium"),
]


def highlighted(page) -> list[str]:
    """Returns the text marked in the sentences while a reason is pointed at."""
    return page.evaluate("[...(CSS.highlights.get('reason') ?? [])].map(String)")


def asked(page, path: str) -> list[str]:
    """Returns a list that collects the addresses below a path that the page requests."""
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
    rating = f"{5 * scores['spscore']:.1f}"
    assert page.inner_text(".whole").startswith(f"about {rating} of 5: ")
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
    assert page.inner_text(".whole").startswith(f"约 {rating} 分")
    assert "共有词语的顺序" in page.inner_text(".judgements")
    page.reload()
    page.wait_for_selector("html[lang=zh]")  # the chosen language stays


def test_all_that_is_said_is_said_in_both_languages(open_page):
    """The page must have all its texts in both languages, and every reason of the metric in
    Chinese."""
    english = configparser.ConfigParser()
    english.read(Path(explain.__file__).with_name("reasons.ini"), "utf-8")
    own = ("structure", "synonyms", "meaning", "fluency", "score", "level_")  # has its own words
    said = [
        text.format(share="40%", text="甲", other="乙")
        for name, text in english["en"].items()
        if not name.startswith(own)
    ]
    keys, left, origins = open_page("/#score").evaluate(
        """async (said) => {
          const { TEXTS, reasonIn } = await import("/page/texts.js");
          const keys = ["en", "zh"].map((own) => [...Object.keys(TEXTS[own]), ...Object.keys(TEXTS[own].reasons)].sort());
          return [keys, said.filter((own) => reasonIn("zh", `meaning: ${own}`).text === own), Object.keys(TEXTS.zh.origins)];
        }""",
        said,
    )
    assert keys[0] == keys[1]
    assert len(said) > 15
    assert left == []
    assert sorted(origins) == sorted(ORIGINS)


def test_scores_follow_what_is_typed(open_page):
    """Scores must belong to the last text typed, the text must show unchanged, and the address
    must have the pair."""
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
    page.wait_for_selector("text=A sentence has no Chinese.")


def test_a_result_is_copied_whole(open_page):
    page = open_page("/#score", permissions=["clipboard-read", "clipboard-write"])
    page.wait_for_selector("#score-result .card")
    page.click("text=Copy result")
    page.wait_for_selector("text=Copied.")
    copied = page.evaluate("navigator.clipboard.readText()").splitlines()
    assert copied[:2] == [page.input_value("#source"), page.input_value("#rewrite")]
    assert copied[2] == page.inner_text(".whole")
    assert copied[-1].startswith("SPScore-zh|")


def test_an_old_result_is_marked_until_the_new_one_comes(open_page):
    page = open_page("/#score")
    page.wait_for_selector("#score-result .card")
    waiting = []
    page.route("**/v1/score", lambda route: waiting.append(route))
    page.click("text=Swap")
    page.wait_for_selector("#score-result.stale")
    until(page, lambda: waiting)
    waiting.pop().continue_()
    page.wait_for_selector("#score-result:not(.stale) .card")


def test_a_replaced_word_has_alternatives(open_page):
    page = open_page("/#score")
    page.click("#score-result button.replaced >> text=不在乎")
    choice = page.locator(".choices button", has_text="不在意")
    assert choice.inner_text()[-5] in "+−"
    choice.click()
    until(page, lambda: "不在意" in page.input_value("#rewrite"))
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
    assert "not in this sentence: 昨天" in page.inner_text(
        "#paraphrase-results section:first-of-type"
    )
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
    page.click("text=About this model")
    assert page.inner_text("#card").strip()
    page.fill("#texts", "\n".join([LEARNT[0][0]] * 200))
    page.click("#paraphrase-form .main")
    page.press("#texts", "Control+Enter")  # it is already working
    page.wait_for_selector("text=/Working … [1-9][0-9]*\\/200/")
    page.click("#paraphrase-cancel")
    page.wait_for_selector("text=Cancelled.")
    assert page.locator("#paraphrase-results section").count() < 200


def test_the_page_says_what_writes_and_how_good_it_is(open_page):
    """The page must quote the shipped paraphraser's card, in its own language."""
    settings = ServiceSettings()
    parts = [ParaphrasingPart(EditWriter("core", settings.max_characters), settings)]
    with serving(make_app(parts, settings)) as service:
        [model] = service.ask("/v1/models").json["models"]
        said = [model["card"], model["card_zh"]]
        page = open_page("/#paraphrase", url=service.url)
        page.click("text=About this model")
        assert page.inner_text("#card") == said[0]
        page.click("#language")
        assert page.inner_text("#card") == said[1]
    for text, *words in (
        (said[0], "language models", "light rewordings"),
        (said[1], "大语言模型", "轻度改写"),
    ):
        for own in ("162", "15%", "97%", "99%", "95%", "WMT", *words):
            assert own in text


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
    assert texts(page, "#table-result tbody tr:first-child td.number")[0] == f"{scores[0]:.2f}"
    with page.expect_download() as download:
        page.click("text=Download with scores")
    assert download.value.suggested_filename == "pairs-scored.csv"
    with open(download.value.path(), encoding="utf-8-sig", newline="") as file:
        rows = [*csv.DictReader(file)]
    assert [int(row["id"]) for row in rows] == [*range(60)]
    assert {row["note"] for row in rows} == {'a "note",\nof two lines'}
    found = [float(row["spscore"]) for row in rows]
    assert found == pytest.approx(examples["spscore"].slice(0, 60).to_pylist(), abs=1e-5)
    page.select_option("#column-paraphrase", "note")  # results of the old column disappear
    assert page.locator("#table-result tbody tr").count() == 0
    page.click("#table-form .main")
    page.wait_for_selector("#table-result tbody tr >> text=of two lines")


def test_a_table_that_is_wrong(open_page, tmp_path):
    """A wrong table must give an error in the page's language, and clear the previous results."""
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


def test_the_keyboard_and_back(open_page):
    page = open_page()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.focus("#tab-run")
    for name in ("score", "paraphrase", "table", "run", "score", "paraphrase"):
        page.keyboard.press("ArrowRight")
        page.wait_for_function(f"document.activeElement.id === 'tab-{name}'")
        page.wait_for_selector(f"#{name}:visible")
    page.keyboard.press("Tab")
    page.keyboard.insert_text(LEARNT[0][0])
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("text=1 sentence done.")
    page.go_back()
    page.wait_for_selector("#score:visible")  # the event arrives a moment later
    page.evaluate("location.hash = 'table'")
    page.wait_for_selector("#table:visible")


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_it(open_page, scheme, width):
    """axe must find no fault in any part, nothing may be wider than the window, and the theme must
    be the system's."""
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
