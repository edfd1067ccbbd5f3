"""What build_pairs calls: a file for each method, and what all of them share."""
