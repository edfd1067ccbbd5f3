"""Pairs out of clusters of sentences that say the same: near duplicates out, candidates, links,
clusters."""
