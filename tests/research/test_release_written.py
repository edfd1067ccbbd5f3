"""The release of the written data must match what the repository holds."""

from pathlib import Path

import pandas as pd
import pytest

FOLDER = Path(__file__).parents[2] / "examples/written"
DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def read(name: str, split: str) -> pd.DataFrame:
    return pd.read_parquet(FOLDER / f"data/{name}-{split}.parquet")


@pytest.mark.parametrize("name", ["groups", "counterparts", "ratings"])
def test_no_group_is_in_both_splits(name):
    train = set(read("groups", "train")["group"])
    test = set(read("groups", "test")["group"])
    assert not train & test
    assert set(read(name, "train")["group"]) <= train
    assert set(read(name, "test")["group"]) <= test


def test_a_counterpart_has_the_source_of_its_group():
    groups = read("groups", "test").set_index("group")["texts"]
    counterparts = read("counterparts", "test")
    assert (counterparts["source"] == [groups[key][0] for key in counterparts["group"]]).all()


@pytest.mark.skipif(not DATA.is_dir(), reason=f"needs the written sets in {DATA}")
def test_the_command_writes_what_lies_here(tmp_path, capsys):
    from gaixie.research.release_written import main

    assert main([str(DATA), "--output", str(tmp_path)]) == 0
    assert (tmp_path / "README.md").read_bytes() == (FOLDER / "README.md").read_bytes()
    for path in FOLDER.glob("data/*.parquet"):
        written = pd.read_parquet(tmp_path / "data" / path.name)
        pd.testing.assert_frame_equal(written, pd.read_parquet(path))
