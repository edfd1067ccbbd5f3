"""Paraphrases by edits: words of a lexicon and rules of structure, each read before it is taken."""
