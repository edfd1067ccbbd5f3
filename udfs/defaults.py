"""What decides a score unless a setting says otherwise; imported before anything that takes
time."""

TIER_NAMES = ("paper", "core", "full")
"""From what reads least of a pair to what reads all; gaixie.udfs.spscore.TIERS says what each
sees."""

MIN_CHARACTERS, MAX_CHARACTERS = 15, 1000
"""Lengths of a sentence that is fit to be scored, normalised."""
