"""What fit_spscore, make_vectors, make_language_model and rank_translations call."""
