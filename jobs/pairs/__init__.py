"""Holds what build_pairs calls: a file for each method, and the code that the methods share."""
