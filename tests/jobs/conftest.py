"""Fixtures for the tests of jobs, which pytest looks for here: scored runs and their inputs."""

from scored_runs import examples, grow, launch, model, score, translator  # noqa: F401
