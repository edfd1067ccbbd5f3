"""pip must install one top-level package, which clashes with nothing in a user's project."""

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
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


def python(*line: object, **given: object) -> str:
    words = [sys.executable, *map(str, line)]
    done = subprocess.run(words, capture_output=True, text=True, **given)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def pip(*words: object) -> None:
    python("-m", "pip", "--disable-pip-version-check", *words, "--quiet", "--no-deps")


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    """Returns a copy of git's files, because setuptools leaves folders where it builds."""
    folder = tmp_path_factory.mktemp("source") / "tree"
    for part in ROOMS:
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    for name in (*OWN, "setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture(scope="module")
def wheel(source, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", source, "--no-build-isolation", "--wheel-dir", folder)
    return next(folder.glob("*.whl"))


def files(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


@pytest.mark.long
def test_the_wheel_has_every_file_of_the_package(wheel):
    tracked = ("git", "ls-files", *ROOMS)
    done = subprocess.run(tracked, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("not a git checkout")
    expected = {f"gaixie/{name}" for name in done.stdout.splitlines() if (ROOT / name).exists()}
    assert expected | {f"gaixie/{name}" for name in OWN} == files(wheel)


@pytest.mark.long
def test_a_source_distribution_gives_the_same_wheel(wheel, source, tmp_path):
    code = "import sys; from setuptools.build_meta import build_sdist as b; print(b(sys.argv[1]))"
    name = python("-c", code, tmp_path, cwd=source).split()[-1]
    pip("wheel", tmp_path / name, "--no-build-isolation", "--wheel-dir", tmp_path)
    assert files(next(tmp_path.glob("*.whl"))) == files(wheel)


@pytest.mark.long
def test_it_lies_beside_a_project_with_its_own_jobs_and_conf(wheel, tmp_path):
    site, project = tmp_path / "site", tmp_path / "project"
    pip("install", wheel, "--target", site)
    for name in ("jobs", "conf"):
        (project / name).mkdir(parents=True)
        (project / name / "__init__.py").write_text(f"MINE = 'own-{name}'\n")
    environment = {"PYTHONPATH": str(site), "PATH": "/usr/bin", "HOME": str(tmp_path)}
    lines = python("-c", ASK, site / "gaixie", cwd=project, env=environment).splitlines()
    out, modules = lines[-2:]
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
