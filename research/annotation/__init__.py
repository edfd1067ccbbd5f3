"""Samples, sheets to rate, agreement and comparisons for annotate."""
