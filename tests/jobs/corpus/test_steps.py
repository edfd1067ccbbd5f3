"""A resumed run must say what has changed since it began."""

from typing import Any

import pytest

from gaixie.jobs.corpus.steps import Steps
from gaixie.jobs.errors import JobError


class Files(dict):
    """Keeps files in memory, as storage does."""

    def exists(self, path: str) -> bool:
        return path in self

    def read_json(self, path: str) -> Any:
        return self[path]

    def write_json(self, path: str, value: Any) -> None:
        self[path] = value

    def delete(self, path: str) -> None:
        for name in [name for name in self if name.startswith(path)]:
            del self[name]


def test_changes_are_said_or_refused(capsys):
    steps = Steps(Files(), "out/_work")
    steps.start({"least": 15, "inputs": ["a"]}, False, "run 'r'", by_step=True)
    steps.start({"least": 15, "inputs": ["a"]}, True, "run 'r'", by_step=True)
    assert capsys.readouterr().err == ""
    steps.start({"least": 20, "inputs": ["a"]}, True, "run 'r'", by_step=True)
    said = "run 'r': least was 15, now 20: the finished steps that depend on it run again\n"
    assert capsys.readouterr().err == said
    with pytest.raises(JobError, match=r'^out: cannot be resumed: inputs was \["a"\], now \["b"\]'):
        steps.start({"least": 20, "inputs": ["b"]}, True, "out")


def test_a_step_is_done_once_under_each_fingerprint(capsys):
    steps, done = Steps(Files(), "out/_work"), []

    def work() -> dict[str, int]:
        done.append(len(done))
        return {"rows": len(done)}

    assert not steps.is_done("a")
    assert [steps.once("a", work)["rows"] for _ in range(2)] == [1, 1]
    assert steps.is_done("a")
    assert capsys.readouterr().err == "a: already done\n"
    told = [steps.once("b", work, fingerprint)["rows"] for fingerprint in "xxyx"]
    assert told == [2, 2, 3, 4]
