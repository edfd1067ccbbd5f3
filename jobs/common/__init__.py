"""What several jobs share: settings, inputs, storage, the Spark session, progress, reports."""
