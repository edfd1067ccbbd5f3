"""Trains the pair encoder: examples, counterparts broken by program, ratings, the loop, the
export."""
