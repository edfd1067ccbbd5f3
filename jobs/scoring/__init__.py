"""Holds the steps of score_corpus: run.py calls them in order, units.py scores, sorting.py decides
the stages and writes the tables, report.py describes the run."""
