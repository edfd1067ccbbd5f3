"""Handles files by URI, local copies, manifests, settings, caches, tables of text and of
pairs, and model folders."""
