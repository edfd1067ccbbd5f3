"""What identify_paraphrases calls: labelled pairs, training, thresholds, noisy labels."""
