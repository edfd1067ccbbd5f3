"""llm: paraphrases by a language model, behind an endpoint or loaded from a folder."""
