"""Packs the jobs and all they need, except Spark, into one archive for the nodes of a cluster.

  make dist
  python infra/dist.py --python-prefix /usr    for nodes whose Python is /usr/bin/python3.11

The nodes need Spark and a Python of the same minor version as this one. The archive holds what this
environment has of pyproject.toml's dependencies, in the versions of infra/constraints.txt and
without PyTorch, and the kernels, compiled for processors with AVX2.

  bin/python                       a link to PREFIX/bin/python3.11 of the node
  jobs/ conf/                      links to these folders of the package below
  lib/python3.11/site-packages/    gaixie (its jobs, udfs and conf) and every dependency
"""

import argparse
import compileall
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import tomllib
from fnmatch import fnmatch
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
NEEDED = PROJECT["dependencies"] + PROJECT["optional-dependencies"]["spark"]
PARTS = ("conf", "jobs", "udfs")
"""Of the package gaixie, what jobs and their executors need."""
PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
ON_NODES = {"pyspark", "py4j"}
"""What a node's Spark has of its own."""
LEFT_OUT = ("*/tests/*", "*/include/*", "*.h", "*.hpp", "*.pxd", "*.pyx", "*.pyi", "*.a", "*..*")
"""Files that only whoever builds or tests a package needs, and those outside site-packages."""

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
    add, prefix = parser.add_argument, Path(sys.base_prefix)
    where = "prefix of Python on the nodes (default: the same as here)"
    add("--output", type=Path, default=ROOT / "dist", metavar="FOLDER")
    add("--python-prefix", type=Path, default=prefix, metavar="PREFIX", help=where)
    add("--no-kernels", action="store_true", help="each node compiles them in its first run")
    add("--compression", type=int, default=4, metavar="LEVEL", help="of gzip, 0 to 9 (4)")
    args = parser.parse_args()
    name = f"gaixie-{PROJECT['version']}-py{PYTHON[6:]}-{sysconfig.get_platform()}"
    archive = args.output / f"{name}.tar.gz"
    args.output.mkdir(parents=True, exist_ok=True)
    try:
        packages = closure(NEEDED)
    except PackageNotFoundError as error:
        parser.error(f"{error.name} is not installed; make .venv/.spark installs it")
    with tempfile.TemporaryDirectory(dir=args.output) as work:
        environment = Path(work)
        fill(environment, packages)
        if not args.no_kernels:
            compile_kernels(environment)
        point_at(environment, args.python_prefix)
        pack(environment, archive, args.compression)
    [spark] = [line for line in NEEDED if line.startswith("pyspark==")]
    python, version = args.python_prefix / "bin" / PYTHON, spark.partition("==")[2]
    size = f"{archive.stat().st_size / 1e6:.0f} MB"
    print(SAID.format(archive=archive, name=archive.name, size=size, spark=version, python=python))
    return 0


def closure(lines: list[str]) -> dict[str, Distribution]:
    """Returns the installed packages that fulfil requirements, and theirs, without ON_NODES.

    Raises PackageNotFoundError.
    """
    found: dict[str, Distribution] = {}
    asked = [Requirement(line) for line in lines]
    for requirement in asked:  # which grows
        name = canonicalize_name(requirement.name)
        if name in ON_NODES or (name in found and not requirement.extras):
            continue
        found[name] = distribution(name)
        for line in found[name].requires or ():
            other = Requirement(line)
            extras = {"", *requirement.extras}
            if other.marker is None or any(other.marker.evaluate({"extra": e}) for e in extras):
                asked.append(other)
    return dict(sorted(found.items()))


def fill(environment: Path, packages: dict[str, Distribution]) -> None:
    """Fills an empty environment: with links to the packages' files, and a copy of this one."""
    site = environment / "lib" / PYTHON / "site-packages"
    for package in packages.values():
        for file in package.files or ():
            path = Path(str(file.locate()))
            if path.is_file() and not any(fnmatch(str(file), pattern) for pattern in LEFT_OUT):
                (site / file).parent.mkdir(parents=True, exist_ok=True)
                link_or_copy(path, site / file)
    ours, described = site / "gaixie", site / f"gaixie-{PROJECT['version']}.dist-info"
    for name in PARTS:
        leftovers = shutil.ignore_patterns("__pycache__", "kernels")
        shutil.copytree(ROOT / name, ours / name, ignore=leftovers)
    for name in ("__init__.py", "py.typed", "LICENSE"):
        shutil.copy(ROOT / name, ours)
    described.mkdir()
    head = f"Metadata-Version: 2.1\nName: gaixie\nVersion: {PROJECT['version']}\n"
    (described / "METADATA").write_text(head)
    compileall.compile_dir(ours, quiet=2, stripdir=str(site))
    for name in ("jobs", "conf"):
        link(environment / name, Path("lib") / PYTHON / "site-packages/gaixie" / name)
    point_at(environment, Path(sys.base_prefix))


def link_or_copy(path: Path, copy: Path) -> None:
    try:
        copy.hardlink_to(path)
    except OSError:  # another file system
        shutil.copy2(path, copy)


def compile_kernels(environment: Path) -> None:
    """Compiles the archive's kernels, by the archive's own package."""
    line = [str(environment / "bin/python"), "-m", "gaixie.udfs.spscore", "--ship"]
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


def pack(environment: Path, archive: Path, compression: int) -> None:
    """Writes the archive: complete or not at all."""

    def by_root(file: tarfile.TarInfo) -> tarfile.TarInfo:
        file.uid = file.gid = 0
        file.uname = file.gname = "root"
        return file

    part = archive.with_name(f".{archive.name}")
    with tarfile.open(part, "w:gz", compresslevel=compression) as tar:
        for path in sorted(environment.iterdir()):
            tar.add(path, path.name, filter=by_root)
    part.replace(archive)


if __name__ == "__main__":
    sys.exit(main())
