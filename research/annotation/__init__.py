"""Sampling, tasks, answers, agreement and reports for annotate and analyse_human_evaluation."""
