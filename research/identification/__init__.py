"""Labelled pairs, training, thresholds and noisy labels for identify_paraphrases."""
