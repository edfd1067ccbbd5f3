"""What score_corpus calls: settings, inputs, chunks, the pipeline, the report."""
