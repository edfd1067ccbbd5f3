"""Computes features of meaning and fluency."""
