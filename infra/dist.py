"""Packs the jobs and all they need, except Spark, into one archive for the nodes of a cluster.

  make dist
  python infra/dist.py --python-prefix /usr    for nodes whose Python is /usr/bin/python3.11

The nodes need Spark and a Python of the same minor version as this one. The archive holds the
dependencies of pyproject.toml, in the versions of infra/constraints.txt and without PyTorch, and
the kernels, compiled for the processor levels up to this one's. dist/*.json lists its packages and
levels.

  bin/python                       a link to PREFIX/bin/python3.11 of the node
  jobs/ conf/                      links to these folders of the package below
  lib/python3.11/site-packages/    gaixie (its jobs, udfs and conf) and every dependency
"""

from __future__ import annotations

import argparse
import compileall
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from importlib.metadata import distributions
from pathlib import Path

import venv_pack
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
NEEDED = PROJECT["dependencies"] + PROJECT["optional-dependencies"]["spark"]
PARTS = ("conf", "jobs", "udfs")
"""Of the package gaixie, what jobs and their executors need."""
PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
ON_NODES = {"pyspark", "py4j"}
"""What a node's Spark has of its own."""
LEFT_OUT = ("*/tests/*", "*/include/*", "*.h", "*.hpp", "*.pxd", "*.pyx", "*.pyi", "*.a")
"""Files that only whoever builds or tests a package needs."""

SAID = """\
{archive}: {size}
for nodes with Spark {spark} and {python} (--python-prefix PREFIX for another Python)

  mkdir -p /opt/gaixie && tar -xzf {name} -C /opt/gaixie    # on the host that submits
  spark-submit --master spark://HOST:7077 \\
    --archives {name}#gaixie \\
    --conf spark.pyspark.python=./gaixie/bin/python \\
    --conf spark.pyspark.driver.python=/opt/gaixie/bin/python \\
    /opt/gaixie/jobs/score_corpus.py --input PAIRS --origin ORIGIN --output ROOT

s3a:// needs jars: --load-spark-defaults --properties-file /opt/gaixie/conf/spark/s3a-jars.conf"""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="dist.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    where = "prefix of Python on the nodes (default: the same as here)"
    prefix = Path(sys.base_prefix)
    parser.add_argument("--output", type=Path, default=ROOT / "dist", metavar="FOLDER")
    parser.add_argument("--python-prefix", type=Path, default=prefix, metavar="PREFIX", help=where)
    args = parser.parse_args()
    name = f"gaixie-{PROJECT['version']}-py{PYTHON[6:]}-{sysconfig.get_platform()}"
    archive = args.output / f"{name}.tar.gz"
    args.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        environment = Path(work) / "environment"
        install(environment)
        pack(environment, archive, args.python_prefix)
        write_record(environment, archive, args.output / f"{name}.json")
    [spark] = [line for line in NEEDED if line.startswith("pyspark==")]
    python, version = args.python_prefix / "bin" / PYTHON, spark.partition("==")[2]
    size = f"{archive.stat().st_size / 1e6:.0f} MB"
    print(SAID.format(archive=archive, name=archive.name, size=size, spark=version, python=python))
    return 0


def requirements() -> list[str]:
    """Returns what the jobs depend on, without what the nodes have."""
    return [line for line in NEEDED if Requirement(line).name not in ON_NODES]


def install(environment: Path) -> None:
    """Fills an empty environment."""
    site = environment / "lib" / PYTHON / "site-packages"
    site.mkdir(parents=True)
    point_at(environment, Path(sys.base_prefix))
    constraints = str(ROOT / "infra/constraints.txt")
    pip_install(environment, "--constraint", constraints, *requirements())
    copy = environment.with_name("source")  # setuptools leaves folders where it builds
    copy.mkdir()
    for name in (
        "__init__.py",
        "py.typed",
        "setup.py",
        "pyproject.toml",
        "LICENSE",
        PROJECT["readme"],
    ):
        shutil.copy(ROOT / name, copy)
    for name in PARTS:
        leftovers = shutil.ignore_patterns("__pycache__", "kernels")
        shutil.copytree(ROOT / name, copy / name, ignore=leftovers)
    pip_install(environment, "--no-deps", str(copy))
    for name in ("jobs", "conf"):
        link(environment / name, Path("lib") / PYTHON / "site-packages/gaixie" / name)
    compile_kernels(environment)
    tests = re.compile("/tests/")  # which are left out
    compileall.compile_dir(site, quiet=2, workers=os.cpu_count(), stripdir=str(site), rx=tests)


def compile_kernels(environment: Path) -> None:
    """Compiles the archive's kernels for levels of processors, by the archive's own package."""
    line = [str(environment / "bin/python"), "-m", "gaixie.udfs.spscore", "--levels"]
    others = ("PYTHONPATH", "NUMBA_CACHE_DIR", "NUMBA_CPU_NAME")
    variables = {name: value for name, value in os.environ.items() if name not in others}
    subprocess.run(line, cwd=environment, env=variables, check=True, stdout=subprocess.DEVNULL)


def point_at(environment: Path, prefix: Path) -> None:
    """Has the environment run on the Python that stands under prefix."""
    link(environment / "bin" / PYTHON, prefix / "bin" / PYTHON)
    for name in ("python", "python3"):
        link(environment / "bin" / name, Path(PYTHON))
    home = f"home = {prefix / 'bin'}\ninclude-system-site-packages = false\n"
    (environment / "pyvenv.cfg").write_text(home)


def link(path: Path, target: Path) -> None:
    path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(target)


def pip_install(environment: Path, *what: str) -> None:
    line = [sys.executable, "-m", "pip", "--python", str(environment / "bin/python")]
    line += ["--disable-pip-version-check", "install", "--quiet", "--no-compile", *what]
    subprocess.run(line, check=True)


def pack(environment: Path, archive: Path, prefix: Path) -> None:
    """Writes the archive: complete or not at all."""
    point_at(environment, prefix)
    env = venv_pack.Env(str(environment))
    for pattern in LEFT_OUT:
        env = env.exclude(pattern)
    part = archive.with_name(f".{archive.name}")
    env.pack(output=str(part), force=True)
    part.chmod(0o644)
    part.replace(archive)


def write_record(environment: Path, archive: Path, record: Path) -> None:
    with open(archive, "rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    site = str(environment / "lib" / PYTHON / "site-packages")
    packages = {one.name: one.version for one in distributions(path=[site])}
    kernels = (environment / "lib" / PYTHON / "site-packages/gaixie/udfs/kernels").glob("*")
    values = {
        "kernels": sorted(folder.name.split("-", 2)[2] for folder in kernels),
        "bytes": archive.stat().st_size,
        "sha256": sha256,
        "python": PYTHON,
        "packages": dict(sorted(packages.items())),
    }
    record.write_text(json.dumps(values, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
