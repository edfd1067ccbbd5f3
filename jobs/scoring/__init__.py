"""Holds the steps of score_corpus, one file each; steps.py calls them in order."""
