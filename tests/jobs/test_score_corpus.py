"""jobs/score_corpus.py: what a run holds, whatever the layout of its input or its interruptions."""

import gzip
import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
import xxhash
import yaml
from servers import PATIENCE

from gaixie.jobs.scoring import writing
from gaixie.udfs.features import FEATURES, extract
from gaixie.udfs.spscore import OUTPUTS, SPScore
from gaixie.udfs.spscore.stages import ORIGINS, STAGES, stage
from gaixie.udfs.storage import storage
from gaixie.udfs.text.segmenters import load_segmenter

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "pairs.jsonl"
UNUSABLE = ROOT / "examples" / "unusable.jsonl"


def write_config(path: Path, **settings) -> Path:
    """Writes conf/score.yaml with some settings replaced. Returns its path."""
    known = yaml.safe_load((ROOT / "conf" / "score.yaml").read_text())
    path.write_text(yaml.safe_dump(known | settings, allow_unicode=True))
    return path


def same_rows(a: pd.DataFrame, b: pd.DataFrame) -> None:
    """Asserts that rows are equal to the last bit, whatever the order of columns."""
    pd.testing.assert_frame_equal(a[sorted(a)], b[sorted(b)], check_exact=True)


# What a run holds


@pytest.fixture(scope="module")
def run(score, tmp_path_factory):
    """Returns a run of both files of examples/ with their origins; one of them is read twice."""
    folder = tmp_path_factory.mktemp("run")
    llm = pd.read_json(EXAMPLES, lines=True).query("origin == 'llm'").drop(columns="origin")
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
    config = write_config(folder / "score.yaml", inputs=inputs, cuts=cuts)
    run = score(folder / "out", "--config", config)
    assert run.code == 0, run.stderr
    return run


def test_folders_and_columns(run):
    assert {path.name for path in run.folder.iterdir()} == {
        "scored",
        "quarantine",
        "manifest.json",
        "report.html",
    }
    for path in run.files("scored"):
        origin, number = (part.partition("=")[2] for part in path.parts[-3:-1])
        assert path.parts[-3:-1] == (f"origin={origin}", f"stage={number}")
        assert origin in ORIGINS
        assert int(number) in STAGES
    for path in run.files("quarantine"):
        assert path.parent.name.startswith("reason=")

    criteria = ("structure", "synonym", "consistency")
    extra = ["id", "genre", *(f"rated_{name}" for name in criteria), "rated", "note"]
    schema = pq.read_schema(run.files("scored")[0])
    measured = [*FEATURES, "structure", "synonyms", "meaning", "fluency", "spscore"]
    assert schema.names == ["pair_id", "source", "paraphrase", *measured, *extra]
    assert all(schema.field(name).type == pa.float32() for name in measured)
    texts = {"pair_id", "source", "paraphrase", *extra}
    assert {schema.field(name).type for name in texts} == {pa.string()}
    assert {pq.read_schema(path) for path in run.files("scored")} == {schema}
    quarantine = pq.read_schema(run.files("quarantine")[0])
    assert quarantine.names == ["source", "paraphrase", *extra, "malformed_line", "origin"]


def test_rows_are_the_inputs_rows(run, examples):
    rows = run.scored
    own = rows[rows["origin"] != "human"]
    again = examples[examples["origin"] == "llm"]
    keys = ["source", "paraphrase", "origin"]
    expected = pd.concat([examples[keys], again[keys].assign(origin="human")])
    found = rows[keys].sort_values(keys, ignore_index=True)
    same_rows(found, expected.sort_values(keys, ignore_index=True))
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
    found = run.quarantine.set_index("id")["reason"].to_dict()
    assert found == {
        "un-001": "null",
        "un-002": "empty",
        "un-003": "too_short",
        "un-004": "identical",
        "un-005": "no_han",
        "un-006": "too_long",
    }
    unusable = pd.read_json(UNUSABLE, lines=True).set_index("id")
    for row in run.quarantine.itertuples():
        assert row.source == unusable.loc[row.id, "source"]
        assert row.origin == unusable.loc[row.id, "origin"]
        assert row.note == unusable.loc[row.id, "note"]


