"""The sample pairs, as the tests of jobs have them."""

from scored_runs import examples  # noqa: F401, whose name pytest looks for here
