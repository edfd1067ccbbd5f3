"""Paraphrasing by HTTP: what training/serve.py adds to the service of gaixie.udfs.service."""
