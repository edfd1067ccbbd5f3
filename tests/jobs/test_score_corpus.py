"""jobs/score_corpus.py: what a run holds, whatever the layout of its input or its interruptions."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash
import yaml
from servers import PATIENCE, SPARK_HOME
from shared import ROOT

from gaixie.jobs.scoring import run as steps
from gaixie.jobs.scoring import sorting
from gaixie.udfs.features import FEATURES, extract
from gaixie.udfs.spscore import OUTPUTS, SPScore
from gaixie.udfs.spscore.stages import ORIGINS, STAGES, stage
from gaixie.udfs.text.segmenters import load_segmenter

EXAMPLES = ROOT / "examples" / "pairs.jsonl"
UNUSABLE = ROOT / "examples" / "unusable.jsonl"


# What a run holds


@pytest.fixture(scope="module")
def run(score, examples, tmp_path_factory):
    """Returns a run of both files of examples/ with their origins; one of them is read twice."""
    folder = tmp_path_factory.mktemp("run")
    llm = examples[examples["origin"] == "llm"].drop(columns="origin")
    llm.to_csv(folder / "again.csv", index=False)
    inputs = [
        {"path": str(EXAMPLES), "origin_column": "origin"},
        {"path": str(UNUSABLE), "origin_column": "origin"},
        {"path": str(folder / "again.csv"), "origin": "llm"},
        {"path": str(folder / "again.csv"), "origin": "human"},
    ]
    cuts = {
        origin: {"scores": [0.48 + k / 100, 0.6, 0.7], "min_meaning": 0.75}
        for k, origin in enumerate(ORIGINS)
        if origin != "human"  # by quantiles
    }
    config = yaml.safe_load((ROOT / "conf" / "score.yaml").read_text("utf-8"))
    config |= {"inputs": inputs, "cuts": cuts}
    (folder / "score.yaml").write_text(yaml.safe_dump(config))
    run = score(folder / "out", "--config", folder / "score.yaml")
    assert run.code == 0, run.stderr
    return run


def test_folders_and_columns(run):
    found = sorted(path.name for path in run.folder.iterdir())
    assert found == ["manifest.json", "quarantine", "report.html", "scored"]
    folders = {path.parts[-3:-1] for path in run.files("scored")}
    assert folders <= {(f"origin={own}", f"stage={k}") for own in ORIGINS for k in STAGES}
    criteria = ("structure", "synonym", "consistency")
    extra = ["id", "genre", *(f"rated_{name}" for name in criteria), "rated", "note"]
    schema = pq.read_schema(run.files("scored")[0])
    measured = [*FEATURES, *OUTPUTS]
    assert schema.names == ["pair_id", "source", "paraphrase", *measured, *extra]
    assert all(schema.field(name).type == pa.float32() for name in measured)
    texts = {"pair_id", "source", "paraphrase", *extra}
    assert {schema.field(name).type for name in texts} == {pa.string()}
    assert {pq.read_schema(path) for path in run.files("scored")} == {schema}
    quarantine, lines = pq.read_schema(run.files("quarantine")[0]), ("malformed_line", "input_file")
    assert quarantine.names == ["source", "paraphrase", *extra, *lines, "origin"]


def test_rows_are_the_inputs_rows(run, examples):
    rows = run.scored
    own = rows[rows["origin"] != "human"]
    again = examples[examples["origin"] == "llm"]
    keys = ["source", "paraphrase", "origin"]
    expected = pd.concat([examples[keys], again[keys].assign(origin="human")])
    found = rows[keys].sort_values(keys, ignore_index=True)
    pd.testing.assert_frame_equal(found, expected.sort_values(keys, ignore_index=True))
    unusable = pd.read_json(UNUSABLE, lines=True)  # its last row is a duplicate
    by_id = pd.concat([examples, unusable]).set_index("id").loc[own["id"]]
    assert (by_id["source"].to_numpy() == own["source"].to_numpy()).all()
    assert (by_id["note"].to_numpy() == own["note"].to_numpy()).all()
    digest = [xxhash.xxh3_128_hexdigest("\x1f".join(row).encode()) for row in rows[keys].to_numpy()]
    assert rows["pair_id"].tolist() == digest


def test_scores_are_a_plain_recomputation(run, model):
    rows = run.scored
    metric, segmenter = SPScore.load(model), load_segmenter("jieba")
    texts = pa.array(rows["source"]), pa.array(rows["paraphrase"])
    features = extract(*texts, segmenter)
    np.testing.assert_array_equal(rows[list(FEATURES)].to_numpy(), features.astype(np.float32))
    np.testing.assert_array_equal(rows[list(OUTPUTS)], metric.outputs(*texts, segmenter))
    assert run.manifest["signature"] == metric.signature(segmenter)


def test_stages_follow_score_and_origin(run):
    held_back = 0
    for origin, rows in run.scored.groupby("origin"):
        cuts, least = run.manifest["cuts"][origin], run.manifest["min_meaning"][origin]
        rule = run.manifest["settings"]["cuts"][origin]
        assert least == rule["min_meaning"]
        scores, meaning = rows["spscore"].to_numpy(), rows["meaning"].to_numpy()
        kept = scores[meaning >= least]
        for cut, score, share in zip(
            cuts, rule["scores"] or cuts, rule["quantiles"] or [None] * 3, strict=True
        ):
            assert cut == score
            if share is not None:
                assert (kept < cut).mean() == pytest.approx(share, abs=1.5 / len(kept))
        expected = stage(scores, cuts, meaning, least)
        assert rows["stage"].tolist() == expected.tolist()
        held_back += (expected < stage(scores, cuts)).sum()
    assert held_back
    assert run.manifest["settings"]["cuts"]["human"]["quantiles"] == [0.4, 0.6, 0.8]
    assert set(run.scored["stage"]) == set(STAGES)


def test_unusable_rows_are_in_quarantine(run):
    rows = run.quarantine.sort_values("id", ignore_index=True)
    reasons = ["null", "empty", "too_short", "identical", "no_han", "too_long"]
    assert rows["reason"].tolist() == reasons
    unusable = pd.read_json(UNUSABLE, lines=True)[: len(rows)]
    names = ["id", "source", "origin", "note"]
    pd.testing.assert_frame_equal(rows[names], unusable[names])


def test_accounts_close_for_each_origin(run):
    read = {"parallel": 72 + 3, "back_translation": 72 + 1}
    read |= {"llm": 72 + 2 + 72, "human": 72 + 1 + 72}
    duplicates = {"parallel": 1, "back_translation": 0, "llm": 72, "human": 0}
    assert set(run.manifest["rows"]) == set(read)
    for origin, rows in run.manifest["rows"].items():
        assert rows["read"] == read[origin]
        assert rows["duplicates"] == duplicates[origin]
        assert rows["scored"] == (run.scored["origin"] == origin).sum()
        assert rows["quarantined"] == (run.quarantine["origin"] == origin).sum()
        assert rows["read"] == rows["scored"] + rows["quarantined"] + rows["duplicates"]
        stages = run.manifest["stages"][origin]
        counts = run.scored.loc[run.scored["origin"] == origin, "stage"].value_counts()
        assert {int(s): n for s, n in stages.items() if n} == counts.to_dict()


def test_manifest(run):
    manifest = run.manifest
    assert (manifest["run_id"], manifest["limit"]) == ("r", None)
    assert [one["format"] for one in manifest["inputs"]] == ["jsonl", "jsonl", "csv", "csv"]
    assert manifest["inputs"][0]["bytes"] == EXAMPLES.stat().st_size
    for table in ("scored", "quarantine"):
        named = {run.folder / file["path"]: file["bytes"] for file in manifest["files"][table]}
        assert named == {path: path.stat().st_size for path in run.files(table)}
    for origin, points in manifest["quantiles"].items():
        scores = run.scored.loc[run.scored["origin"] == origin, "spscore"]
        expected = scores.quantile([float(share) for share in points], interpolation="inverted_cdf")
        np.testing.assert_allclose(list(points.values()), expected, atol=1.01e-4)


# Runs that are there already


def test_published_run_is_refused_and_resume_does_nothing(run, score):
    before = {path: path.stat().st_mtime_ns for path in run.folder.rglob("*")}
    given = ("--input", EXAMPLES, "--origin-column", "origin")
    assert score(run.folder.parents[1], *given).code == 2
    resumed = score(run.folder.parents[1], *given, "--resume")
    assert resumed.code == 0
    assert "already published: nothing to do" in resumed.stdout
    assert {path: path.stat().st_mtime_ns for path in run.folder.rglob("*")} == before


def test_dry_run_writes_nothing(score, examples, tmp_path):
    renamed = examples.rename(columns={"source": "原文 1", "paraphrase": "改写.a"})
    renamed.drop(columns="origin").to_csv(tmp_path / "in-1.tsv", index=False, sep="\t")
    given = ("--input", tmp_path / "in-?.tsv", "--origin", "human", "--set", "max_characters=50")
    given += ("--source-column", "原文 1", "--paraphrase-column", "改写.a", "--dry-run")
    run = score(tmp_path / "out", *given)
    assert run.code == 0, run.stderr
    assert not (tmp_path / "out").exists()
    long = (examples[["source", "paraphrase"]].map(len).max(axis=1) > 50).sum()
    assert f"of the first 288 rows, {288 - long} can be scored" in run.stdout
    assert f"quarantine too_long: {long}" in run.stdout
    assert "SPScore-zh" in run.stdout


def test_published_last(score, tmp_path, grow, monkeypatch):
    """A run that dies before its manifest must be invisible to readers, and resumable."""

    def die(*_) -> None:
        raise KeyboardInterrupt

    (tmp_path / "in").mkdir()
    for k in range(2):
        table = grow(50, 50 * k).drop(["origin"])
        pq.write_table(table, tmp_path / "in" / f"{k}.parquet")
    given = ("--input", tmp_path / "in", "--origin", "llm", "--unit-mb", "0.001")
    with monkeypatch.context() as patch:
        patch.setattr(steps.report, "report_page", die)
        killed = score(tmp_path / "out", *given)
    assert killed.code == 130
    assert not (killed.folder / "manifest.json").exists()
    assert (killed.folder / "scored").exists()

    run = score(tmp_path / "out", *given, "--resume", "--limit", "60", "--min-characters", "40")
    assert run.code == 0, run.stderr
    assert "already done" not in run.stderr  # the settings are others
    assert run.manifest["rows"]["llm"]["read"] == 60
    assert run.scored["source"].str.len().min() >= 40


# How the input is laid out


def test_a_large_table_is_written_without_a_shuffle(score, grow, tmp_path, monkeypatch):
    """It must have each pair once, in files of about the size that is asked for."""
    target = 0.05
    (tmp_path / "in").mkdir()
    for n in range(0, 1_000, 500):
        table = grow(500, n).drop(["origin"])
        pq.write_table(pa.concat_tables([table, table.slice(0, 30)]), tmp_path / f"in/{n}.parquet")
    calls = []
    write = sorting.write_unshuffled
    monkeypatch.setattr(sorting, "write_unshuffled", lambda *a: (calls.append(a), write(*a)))
    given = ("--input", tmp_path / "in", "--origin", "llm", "--target-file-mb", target)
    given += ("--set", "cuts.llm={scores: [0, 0, 0], min_meaning: 0}")  # all in one stage
    monkeypatch.setattr(sorting, "MIN_UNSHUFFLED", 0)
    run = score(tmp_path / "out", *given)
    assert run.code == 0, run.stderr
    assert len(calls) == 1
    rows = run.scored
    assert run.manifest["rows"]["llm"]["duplicates"] == 60
    assert rows["pair_id"].nunique() == len(rows) == 1_000
    sizes = [path.stat().st_size / 1e6 for path in run.files("scored")]
    assert max(sizes) < 2 * target
    assert len(sizes) < 4 * sum(sizes) / target


# As a process of its own; that of `make demo` is in test_demo.py


@pytest.mark.long
def test_a_mistake_under_spark_submit(launch, tmp_path):
    command = (SPARK_HOME / "bin/spark-submit", "--master", "local[1]")
    given = ("--input", tmp_path / "none.parquet", "--origin", "llm", "--output", tmp_path / "out")
    process = launch("score_corpus.py", *given, command=command)
    text = "".join(process.communicate(timeout=PATIENCE))  # Spark mixes standard output and error
    assert process.returncode == 2
    line = f"score_corpus: error: {tmp_path}/none.parquet: no such file or folder"
    assert line in text.splitlines()
    assert "Traceback" not in text
    assert not (tmp_path / "out").exists()
