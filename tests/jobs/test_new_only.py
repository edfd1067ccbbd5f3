"""score_corpus --new-only must read only files that no run of its signature has scored."""

import json

import pyarrow as pa
import pyarrow.parquet as pq


def test_files_of_earlier_runs_are_left_out(score, grow, tmp_path):
    """Of two inputs one may have nothing new, and a new file may repeat pairs of an old one."""
    mixed, human = tmp_path / "mixed", tmp_path / "human"
    inputs = [
        {"path": str(mixed), "origin": "llm", "license": "CC0"},
        {"path": str(human), "origin": "human"},
    ]
    config = tmp_path / "score.yaml"
    config.write_text(json.dumps({"inputs": inputs}))

    def call(run_id: str):
        run = score(tmp_path, "--config", config, "--new-only", run_id=run_id)
        assert run.code == 0, run.stderr
        return run

    for folder in (mixed, human):
        folder.mkdir()
    table = grow(55).drop(["origin"])
    pq.write_table(table.slice(0, 30), mixed / "monday.parquet")
    pq.write_table(table.slice(30, 5), human / "monday.parquet")
    first = call("first")
    assert (len(first.scored), first.manifest["earlier_runs"]) == (35, [])
    listed = [file["path"] for source in first.manifest["inputs"] for file in source["listing"]]
    assert listed == [f"file:{folder}/monday.parquet" for folder in (mixed, human)]

    repeated = [table.slice(40, 10), table.slice(40, 5)]
    pq.write_table(pa.concat_tables(repeated), mixed / "tuesday.parquet")
    second = call("second")
    accounts = {"read": 15, "scored": 10, "quarantined": 0, "duplicates": 5}
    assert second.manifest["rows"] == {"llm": accounts}
    assert second.manifest["earlier_runs"] == ["first"]

    third = call("third")
    assert "nothing new to score" in third.stdout
    assert not third.folder.exists()
