"""The page in a real browser: its service, and a check for errors and foreign requests."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from services import BROWSER, FLAGS, PATIENCE, scored_examples, whole_app


@pytest.fixture(scope="module")
def examples() -> pa.Table:
    """Returns the scored example pairs, each with a rating of 4."""
    scored = scored_examples()
    return scored.append_column("rated", pa.array([4.0] * len(scored), pa.float32()))


@pytest.fixture(scope="module")
def app(tmp_path_factory, examples, known_writer):
    """Returns an application with all parts."""
    return whole_app(tmp_path_factory.mktemp("service"), examples, known_writer)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser, service):
    """Returns a function that opens the page; at the end, asserts that it asked no other host and
    logged no error."""
    asked: list[str] = []
    complaints: list[str] = []
    contexts = []

    def start(path: str = "/", url: str = service.url, expected: str = "", **options):
        context = browser.new_context(**{"locale": "en-US"} | options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(1000 * PATIENCE)
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: complaints.append(str(error)))

        def hear(line):
            if line.type == "error" and not (expected and expected in line.text):
                complaints.append(line.text)

        page.on("console", hear)
        page.goto(url + path)
        page.wait_for_selector("body[data-ready]")
        return page

    yield start
    for context in contexts:
        context.close()
    assert complaints == []
    own = ("http://127.0.0.1:", "blob:http://127.0.0.1:", "data:")
    assert [url for url in asked if not url.startswith(own)] == []
