"""Holds what every job needs: session, S3A, jars, storage, inputs, steps, locks, accounts,
Parquet."""
