"""What fit_spscore, make_vectors and make_language_model call."""
