"""SplitMix64 turns any numbers into evenly spread ones.

Source: Steele, Lea, Flood 2014, *Fast Splittable Pseudorandom Number Generators*, figure 17.
"""

import numpy as np

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1, MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def mix(values: np.ndarray) -> np.ndarray:
    """Returns mix64 of each uint64. It is one to one, so different values stay different."""
    values = (values ^ (values >> np.uint64(30))) * MIX_1
    values = (values ^ (values >> np.uint64(27))) * MIX_2
    return values ^ (values >> np.uint64(31))
