"""Holds what build_vocabulary calls."""
