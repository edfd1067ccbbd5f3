"""The gold corpus, the trainer, the scores and the card for train_segmenter."""
