"""Turns the tables of a release into batches."""
