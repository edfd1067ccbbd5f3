"""A resumed run must say what has changed since it began."""

import pytest

from gaixie.jobs.corpus.steps import Steps
from gaixie.udfs.command_line import UserError


def test_changes_are_said_or_refused(tmp_path, capsys):
    steps = Steps(f"{tmp_path}/_work")
    steps.start({"least": 15, "inputs": ["a"]}, False, "run 'r'", by_step=True)
    steps.start({"least": 15, "inputs": ["a"]}, True, "run 'r'", by_step=True)
    assert capsys.readouterr().err == ""
    steps.start({"least": 20, "inputs": ["a"]}, True, "run 'r'", by_step=True)
    assert "least was 15, now 20" in capsys.readouterr().err
    with pytest.raises(
        UserError, match=r'^out: cannot be resumed: inputs was \["a"\], now \["b"\]'
    ):
        steps.start({"least": 20, "inputs": ["b"]}, True, "out")


def test_a_step_is_done_once_under_each_fingerprint(tmp_path, capsys):
    steps, done = Steps(f"{tmp_path}/_work"), []

    def work() -> dict[str, int]:
        done.append(len(done))
        return {"rows": len(done)}

    assert not steps.is_done("a")
    assert [steps.once("a", work)["rows"] for _ in range(2)] == [1, 1]
    assert steps.is_done("a")
    assert "a: already done" in capsys.readouterr().err
    told = [steps.once("b", work, fingerprint)["rows"] for fingerprint in "xxyx"]
    assert told == [2, 2, 3, 4]
