"""Runs, as the tests of jobs have them."""

from scored_runs import examples, model, score  # noqa: F401, whose names pytest looks for here
