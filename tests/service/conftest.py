"""Gives the tests of the service the sample pairs of the tests of jobs."""

from scored_runs import examples  # noqa: F401, whose name pytest looks for here
