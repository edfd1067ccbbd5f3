"""A session checks its host for what it needs, and limits how much it may grow."""

from types import SimpleNamespace

import pytest

from gaixie.jobs.corpus import session
from gaixie.jobs.corpus.session import begin_session, cores
from gaixie.jobs.corpus.user_settings import user_settings
from gaixie.udfs.command_line import UserError


def test_a_missing_java_is_named(monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "/proc/nowhere")
    with pytest.raises(UserError, match=r"^JAVA_HOME=/proc/nowhere: "):
        session.check_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", "/proc/nowhere")
    with pytest.raises(UserError, match="Java 17 or 21 is needed"):
        session.check_java()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, 2),
        ({"enabled": "true"}, 2),
        ({"enabled": "true", "maxExecutors": "1000"}, 4000),
        ({"enabled": "false", "maxExecutors": "1000"}, 2),
        ({"enabled": "true", "maxExecutors": "2147483647"}, 2),
    ],
)
def test_cores_are_those_that_dynamic_allocation_may_ask_for(settings, expected):
    conf = {f"spark.dynamicAllocation.{name}": value for name, value in settings.items()}
    conf["spark.executor.cores"] = "4"
    context = SimpleNamespace(defaultParallelism=2, getConf=lambda: conf)
    assert cores(SimpleNamespace(sparkContext=context)) == expected


def test_what_the_user_set_wins(tmp_path, monkeypatch):
    """The user's settings must win, in spark-submit's order; conf/spark gives only the rest."""
    for name in ("PYSPARK_GATEWAY_PORT", "SPARK_HOME", "PYSPARK_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    lines = [
        *("# mine", "spark.master spark://host:7077", "spark.sql.session.timeZone = Asia/Shanghai"),
        *(
            "spark.ui.showConsoleProgress: true",
            "spark.log.level INFO",
            "other.setting 1",
            "spark.x",
        ),
        *("spark.sql.files.maxPartitionBytes \\", "  1m", "spark.python.worker.reuse\tfalse"),
    ]
    (tmp_path / "spark-defaults.conf").write_text("\n".join(lines))
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--conf 'spark.log.level=WARN' pyspark-shell")
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Xmx1g -Dspark.log.level=OFF -Dspark.a=b=c")
    made = []
    monkeypatch.setattr(session, "_create", made.append)
    monkeypatch.setattr(session.SparkContext, "_jvm", None)
    with pytest.raises(AttributeError), begin_session("test") as wait:
        wait()
    found = dict(made[0].getAll())
    expected = {
        "spark.master": "spark://host:7077",
        "spark.sql.session.timeZone": "Asia/Shanghai",
        "spark.ui.showConsoleProgress": "true",
        "spark.log.level": "WARN",
        "spark.sql.files.maxPartitionBytes": "1m",
        "spark.python.worker.reuse": "false",
        "spark.a": "b=c",
        "spark.sql.ansi.enabled": "true",
    }
    assert {name: found.get(name) for name in expected} == expected
    assert not {"other.setting", "spark.x"} & found.keys()


def test_arguments_that_no_shell_reads_are_named(monkeypatch):
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--conf 'spark.a=b")
    with pytest.raises(UserError, match="PYSPARK_SUBMIT_ARGS: No closing quotation"):
        user_settings()
