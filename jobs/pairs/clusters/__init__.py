"""Makes pairs from clusters of sentences that say the same.

The steps: remove near duplicates, find candidates, identify links, cut clusters.
"""
