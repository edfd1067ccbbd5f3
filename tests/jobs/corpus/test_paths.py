"""jobs/corpus/paths.py must refuse an input inside the output, and an output inside an input."""

import os
from contextlib import nullcontext
from datetime import UTC, datetime

import pytest

from gaixie.jobs import score_corpus
from gaixie.jobs.corpus.early import check_local_inputs
from gaixie.jobs.corpus.paths import check_apart, choose_files, local_path
from gaixie.jobs.corpus.settings import Input
from gaixie.jobs.errors import JobError
from gaixie.udfs.storage.storage import File

APART = {
    ("in/out", "in"): "lies in the input",
    ("in/out", "in/*"): "lies in the input",
    ("a/b/out", "a/{b,c}"): "lies in the input",
    ("s3a://bucket/in/out", "s3a://bucket/"): "lies in the input",
    ("file:///tmp/in/out", "/tmp/in"): "lies in the input",
    ("in/../in/out", "./in"): "lies in the input",
    ("out", "out/runs/a/scored"): "where jobs write",
    ("a/b/out", "a/?/out/runs"): "where jobs write",
    ("s3a://b/o", "s3a://b/o/runs/x"): "where jobs write",
    (".", "pairs.csv"): None,  # beside the written files
    ("data", "data/*.parquet"): None,
    ("inside", "in"): None,
    ("in", "inside"): None,
    ("s3a://bucket/in/out", "s3a://another/in"): None,
    ("s3a://in/out", "in"): None,
}


@pytest.mark.parametrize(("output", "path"), APART)
def test_an_output_apart_from_its_inputs(output, path):
    message = APART[output, path]
    with pytest.raises(JobError, match=message) if message else nullcontext():
        check_apart(output, ["elsewhere", path])


def test_by_way_of_a_link(tmp_path):
    (tmp_path / "in").mkdir()
    os.symlink(tmp_path / "in", tmp_path / "link")
    with pytest.raises(JobError, match="lies in the input"):
        check_apart(f"{tmp_path}/link/out", [f"{tmp_path}/in"])


def test_refused_before_spark_starts(tmp_path, monkeypatch):
    monkeypatch.setattr("gaixie.jobs.scoring.run.begin_session", None)
    given = ["--input", str(tmp_path), "--origin", "llm", "--output", f"{tmp_path}/out"]
    with pytest.raises(JobError, match="lies in the input"):
        score_corpus.main(given)
    assert not (tmp_path / "out").exists()


FOLDERS = {
    "a.parquet README.md readme.txt b.parquet": ("parquet", "a.parquet b.parquet"),
    "a.txt README.md": ("tsv", "a.txt"),
    "a.jsonl b.ndjson.gz c.JSON": ("jsonl", "a.jsonl b.ndjson.gz c.JSON"),
    "jsonl: pairs.data a.csv": ("jsonl", "pairs.data"),
    "csv: a.csv b.parquet": ("csv", "a.csv"),
    "tsv: a.csv": ("tsv", "a.csv"),
}


def choose(names: str) -> tuple[str, str]:
    kind, _, listed = names.rpartition(": ")
    settings = Input(path="in", origin="llm", format=kind or None)
    files = [File(f"file:/in/{name}", 1, datetime.now(UTC)) for name in listed.split()]
    kind, chosen = choose_files(settings, files)
    return kind, " ".join(file.uri.removeprefix("file:/in/") for file in chosen)


@pytest.mark.parametrize("names", FOLDERS)
def test_the_files_of_the_format(names):
    assert choose(names) == FOLDERS[names]


def test_no_format_and_several():
    with pytest.raises(
        JobError, match=r"file:/in/README.md: the name does not end in a known format, expected"
    ):
        choose("README.md")
    with pytest.raises(JobError, match=r"in: files of several formats \(2 csv, 1 parquet\); set"):
        choose("a.csv b.csv c.parquet d.md")


def test_a_path_without_a_scheme_is_local_where_no_hadoop_is_configured(monkeypatch):
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    assert local_path("/in/a b") == local_path("file:/in/a b") == local_path("file:///in/a b")
    assert local_path("in:x") == "in:x"
    assert local_path("hdfs:/in") is local_path("s3a://bucket/in") is None
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop/conf")
    assert local_path("/in") is None
    assert local_path("file:/in") == "/in"


def test_a_default_file_system_in_spark_s_own_settings(tmp_path, monkeypatch):
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    settings = tmp_path / "spark-defaults.conf"
    name = "spark.hadoop.fs.defaultFS"
    for text in ("", f"# {name} hdfs://a\nspark.master local\n", f"{name}=file:///\n"):
        settings.write_text(text)
        assert local_path("/in") == "/in"
    for text in (f"{name}  hdfs://a:8020\n", f"{name} file:/\n{name}: hdfs://a"):
        settings.write_text(text)
        assert local_path("/in") is None
        assert local_path("file:/in") == "/in"
    settings.unlink()
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--conf '{name}=hdfs://a' pyspark-shell")
    assert local_path("/in") is None


def test_links_are_followed_and_what_cannot_be_looked_at_is_left_to_the_job(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.csv").write_text("source,paraphrase\n")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "linked").symlink_to(tmp_path / "real")
    check_local_inputs([Input(path=str(tmp_path / "in"), origin="llm")])
    (tmp_path / "in" / "b.csv").symlink_to(tmp_path / "nowhere.csv")
    check_local_inputs([Input(path=str(tmp_path / "in"), origin="llm")])
