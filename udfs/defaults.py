"""Defaults that decide a score. This module imports nothing slow."""

TIER_NAMES = ("paper", "core", "full")
"""The tiers, in the order of how much they see; gaixie.udfs.spscore.TIERS lists their columns."""

MIN_CHARACTERS, MAX_CHARACTERS = 15, 1000
"""Limits on the length of a normalised sentence; pairs outside them go to quarantine."""

MOST_CHARACTERS = 20_000
"""The most that anybody may set, and that the library judges: memory grows with the square."""
