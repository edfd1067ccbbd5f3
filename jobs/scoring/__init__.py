"""Holds the steps of score_corpus, one file each; run.py calls them in order."""
