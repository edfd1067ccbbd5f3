"""Paraphrases by edits from a lexicon and from rules of structure, each checked before use."""
