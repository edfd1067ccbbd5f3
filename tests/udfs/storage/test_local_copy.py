"""Local copies of objects in a store, and uploads of what was made locally."""

from pathlib import Path

import pytest

from gaixie.udfs.storage import storage
from gaixie.udfs.storage.local_copy import local_copy


@pytest.fixture
def root(admin) -> str:
    return f"s3a://{admin.BUCKET}/on-disk"


def test_files_and_folders_come_and_go(root, tmp_path):
    with local_copy(tmp_path / "out", "gold.txt", None) as found:  # local paths stay
        assert (*found,) == (tmp_path / "out", Path("gold.txt"), None)
    storage.write(f"{root}/model/a.json", "{}")
    storage.write(f"{root}/model/trees/b.txt", "tree")
    storage.write(f"{root}/gold.txt", "我/r 们/k")
    with local_copy(f"{root}/new", f"{root}/model", f"{root}/gold.txt") as (output, model, gold):
        assert gold.read_text("utf-8") == "我/r 们/k"
        found = {str(path.relative_to(model)) for path in model.rglob("*") if path.is_file()}
        assert found == {"a.json", "trees/b.txt"}
        (output / "trees").mkdir(parents=True)
        (output / "trees" / "c.txt").write_text("leaf")
        assert not storage.exists(f"{root}/new")
    assert [file.uri for file in storage.list_files(f"{root}/new")] == [f"{root}/new/trees/c.txt"]
    assert not output.exists()


def test_a_failed_job_leaves_nothing_and_what_is_there_stays(root):
    def fail():
        with local_copy(f"{root}/failed") as (output,):
            output.mkdir(parents=True)
            (output / "half.txt").write_text("half")
            raise ValueError("no sense")

    with pytest.raises(ValueError, match="no sense"):
        fail()
    assert not storage.exists(f"{root}/failed")
    with pytest.raises(FileNotFoundError, match="nowhere: no such file"):
        local_copy(None, f"{root}/nowhere").__enter__()
