"""Reads tables of pairs, puts ratings of several rounds on one scale, and resamples by source."""
