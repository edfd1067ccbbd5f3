"""Runs, as the tests of jobs have them, and how a command refuses."""

from collections.abc import Callable

import pytest
from scored_runs import examples, model, score  # noqa: F401, whose names pytest looks for here


@pytest.fixture
def refused(capsys) -> Callable[..., str]:
    """Calls a command that must end with exit code 2 and one line, in which a message stands."""

    def call(main: Callable[[list[str]], int], line: list[object], message: str) -> str:
        capsys.readouterr()
        assert main([str(word) for word in line]) == 2
        output, error = capsys.readouterr()
        assert output == ""
        assert message in error
        assert error.count("\n") == 1
        return error

    return call
