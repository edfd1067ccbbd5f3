"""WPA must equal (1 / |I|²) Σ over words of (words from here on) · |start in A / n − in B / m|."""

import math
import sys

import pytest

from gaixie.udfs.text.words import alphanumeric

GOLDEN = [
    # n = m = 4. 我 0 → 2, thrice; 爱 1 → 3, twice; 北京 2 → 0, once: 2/4 · 6 / 3².
    ("我/爱/北京", "北京/我/爱", 1 / 3),
    # n = m = 5, the comma is no word. 你好 0 → 3, twice; 世界 3 → 0, once: 3/5 · 3 / 2².
    ("你好/,/世界", "世界/,/你好", 9 / 20),
    # The k-th matches the k-th. 人 0 → 1, four times; 人 1 → 3, thrice; 都 2 → 2; 好 3 → 0, once:
    # (1/4 · 4 + 2/4 · 3 + 0 + 3/4 · 1) / 4² = 3.25 / 16.
    ("人/人/都/好", "好/人/都/人", 13 / 64),
    # n = 7, m = 5. 3 at 1 → 4, twice; book at 3 → 0, once: (2 · 23/35 + 15/35) / 2².
    ("买/3/本/book", "book/3", 61 / 140),
    # A surplus word on one side stays unmatched: only the first 人 0/2 → 1/3.
    ("人/人", "好/人/们", 1 / 3),
    ("北京/大学", "北京大学/吗", math.nan),  # same characters, different words
    # Same length, first and last character, but different words.
    ("不得不", "不能不", math.nan),
    ("一二三四五/不得不", "不得不/一二三四五", (2 * 3 / 8 + 5 / 8) / 4),
    ("好/。", "坏/。", math.nan),  # only punctuation is shared
    ("", "好", math.nan),
    ("", "", math.nan),
]


@pytest.mark.parametrize(("source", "paraphrase", "expected"), GOLDEN)
def test_golden(both, given_words, source, paraphrase, expected):
    segmenter = given_words(source, paraphrase)
    texts = source.replace("/", ""), paraphrase.replace("/", "")
    actual = both("wpa", *texts, segmenter)
    assert actual == pytest.approx((expected,) * 2, rel=1e-6, nan_ok=True)


def test_alphanumeric_is_what_python_says():
    table = alphanumeric()
    assert table.tolist() == [chr(code).isalnum() for code in range(sys.maxunicode + 1)]
    assert all(table[ord(c)] for c in "好〇3Aéがx𠮷")
    assert not any(table[ord(c)] for c in "，。,_ \u3000😀—…")
