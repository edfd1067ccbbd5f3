"""Different words must have different keys."""

from itertools import product

from gaixie.udfs.text.code_points import from_strings
from gaixie.udfs.text.compiled import njit
from gaixie.udfs.text.words import word_key


@njit
def _keys(values, offsets):
    return [word_key(values, offsets[k], offsets[k + 1]) for k in range(len(offsets) - 1)]


def test_no_two_numbers_or_spellings_share_a_key():
    numbers = [f"{number:0{digits}}" for digits in (3, 4, 5) for number in range(10**digits)]
    spellings = ["".join(cases) for cases in product(*zip("ewokship", "EWOKSHIP", strict=True))]
    texts = numbers + spellings
    keys = set(_keys(*from_strings(texts)))
    assert len(keys - {0}) == len(set(texts))
