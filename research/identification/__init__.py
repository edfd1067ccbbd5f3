"""What identify_paraphrases calls: sets of labelled pairs, training, thresholds, noisy labels, the matrix."""
