"""Paraphrases with a language model, behind an endpoint or loaded from a folder (method llm)."""
