"""Serves the metric, a model and a run over HTTP, with a page and a client.

Needs gaixie[serve]; the client alone needs nothing.
"""

if __name__ != "gaixie.service":  # a second name would define every class twice
    raise ImportError("import gaixie.service, not service")
