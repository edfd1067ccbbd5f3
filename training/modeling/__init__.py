"""The tokenizer, the model, and how it writes paraphrases."""
