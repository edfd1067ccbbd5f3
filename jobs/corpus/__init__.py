"""Holds what every job needs: Spark's session, inputs and their readers, markers of finished steps,
runs and their locks, progress, Parquet."""
