"""pip must install one top-level package, which clashes with nothing in a user's project."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from shared import ROOT
from usage import output_of

OWN = ("__init__.py", "py.typed")
ROOMS = ("conf", "jobs", "research", "service", "training", "udfs")

ASK = """
import conf, jobs, sys
import gaixie.training.settings
from gaixie.jobs.scoring.settings import CONFIG, load_settings
from gaixie.udfs.spscore import SPScore

settings = load_settings(str(CONFIG), {}, [])
print(jobs.MINE, conf.MINE, settings.segmenter, SPScore.load().signature().split("|")[0])
files = {name: getattr(module, "__file__", None) or "" for name, module in sys.modules.items()}
print(*(name for name, file in files.items() if file.startswith(sys.argv[1])))
"""


def build(what: str, source: Path, folder: Path) -> Path:
    """Builds a wheel or an sdist of a source tree. Returns its path."""
    code = f"import sys; from setuptools.build_meta import build_{what} as b; print(b(sys.argv[1]))"
    return folder / output_of(sys.executable, "-c", code, folder, cwd=source).split()[-1]


@pytest.fixture
def site(tmp_path_factory) -> Path:
    """Returns a folder with the wheel, as pip installs it; the wheel is built from an sdist."""
    folder = tmp_path_factory.mktemp("package")
    tree = folder / "tree"  # a copy, because setuptools leaves folders where it builds
    for part in ROOMS:
        shutil.copytree(ROOT / part, tree / part, ignore=shutil.ignore_patterns("__pycache__"))
    for name in (*OWN, "setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    sdist = build("sdist", tree, folder)
    shutil.unpack_archive(sdist, folder, filter="data")
    wheel = build("wheel", folder / sdist.name.removesuffix(".tar.gz"), folder)
    shutil.unpack_archive(wheel, folder / "site", "zip")
    return folder / "site"


@pytest.mark.long
def test_the_wheel_of_an_sdist_has_every_file_and_lies_beside_other_packages(site, tmp_path):
    """A project may have its own jobs and conf."""
    tracked = ("git", "ls-files", *ROOMS)
    done = subprocess.run(tracked, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("not a git checkout")
    expected = {f"gaixie/{name}" for name in done.stdout.splitlines() if (ROOT / name).exists()}
    paths = [path.relative_to(site) for path in site.rglob("*") if path.is_file()]
    found = {str(path) for path in paths if not path.parts[0].endswith(".dist-info")}
    assert expected | {f"gaixie/{name}" for name in OWN} == found

    for name in ("jobs", "conf"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"MINE = 'own-{name}'\n")
    environment = {"PYTHONPATH": str(site), "PATH": "/usr/bin", "HOME": str(tmp_path)}
    line = [sys.executable, "-B", "-c", ASK, site / "gaixie"]
    out, modules = output_of(*line, cwd=tmp_path, env=environment).splitlines()[-2:]
    assert out.split()[:3] == ["own-jobs", "own-conf", "jieba"]
    assert out.split()[3].startswith("SPScore-zh")
    assert len(modules.split()) > 30
    assert all(name.split(".")[0] == "gaixie" for name in modules.split())


def test_the_constraints_hold_a_version_of_every_dependency():
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = metadata["optional-dependencies"].values()
    asked = [Requirement(text) for part in (metadata["dependencies"], *extras) for text in part]
    lines = (ROOT / "infra/constraints.txt").read_text("utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    pins = {canonicalize_name(name): version for name, version in pins.items()}
    for requirement in asked:
        if requirement.name != "gaixie":
            assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)])