def test_accounts_close_for_each_origin(run):
    read = {
        "parallel": 72 + 3,
        "back_translation": 72 + 1,
        "llm": 72 + 2 + 72,
        "human": 72 + 1 + 72,
    }
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
    assert manifest["run_id"] == "r"
    assert manifest["spark"] == "4.1.2"
    assert manifest["limit"] is None
    assert [one["format"] for one in manifest["inputs"]] == ["jsonl", "jsonl", "csv", "csv"]
    assert manifest["inputs"][0]["bytes"] == EXAMPLES.stat().st_size
    for table in ("scored", "quarantine"):
        named = {file["path"]: file["bytes"] for file in manifest["files"][table]}
        on_disk = {
            str(path.relative_to(run.folder)): path.stat().st_size for path in run.files(table)
        }
        assert named == on_disk
    for origin, points in manifest["quantiles"].items():
        scores = run.scored.loc[run.scored["origin"] == origin, "spscore"]
        expected = scores.quantile([float(share) for share in points], interpolation="inverted_cdf")
        np.testing.assert_allclose(list(points.values()), expected, atol=1.01e-4)


# Runs that are there already


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_published_run_is_refused_and_resume_does_nothing(run, score):
    before = snapshot(run.folder)
    given = ("--input", EXAMPLES, "--origin-column", "origin")
    refused = score(run.folder.parents[1], *given)
    assert refused.code == 2
    again = ("--config", run.folder.parents[2] / "score.yaml", "--resume")
    for line, said in (
        (again, ""),
        ((*given, "--resume"), "settings differ from the run's: cuts, inputs; use"),
    ):
        resumed = score(run.folder.parents[1], *line)
        assert resumed.code == 0
        assert "already published: nothing to do" in resumed.stdout
        assert said in resumed.stdout
        assert ("settings differ" in resumed.stdout) == bool(said)
    assert snapshot(run.folder) == before


def test_dry_run_writes_nothing(score, tmp_path):
    given = ("--input", EXAMPLES, "--origin-column", "origin", "--dry-run")
    run = score(tmp_path / "out", *given)
    assert run.code == 0, run.stderr
    assert not (tmp_path / "out").exists()
    assert "of the first 288 rows, 288 can be scored" in run.stdout
    assert "SPScore-zh" in run.stdout


def test_published_last(score, tmp_path, grow, monkeypatch):
    """A run that dies before its manifest must be invisible to readers, and resumable."""
    pq.write_table(grow(100), tmp_path / "in.parquet")
    given = ("--input", tmp_path / "in.parquet", "--origin-column", "origin")
    write = storage.write

    def die_at_manifest(uri, content):
        if uri.endswith("/manifest.json"):
            raise KeyboardInterrupt
        write(uri, content)

    with monkeypatch.context() as patch:
        patch.setattr(storage, "write", die_at_manifest)
        killed = score(tmp_path / "out", *given)
    assert killed.code == 130
    assert not (killed.folder / "manifest.json").exists()
    assert (killed.folder / "scored").exists()

    run = score(tmp_path / "out", *given)
    assert run.code == 0, run.stderr
    assert sorted(run.scored["n"]) == list(range(100))


# How the input is laid out


def repeated(grow) -> pd.DataFrame:
    """Returns 120 pairs, some up to four times with different further columns, some null."""
    pairs = grow(120).to_pandas()
    copies = [pairs]
    for k in range(1, 4):
        copies.append(pairs[pairs["n"] % (3 * k) == 0].assign(n=lambda t, k=k: t["n"] + 1000 * k))
    rows = pd.concat(copies, ignore_index=True)
    rows["left"] = np.where(rows.index % 2 == 0, "x", None)
    rows["right"] = np.where(rows.index % 2 == 1, "x", None)
    return rows


