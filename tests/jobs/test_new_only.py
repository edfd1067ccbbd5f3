"""score_corpus --new-only must read only files that no run of its signature has scored."""

import json

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq


def total(run, key: str) -> int:
    return sum(rows[key] for rows in run.manifest["rows"].values())


def test_files_of_earlier_runs_are_left_out(score, grow, tmp_path):
    """Of two inputs one may have nothing new, and a new file may repeat pairs of an old one."""
    mixed, human = tmp_path / "mixed", tmp_path / "human"
    inputs = [
        {"path": str(mixed), "origin_column": "origin", "license": "CC0"},
        {"path": str(human), "origin": "human"},
    ]
    config = tmp_path / "score.yaml"
    config.write_text(json.dumps({"inputs": inputs}))

    def call(run_id: str, *given):
        run = score(tmp_path, "--config", config, "--new-only", *given, run_id=run_id)
        assert run.code == 0, run.stderr
        return run

    for folder in (mixed, human):
        folder.mkdir()
    pq.write_table(grow(40), mixed / "monday.parquet")
    pq.write_table(grow(5, 200).drop(["origin"]), human / "monday.parquet")
    first = call("first")
    assert (total(first, "scored"), first.manifest["earlier_runs"]) == (45, [])
    listed = [file["path"] for source in first.manifest["inputs"] for file in source["listing"]]
    assert listed == [f"file:{folder}/monday.parquet" for folder in (mixed, human)]

    new = grow(10, 40)
    pq.write_table(pa.concat_tables([new, new.slice(0, 5)]), mixed / "tuesday.parquet")
    second = call("second")
    assert [total(second, key) for key in ("read", "scored", "duplicates")] == [15, 10, 5]
    assert second.manifest["earlier_runs"] == ["first"]
    assert pd.concat([first.scored, second.scored])["pair_id"].is_unique

    third = call("third")
    assert "nothing new to score" in third.stdout
    assert not third.folder.exists()
