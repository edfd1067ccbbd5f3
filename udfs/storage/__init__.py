"""Handles files by URI, local copies, manifests, settings, locks, caches, tables of text and of
pairs, and model folders."""
