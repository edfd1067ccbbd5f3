"""Holds what score_corpus calls: settings, chunks, the pipeline, duplicates, the report."""