def test_the_same_duplicate_is_kept_whatever_the_layout(score, grow, tmp_path):
    rows = repeated(grow)
    rows["n"] %= 1000  # so some rows differ only in left and right
    rows["tags"] = [{"a": k % 2} for k in range(len(rows))]
    schema = pa.Schema.from_pandas(rows.drop(columns="tags"), preserve_index=False)
    schema = schema.append(pa.field("tags", pa.map_(pa.string(), pa.int64())))
    tables = []
    for seed, parts in ((1, 1), (2, 7)):
        mixed = rows.sample(frac=1, random_state=seed)
        mixed["tags"] = [list(tags.items()) for tags in mixed["tags"]]
        folder = tmp_path / f"in-{seed}"
        folder.mkdir()
        for k in range(parts):
            part = pa.Table.from_pandas(mixed[k::parts], schema=schema, preserve_index=False)
            pq.write_table(part, folder / f"{k}.parquet")
        given = ("--input", folder, "--origin-column", "origin", "--unit-mb", "0.05")
        run = score(tmp_path / "out", *given, run_id=str(seed))
        assert run.code == 0, run.stderr
        counts = pd.DataFrame(run.manifest["rows"]).sum(axis=1)
        assert counts["read"] == len(rows)
        assert counts["duplicates"] == len(rows) - 120
        tables.append(run.scored)
    assert len(tables[0]) == 120
    same_rows(*tables)


def test_formats_give_the_same_rows(score, examples, tmp_path):
    table = examples[["source", "paraphrase", "origin", "note"]][:40].copy()
    table.loc[3, "source"] = '他说："够了，" 然后头也不回地走出了那间屋子。'
    lines = table.to_json(orient="records", lines=True, force_ascii=False)
    table.to_parquet(tmp_path / "a.parquet")
    (tmp_path / "b.jsonl").write_text(lines)
    (tmp_path / "c.json.gz").write_bytes(gzip.compress(lines.encode()))
    table.to_csv(tmp_path / "d.csv", index=False)
    (tmp_path / "e.csv.gz").write_bytes(gzip.compress(table.to_csv(index=False).encode()))
    tsv = ["\t".join(row) for row in [list(table), *table.to_numpy().tolist()]]
    (tmp_path / "f.tsv").write_text("\n".join(tsv) + "\n")
    (tmp_path / "pairs.data").write_text(lines)
    renamed = table.rename(columns={"source": "原文 1", "paraphrase": "改写.a", "origin": "kind"})
    renamed.to_csv(tmp_path / "g.csv", index=False)

    names = ["a.parquet", "b.jsonl", "c.json.gz", "d.csv", "e.csv.gz", "f.tsv", "pairs.data"]
    names.append("g.csv")
    inputs = [{"path": str(tmp_path / name), "origin_column": "origin"} for name in names]
    inputs[6]["format"] = "jsonl"
    inputs[7] |= {"source_column": "原文 1", "paraphrase_column": "改写.a", "origin_column": "kind"}
    config = write_config(tmp_path / "score.yaml", inputs=inputs)
    run = score(tmp_path / "out", "--config", config)
    assert run.code == 0, run.stderr
    counts = pd.DataFrame(run.manifest["rows"]).sum(axis=1)
    # pair_id is a hash of the texts; if a format were read differently, its rows would not be
    # duplicates.
    assert counts.to_dict() == {"read": 320, "scored": 40, "quarantined": 0, "duplicates": 280}
    assert sorted(run.scored["source"]) == sorted(table["source"])
    assert sorted(run.scored["note"]) == sorted(table["note"])


def test_options(score, examples, tmp_path):
    """Options must work together: column mapping, a glob, --limit, --min-characters, --set and
    cuts by quantiles."""
    renamed = examples.rename(columns={"source": "原文 1", "paraphrase": "改写.a"})
    renamed = renamed.drop(columns="origin")
    renamed[:100].to_csv(tmp_path / "in-1.tsv", index=False, sep="\t")
    renamed[100:].to_csv(tmp_path / "in-2.tsv", index=False, sep="\t")
    given = (
        *("--input", tmp_path / "in-?.tsv", "--origin", "human", "--limit", "200"),
        *("--source-column", "原文 1", "--paraphrase-column", "改写.a", "--unit-mb", "0.001"),
        *("--min-characters", "25", "--set", "max_characters=60"),
        *("--set", "cuts.human={quantiles: [0.25, 0.5, 0.9], min_meaning: 0}"),
    )
    run = score(tmp_path / "out", *given)
    assert run.code == 0, run.stderr
    first = examples[:200]
    shorter = np.minimum(first["source"].str.len(), first["paraphrase"].str.len())
    longer = np.maximum(first["source"].str.len(), first["paraphrase"].str.len())
    fit = first[(shorter >= 25) & (longer <= 60)]
    assert 50 < len(fit) < 200
    assert run.manifest["limit"] == 200
    assert sorted(run.scored["id"]) == sorted(fit["id"])
    assert run.manifest["rows"] == {
        "human": {"read": 200, "scored": len(fit), "quarantined": 200 - len(fit), "duplicates": 0}
    }
    assert run.manifest["quarantine"]["human"] == {
        "too_short": (shorter < 25).sum(),
        "too_long": ((shorter >= 25) & (longer > 60)).sum(),
    }
    for share, cut in zip((0.25, 0.5, 0.9), run.manifest["cuts"]["human"], strict=True):
        below = (run.scored["spscore"] < cut).mean()
        assert below == pytest.approx(share, abs=1.5 / len(fit))
    expected = stage(run.scored["spscore"].to_numpy(), run.manifest["cuts"]["human"])
    assert run.scored["stage"].tolist() == expected.tolist()


