"""From the tables of a release to batches."""
