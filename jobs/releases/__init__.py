"""Holds what release_dataset calls: build.py has the steps, in order."""
