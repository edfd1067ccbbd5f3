"""Fixtures, marks and settings for all tests."""

import gc
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
import warm_up
from hypothesis import HealthCheck, settings
from servers import Cluster, ObjectStore
from shared import ROOT, once

# There is one test process per core, so a process with several threads would only slow the others.
os.environ.setdefault("OMP_NUM_THREADS", "1")
warm_up.set_java_options()
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell makes background processes ignore SIGINT, and the processes that tests interrupt would
    # inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# There is no deadline, because the first call of a kernel is slow on a busy machine. Examples are
# the same each time, so a test that fails fails again.
profile = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("gaixie", derandomize=True, **profile)
settings.register_profile("search", max_examples=1_000, **profile)  # other examples each time
settings.load_profile("gaixie")

FIXTURES = {
    "spark": {"spark", "launch"},
    "s3": {"store"},
    "cluster": {"cluster"},
    "long": {"cluster"},
    "torch": {"known_writer"},
}
"""Marks, and the fixtures that give a test the mark, directly or through other fixtures."""
SLOW = ("spark", "s3", "cluster", "torch", "training", "long")
"""Marks of the tests that --fast leaves out."""
TORCH = re.compile(
    r"^(?:import|from) (?:torch|transformers|accelerate|datasets|tiny_\w+|gaixie\.training)\b"
    r"|^(?:\w+ = )?pytest\.importorskip\(.(?:torch|transformers|accelerate)"
    r"|^from gaixie\.udfs\.text\.segmenters\.ltp ",
    re.MULTILINE,
)
"""Matches a file that imports PyTorch, directly or through one of these modules."""
LONG = re.compile(r"\bmark\.long\b|\bcluster, ")
"""Matches a file with a long test; ``-m long`` imports no other, as that takes half a minute."""
LONGEST = """jobs/test_s3 jobs/test_demo infra/test_dist training/test_curriculum
jobs/test_score_corpus jobs/test_release_dataset service/page/test_page jobs/test_build_clusters
test_package udfs/spscore/test_adversaries jobs/test_endings udfs/test_spark
research/test_fit_spscore research/test_identify_paraphrases udfs/text/segmenters/test_jieba"""
"""Files that start first: one process runs a whole file, and would otherwise finish last."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fast", action="store_true", help="no Java, no PyTorch, no server")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.fast:
        config.option.markexpr = f"not ({' or '.join(SLOW)})"


def pytest_collection() -> None:
    gc.disable()  # until all is imported, as nothing of that is ever freed


@cache
def matches(pattern: re.Pattern, path: Path) -> bool:
    return path.suffix == ".py" and bool(pattern.search(path.read_text("utf-8")))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    torch = config.option.fast and matches(TORCH, collection_path)
    only_long = config.option.markexpr == "long" and collection_path.suffix == ".py"
    return True if torch or (only_long and not matches(LONG, collection_path)) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks tests by their fixtures, folder and imports, then puts the longest first."""
    for item in items:
        names = {mark for mark, given in FIXTURES.items() if given & {*item.fixturenames}}
        if item.path.is_relative_to(ROOT / "tests/training"):
            names.add("training")
        if matches(TORCH, item.path):
            names.add("torch")
        for name in names:
            item.add_marker(name)
        if item.get_closest_marker("long") and not matches(LONG, item.path):
            raise pytest.UsageError(f"{item.nodeid}: -m long would not find it; see LONG")
    items.sort(key=_place)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def _place(item: pytest.Item) -> int:
    for number, one in enumerate([*LONGEST.split(), "training", "spark", "torch"]):
        if item.nodeid.startswith(f"tests/{one}.py") or item.get_closest_marker(one):
            return number
    return 99


@pytest.fixture(scope="session")
def spark():
    """Yields one session for all tests in this process; jobs called in it use it too.

    It has one core, because another process runs tests beside it and each further Python worker
    would import PyTorch.
    """
    from pyspark.sql import SparkSession

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.driver.defaultJavaOptions": warm_up.SMALL_HEAP,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.python.daemon.module": "gaixie.jobs.corpus.warm_daemon",
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    }
    session = SparkSession.builder.master("local[1]").appName("tests").config(map=settings)
    session = session.getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def compiled(spark) -> Iterator[None]:
    """Makes the session compile its queries, as users' sessions do."""
    for name, value in warm_up.COMPILED.items():
        spark.conf.set(name, value)
    yield
    for name, value in warm_up.INTERPRETED.items():
        spark.conf.set(name, value)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    """Yields a master and two workers."""
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.stop()


@pytest.fixture(scope="session")
def store(tmp_path_factory) -> Iterator[ObjectStore]:
    """Yields a real S3 server."""
    store = ObjectStore(tmp_path_factory.mktemp("store"))
    yield store
    store.stop()


@pytest.fixture
def admin(store, monkeypatch) -> ObjectStore:
    """Returns the store, and puts its keys into this process's environment."""
    for name, value in store.environment().items():
        monkeypatch.setenv(name, value)
    return store


@pytest.fixture
def refused(capsys) -> Callable[..., str]:
    """Returns a function that calls a command, which must end with exit code 2 and one line that
    contains a message."""

    def call(main: Callable[[list[str]], int], line: list[object], message: str) -> str:
        capsys.readouterr()
        assert main([str(word) for word in line]) == 2
        output, error = capsys.readouterr()
        assert output == ""
        assert message in error
        assert error.count("\n") == 1
        return error

    return call


@pytest.fixture(scope="session")
def known_writer(tmp_path_factory) -> Iterator[Path]:
    """Yields the folder of a tiny writer that knows some paraphrases by heart: the one that
    ``gaixie paraphrase`` uses if none is named, with a tiny judge."""
    from tiny_writer import KNOWN, tiny_writer

    made = once(tmp_path_factory, "writer", lambda folder: tiny_writer(folder, KNOWN)) / "writer"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GAIXIE_WRITER", str(made))
        yield made
