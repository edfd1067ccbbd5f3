"""Measures and reports an evaluation."""
