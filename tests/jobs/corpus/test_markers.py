"""A resumed job must say what has changed since it began, and never trust what is half deleted."""

import pytest

from gaixie.jobs.corpus.markers import Markers
from gaixie.udfs.command_line import UserError
from gaixie.udfs.storage import storage


def test_changes_are_refused(tmp_path, capsys):
    markers = Markers(f"{tmp_path}/_work")
    markers.start({"inputs": ["a"]}, False, "out")
    markers.start({"inputs": ["a"]}, True, "out")
    assert capsys.readouterr().err == ""
    with pytest.raises(UserError, match=r'^out: .*inputs was \["a"\], now \["b"\]'):
        markers.start({"inputs": ["b"]}, True, "out")


def test_a_part_is_done_once_under_each_fingerprint(tmp_path, capsys):
    markers, done = Markers(f"{tmp_path}/_work"), []

    def work() -> dict[str, int]:
        done.append(len(done))
        return {"rows": len(done)}

    assert [markers.once("a", work)["rows"] for _ in range(2)] == [1, 1]
    assert [markers.once("b", work, fingerprint)["rows"] for fingerprint in "xxyx"] == [2, 2, 3, 4]
    assert capsys.readouterr().err.count("b: its files or settings have changed") == 2


def test_what_is_half_deleted_is_not_resumed(tmp_path, monkeypatch):
    """Markers may outlive what they stand for if a process is killed while it deletes."""
    markers = Markers(f"{tmp_path}/_work")
    markers.start({}, False, "out")
    markers.once("a", dict)
    delete = storage.delete

    def killed(uri: str) -> None:
        if uri.endswith("_work"):
            raise KeyboardInterrupt
        delete(uri)

    with monkeypatch.context() as patch:
        patch.setattr(storage, "delete", killed)
        with pytest.raises(KeyboardInterrupt):
            markers.clear()
    assert (tmp_path / "_work/a.json").exists()
    markers.start({}, True, "out")
    assert not (tmp_path / "_work/a.json").exists()
