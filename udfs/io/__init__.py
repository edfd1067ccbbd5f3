"""Files by URI, local copies, tables of text and of pairs, folders of models."""
