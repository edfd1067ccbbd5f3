"""README and docs/ stay true: links work, commands and options exist, Python snippets run."""

import re
import shlex
from pathlib import Path

from shared import ROOT
from usage import usage

from gaixie.jobs.cli import COMMANDS
from gaixie.udfs.spscore import VERSION

PAGES = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "infra/README.md"))]
PAGES += sorted((ROOT / "docs").glob("*.md"))
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


def blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return [body for name, body in FENCE.findall(text) if name == language]


SCRIPT = re.compile(r"(jobs|training|service|research(?:/benchmarks)?)/\w+\.py")


def commands() -> list[tuple[str, list[str]]]:
    """Returns (script, arguments) of each shell line that starts one of our scripts."""
    known = []
    shell = "".join(block for page in PAGES for block in blocks(page, "sh"))
    inline = r"`((?:gaixie [a-z]|python [jrst]\w+/)[^`]+)`"
    for page in PAGES:
        found = re.findall(inline, FENCE.sub("", page.read_text(encoding="utf-8")))
        shell += "".join(f"{' '.join(command.split())}\n" for command in found)
    for line in shell.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["gaixie"]:
            module = COMMANDS[words[1]]["module"]
            known.append((f"{module.replace('.', '/')}.py", words[2:]))
        elif script := next(filter(SCRIPT.fullmatch, words), None):
            known.append((script, words[words.index(script) + 1 :]))
    return known


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


def test_the_citation_names_the_version_of_the_metric():
    assert f"SPScore-zh metric (version {VERSION})" in (ROOT / "CITATION.cff").read_text("utf-8")


def test_links_lead_somewhere():
    for page in PAGES:
        text = FENCE.sub("", page.read_text(encoding="utf-8"))
        for target in re.findall(r"\]\((?!http)([^)#\s]+)", text):
            assert (page.parent / target).exists(), (page, target)


def test_commands_start_scripts_and_name_options_that_exist():
    assert len(commands()) > 15
    for script, words in commands():
        # A script with subcommands lists their options only in their own help.
        own = f"{usage(script)}{(ROOT / script).read_text(encoding='utf-8')}"
        if words and f" {words[0]} " in usage(script).partition("...")[0] and words[0].isalpha():
            own += usage(script, words[0])
        for word in words:
            if word.startswith("--"):
                option = word.partition("=")[0]
                assert re.search(rf"{option}\b", own), f"{script} has no {option}"


def test_python_snippets_run(spark):
    """Snippets must run in the order in which a reader meets them; API changes break them."""
    names: dict = {}
    ran = 0
    for page in (ROOT / "README.md", ROOT / "docs/metric.md"):
        for block in blocks(page, "python"):
            exec(compile(block, str(page), "exec"), names)
            ran += 1
    assert ran >= 2
    assert names["metric"].judge([names["source"]], [names["paraphrase"]]).shape == (1, 5)
