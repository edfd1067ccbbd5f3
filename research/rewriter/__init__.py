"""The rewriter: a small encoder-decoder that writes candidates for ``gaixie paraphrase``."""
