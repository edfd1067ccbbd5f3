"""The scripts that train and use models, and what they call."""

if __name__ != "gaixie.training":  # under two names every class would be there twice
    raise ImportError("import gaixie.training, not training")
