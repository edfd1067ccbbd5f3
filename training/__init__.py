"""Holds the scripts that train and use models, and the code that they call."""

if __name__ != "gaixie.training":  # imported under two names, every class would exist twice
    raise ImportError("import gaixie.training, not training")
