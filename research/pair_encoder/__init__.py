"""Trains the reader of udfs/paraphrase: examples, counterparts broken by program, the loop, the export."""
