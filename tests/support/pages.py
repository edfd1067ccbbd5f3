"""Shared by the tests of the page: the browser, and how to wait."""

import shutil

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
FLAGS += ["--no-first-run", "--disable-component-update"]
TABS = ("run", "score", "paraphrase", "table")
SECONDS = 60_000


def texts(page, selector: str) -> list[str]:
    return page.locator(selector).all_inner_texts()


def until(page, true) -> None:
    """Waits until ``true`` holds; Playwright's own wait evaluates a string, which the page's policy
    forbids."""
    for _ in range(SECONDS // 50):
        if true():
            return
        page.wait_for_timeout(50)
    raise TimeoutError
