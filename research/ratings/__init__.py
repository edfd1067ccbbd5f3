"""Reads tables of pairs, and puts ratings of several rounds on one scale."""
