"""The release of the written data must match what the repository holds."""

from pathlib import Path

import pandas as pd
import pytest

FOLDER = Path(__file__).parents[2] / "examples/written"
DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def read(name: str, split: str) -> pd.DataFrame:
    return pd.read_parquet(FOLDER / f"data/{name}-{split}.parquet")


def test_no_group_is_in_both_splits():
    train, test = (set(read("groups", split)["group"]) for split in ("train", "test"))
    assert not train & test
    for name in ("counterparts", "ratings"):
        assert set(read(name, "train")["group"]) <= train
        assert set(read(name, "test")["group"]) <= test


@pytest.mark.skipif(not DATA.is_dir(), reason=f"needs the written sets in {DATA}")
def test_the_command_writes_what_lies_here(tmp_path, capsys):
    from gaixie.research.release_written import main

    assert main([str(DATA), "--output", str(tmp_path)]) == 0
    assert (tmp_path / "README.md").read_bytes() == (FOLDER / "README.md").read_bytes()
    for path in FOLDER.glob("data/*.parquet"):
        written = pd.read_parquet(tmp_path / "data" / path.name)
        pd.testing.assert_frame_equal(written, pd.read_parquet(path))
