"""Fixtures for the tests of jobs: scored runs and their inputs."""

from scored_runs import (  # noqa: F401, whose names pytest looks for here
    examples,
    grow,
    launch,
    model,
    score,
    translator,
)
