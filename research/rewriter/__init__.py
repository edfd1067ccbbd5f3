"""The rewriter: a small encoder-decoder that is to write candidates for ``gaixie paraphrase``.

groups.jsonl has 3,100 groups of five sentences that say the same, written for this project by a
language model (CC0). No trained rewriter ships yet.
"""
