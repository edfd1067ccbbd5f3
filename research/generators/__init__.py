"""Reviews, generators, classifiers and scores for evaluate_generators."""
