"""What every Spark job needs: the session, S3A, jars, storage, progress, Parquet."""
