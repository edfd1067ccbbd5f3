"""Holds the tokenizer, the model, and the code that writes paraphrases."""
