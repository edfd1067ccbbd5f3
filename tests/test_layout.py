"""The rules of the source tree: which part may import which, and which files a feature has."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from shared import ROOT


def python_files(part: str) -> list[Path]:
    return sorted((ROOT / part).rglob("*.py"))


@cache
def imported(path: Path) -> set[str]:
    """Returns the absolute dotted names of all that a file imports, also inside functions."""
    package = ("gaixie", *path.relative_to(ROOT).with_suffix("").parts[:-1])
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *filter(None, [node.module])])
            names.add(module)
            names.update(f"{module}.{alias.name}" for alias in node.names)
    return names


def importers(part: str, forbidden: str) -> list[str]:
    """Returns the files of a part that import a package."""
    return [
        str(path.relative_to(ROOT))
        for path in python_files(part)
        if any(f"{name}.".startswith(f"{forbidden}.") for name in imported(path))
    ]


ROOMS = {
    "udfs": set(),
    "jobs": {"udfs"},
    "training": {"udfs"},
    "service": {"training", "jobs", "udfs"},
    "research": {"training", "jobs", "udfs", "service"},
}
"""The rooms, and which others each may import."""

ACROSS = {"service": {"jobs/show_run.py"}}
"""Exceptions by room: files of other rooms that import it, as show_run --serve starts a service."""


@pytest.mark.parametrize("room", ROOMS)
def test_imports_run_one_way(room):
    assert importers(room, "tests") == []
    for other in ROOMS.keys() - ROOMS[room] - {room}:
        assert {*importers(room, f"gaixie.{other}")} <= ACROSS.get(other, set())


FLOORS = ("storage", "text", "features", "meaning", "spscore", "paraphrase", "metrics")
"""The packages of udfs, from the ground up: each may import only those before it."""


PACKAGES = {
    "jobs": {"corpus": set()}
    | {name: {"corpus"} for name in ("scoring", "pairs", "releases", "vocabulary")},
    "training": {"modeling": set(), "loop": {"modeling"}, "evaluation": {"modeling"}},
    "service": {},
    "research": {
        "ratings": set(),
        "benchmarks": set(),
        "pair_encoder": {"ratings"},
        "fitting": {"pair_encoder", "ratings"},
        "comparison": {"fitting", "pair_encoder", "ratings"},
    },
}
PACKAGES["udfs"] = {package: {*FLOORS[:number]} for number, package in enumerate(FLOORS)}
"""The packages of each room, and which of their siblings each may import."""

SHARED_MODULES = {"gaixie.training.settings"}
"""Modules beside the scripts that are no scripts."""

SCRIPTS = {
    f"gaixie.{part}.{path.stem}"
    for part in ("jobs", "training", "research")
    for path in (ROOT / part).glob("*.py")
    if path.stem != "__init__"
} - SHARED_MODULES | {"gaixie.service.serve"}


def test_a_script_is_what_can_be_started():
    assert len(SCRIPTS) > 12
    for name in SCRIPTS:
        path = ROOT / name.removeprefix("gaixie.").replace(".", "/")
        source = path.with_suffix(".py").read_text("utf-8")
        started = source.partition('\nif __name__ == "__main__":\n')[2]
        assert started.splitlines()[-1].startswith("    sys.exit("), name
        assert ast.get_docstring(ast.parse(source)), name


@pytest.mark.parametrize("part", PACKAGES)
def test_packages_import_no_script_and_only_the_siblings_they_may(part):
    for path in python_files(part):
        if path.parent.name != "benchmarks":  # benchmarks time parts of scripts
            assert imported(path).isdisjoint(SCRIPTS), path
    folders = {path.parent.name for path in (ROOT / part).glob("*/__init__.py")}
    assert folders == {*PACKAGES[part]}
    for package, siblings in PACKAGES[part].items():
        for path in python_files(f"{part}/{package}"):
            parts = (name.split(".") for name in imported(path))
            used = {name[2] for name in parts if name[:2] == ["gaixie", part] and len(name) > 2}
            assert used & {*PACKAGES[part]} <= siblings | {package}, path


@pytest.mark.parametrize("part", [*ROOMS, "tests", "infra"])
def test_all_is_imported_by_one_name(part):
    """Code must import gaixie.udfs, never udfs: under two names, every class would exist twice."""
    assert [importers(part, name) for name in (*ROOMS, "conf")] == [[]] * 6


def test_another_name_is_refused():
    code = f"for part in {[*ROOMS]}:\n try: __import__(part)\n except ImportError as e: print(e)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.splitlines() == [f"import gaixie.{part}, not {part}" for part in ROOMS]


def test_only_one_file_of_udfs_imports_pyspark():
    assert importers("udfs", "pyspark") == ["udfs/spark.py"]


MODULES = [
    ".".join(("gaixie", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
    for path in python_files("udfs")
    if path != ROOT / "udfs" / "spark.py"
]


@pytest.mark.parametrize(
    "modules", [["gaixie.udfs.metrics"], MODULES], ids=["udfs.metrics", "all of udfs but spark"]
)
def test_import_pulls_in_nothing_that_takes_seconds(modules):
    code = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    line = [sys.executable, "-c", code]
    loaded = {*subprocess.check_output(line, cwd=ROOT, text=True).split()}
    assert set(modules) <= loaded
    assert loaded.isdisjoint({"pyspark", "torch", "lightgbm", "sklearn"})
    if modules == ["gaixie.udfs.metrics"]:
        assert loaded.isdisjoint({"transformers", "gensim", "nltk", "pandas"})