def test_output_files_show_neither_the_inputs_nor_a_shuffle(score, grow, tmp_path, monkeypatch):
    """A large table is written without a shuffle; it must have the same rows in files of the same
    sizes."""
    table, target = grow(8_000), 0.05
    (tmp_path / "many").mkdir()
    parts = [
        pa.concat_tables([table.slice(n, 400), table.slice(n, 30)]) for n in range(0, 8_000, 400)
    ]
    for k, part in enumerate(parts):
        pq.write_table(part, tmp_path / "many" / f"{k:02d}.parquet")
    pq.write_table(pa.concat_tables(parts), tmp_path / "one.parquet")
    calls = []
    write = writing.write_unshuffled
    monkeypatch.setattr(writing, "write_unshuffled", lambda *a: (calls.append(a), write(*a)))
    runs = []
    for name, run_id in (("one.parquet", "one"), ("many", "many"), ("many", "unshuffled")):
        if run_id == "unshuffled":
            monkeypatch.setattr(writing, "MIN_UNSHUFFLED", 0)
        given = ("--input", tmp_path / name, "--origin-column", "origin")
        given += ("--target-file-mb", target)
        for origin in ORIGINS:  # puts a whole origin into one stage
            given += ("--set", f"cuts.{origin}={{scores: [0, 0, 0], min_meaning: 0}}")
        runs.append(score(tmp_path / "out", *given, run_id=run_id))
        assert runs[-1].code == 0, runs[-1].stderr
        assert len(calls) == (run_id == "unshuffled")
    assert sum(rows["duplicates"] for rows in runs[0].manifest["rows"].values()) >= 500
    for run in runs[1:]:
        same_rows(run.scored, runs[0].scored)
        assert run.manifest["rows"] == runs[0].manifest["rows"]
    one, many, unshuffled = (run.files("scored") for run in runs)
    folders = pd.Series([path.parent.name for path in one]).value_counts()
    assert folders.sum() <= 4 * 4 + runs[0].manifest["rows"]["llm"]["scored"] / 100
    assert abs(len(one) - len(many)) <= 0.2 * max(len(one), len(many))
    sizes = [path.stat().st_size / 1e6 for path in one + many if "llm" in str(path)]
    assert len(sizes) >= 6
    assert max(sizes) < 2 * target
    assert min(sizes) > target / 2
    assert max(path.stat().st_size / 1e6 for path in unshuffled) < 2 * target
    assert 0.5 < len(unshuffled) / len(many) < 2.5


def test_a_row_of_100_000_characters(score, grow, examples, tmp_path):
    table = grow(50).select(["source", "paraphrase"]).to_pylist()
    text = "".join(examples["source"]) * 10
    table += [
        {"source": text[:100_000], "paraphrase": text[1:100_001]},
        {"source": text[:20_000], "paraphrase": text[1:20_001]},
        {"source": "长" * 20_000, "paraphrase": "长" * 19_999 + "短"},
    ]
    pq.write_table(pa.Table.from_pylist(table), tmp_path / "in.parquet")
    given = ("--input", tmp_path / "in.parquet", "--origin", "llm", "--max-characters", "20000")
    run = score(tmp_path / "out", *given)
    assert run.code == 0, run.stderr
    assert run.manifest["quarantine"]["llm"] == {"too_long": 1}
    assert len(run.quarantine["source"][0]) == 100_000
    assert len(run.scored) == 52
    assert run.manifest["seconds"]["score"] < 60


