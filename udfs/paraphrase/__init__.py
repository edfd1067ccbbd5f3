"""Paraphrases: a language model writes drafts, and what reads them decides which are shown."""
