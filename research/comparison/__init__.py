"""Data sets, scores, agreement and attribution for compare_metrics."""