# Resuming


@pytest.fixture(scope="module")
def in_units(grow, tmp_path_factory):
    """Returns four files that make four units; some rows duplicate another unit's."""
    folder = tmp_path_factory.mktemp("units")
    table = grow(4000)
    for k in range(4):
        part = pa.concat_tables([table.slice(1000 * k, 1000), table.slice(997 * k, 3)])
        pq.write_table(part, folder / f"{k}.parquet")
    return ("--input", folder, "--origin-column", "origin", "--unit-mb", "0.01")


@pytest.fixture(scope="module")
def unbroken(score, in_units, tmp_path_factory):
    run = score(tmp_path_factory.mktemp("unbroken"), *in_units)
    assert run.code == 0, run.stderr
    return run


def read_until(process: subprocess.Popen, text: str) -> str:
    """Returns standard error up to the first line with the text."""
    read = ""
    for line in process.stderr:
        read += line
        if text in line:
            return read
    raise AssertionError(f"ended without {text!r}:\n{read}")


def kill(process: subprocess.Popen) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.long
def test_killed_twice_then_resumed(score, launch, in_units, unbroken, tmp_path):
    out = tmp_path / "out"
    folder = out / "runs" / "r"
    process = launch(out, *in_units)
    read_until(process, "scoring unit 3 of 4: done")
    kill(process)
    assert not (folder / "manifest.json").exists()
    finished = len(list((folder / "_work").glob("unit-*.json")))
    assert finished >= 2  # the third marker is written after that line
    process = launch(out, *in_units, "--resume")
    read = read_until(process, "finding duplicates and stages: done")  # next, it writes its tables
    kill(process)
    assert read.count("already done") == finished
    assert not (folder / "manifest.json").exists()

    run = score(out, *in_units, "--resume")
    assert run.code == 0, run.stderr
    assert run.stderr.count("already done") == 4
    same_rows(run.scored, unbroken.scored)
    assert run.manifest["rows"] == unbroken.manifest["rows"]
    assert run.manifest["stages"] == unbroken.manifest["stages"]
    assert not (run.folder / "_work").exists()


def test_resume_with_other_settings_scores_again(score, grow, tmp_path, monkeypatch):
    (tmp_path / "in").mkdir()
    for k in range(4):
        pq.write_table(grow(100, 100 * k), tmp_path / "in" / f"{k}.parquet")
    given = ("--input", tmp_path / "in", "--origin-column", "origin", "--unit-mb", "0.01")
    write_json = storage.write_json

    def write_and_die(path, value):
        write_json(path, value)
        if path.endswith("unit-00002.json"):
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(storage, "write_json", write_and_die)
        assert score(tmp_path, *given).code == 130
    run = score(tmp_path, *given, "--resume", "--limit", "150", "--min-characters", "40")
    assert run.code == 0, run.stderr
    assert "already done" not in run.stderr
    assert pd.DataFrame(run.manifest["rows"]).sum(axis=1)["read"] == 150
    assert run.scored["source"].str.len().min() >= 40


# As a process of its own; that of `make demo` is in test_demo.py


@pytest.mark.long
def test_under_spark_submit(launch, examples, tmp_path):
    command = (Path(pyspark.__file__).parent / "bin" / "spark-submit", "--master", "local[2]")

    def submit(path: Path, run_id: str) -> tuple[int, str]:
        given = ("--input", path, "--origin", "llm", "--limit", 20)
        process = launch(tmp_path / "out", *given, run_id=run_id, command=command)
        stdout, stderr = process.communicate(timeout=PATIENCE)
        return process.returncode, stdout + stderr  # Spark puts Python's stderr into stdout

    examples[["source", "paraphrase"]].to_parquet(tmp_path / "in.parquet")
    code, text = submit(tmp_path / "in.parquet", "r")
    assert code == 0, text
    assert len(pq.read_table(tmp_path / "out" / "runs" / "r" / "scored")) == 20

    code, text = submit(tmp_path / "none.parquet", "s")
    assert code == 2
    line = f"score_corpus: error: {tmp_path}/none.parquet: no such file or folder"
    assert line in text.splitlines()
    assert "Traceback" not in text
    assert not (tmp_path / "out" / "runs" / "s").exists()
