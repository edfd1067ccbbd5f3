"""Holds what release_dataset calls: rows, store, verification, card, Croissant, plots."""
