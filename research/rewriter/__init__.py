"""The rewriter: a small encoder-decoder meant to write candidates for ``gaixie paraphrase``.

groups.jsonl has 3,100 groups of five sentences with the same meaning, written for this project by a
language model (CC0). No trained rewriter ships yet.
"""
