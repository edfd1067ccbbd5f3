"""What fit_spscore, make_vectors, make_language_model and train_word_vectors call."""
