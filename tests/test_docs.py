"""The README and the pages of docs/: links lead somewhere, commands exist, Python snippets run."""

import re
import shlex
from pathlib import Path

import pytest
from usage import usage

from gaixie.jobs.cli import COMMANDS

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


def blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return [body for name, body in FENCE.findall(text) if name == language]


SCRIPT = re.compile(r"(jobs|training|service|research(?:/benchmarks)?)/\w+\.py")


def commands() -> list[tuple[str, list[str]]]:
    """Every line of a shell block that starts one of our scripts: the script, and the words behind it."""
    known = []
    for page in PAGES:
        for block in blocks(page, "sh"):
            for line in block.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                if words[:1] == ["gaixie"]:
                    known.append(
                        (COMMANDS[words[1]]["module"].replace(".", "/") + ".py", words[2:])
                    )
                elif script := next(filter(SCRIPT.fullmatch, words), None):
                    known.append((script, words[words.index(script) + 1 :]))
    return known


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 200


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)", FENCE.sub("", text)):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_commands_start_scripts_and_name_options_that_exist():
    assert len(commands()) > 15
    for script, words in commands():
        # A script with commands of its own says only there what they take.
        own = f"{usage(script)}{(ROOT / script).read_text(encoding='utf-8')}"
        if words and f" {words[0]} " in usage(script).partition("...")[0] and words[0].isalpha():
            own += usage(script, words[0])
        for word in words:
            if word.startswith("--"):
                option = word.partition("=")[0]
                assert re.search(rf"{option}\b", own), f"{script} has no {option}"


def test_python_snippets_run(spark):
    """Those that need no file of the reader's; in the order in which the README gives them."""
    names: dict = {}
    ran = 0
    for page in (ROOT / "README.md", ROOT / "docs/metric.md"):
        for block in blocks(page, "python"):
            exec(compile(block, str(page), "exec"), names)
            ran += 1
    assert ran >= 3
    assert names["metric"].judge([names["source"]], [names["paraphrase"]]).shape == (1, 5)
