"""What train_segmenter calls: the gold corpus, the trainer, scores, the card."""
