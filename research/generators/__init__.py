"""What evaluate_generators calls: reviews, generators, classifiers, the report."""
