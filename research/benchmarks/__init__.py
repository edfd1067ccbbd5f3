"""Benchmarks, and the experiment on the curriculum. They need a checkout, for tests/support."""
