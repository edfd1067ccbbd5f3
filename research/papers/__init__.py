"""Diversity of human paraphrases, published figures and the page for reproduce_papers."""
