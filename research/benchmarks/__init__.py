"""Benchmarks, and the experiment on the stages. They need a checkout: its tests/support."""
