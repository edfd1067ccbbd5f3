"""HTTP over the metric, a model and a run, with a page and a client. Needs gaixie[serve], the
client nothing.
"""

if __name__ != "gaixie.service":  # under two names every class would be there twice
    raise ImportError("import gaixie.service, not service")
