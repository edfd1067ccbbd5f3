"""The gold corpus, the trainer and the scores for train_segmenter."""
