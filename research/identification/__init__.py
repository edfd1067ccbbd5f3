"""Labelled pairs, training, and thresholds for identify_paraphrases."""
