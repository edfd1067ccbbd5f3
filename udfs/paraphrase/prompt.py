"""The form in which a causal model paraphrases, and the control codes that it is asked with.

    原句：{source}
    改写{code}：{paraphrase}<end>

A code is a degree of change, 1 (a light touch) to 5 (a rewrite), a tone (正式, 口语, 精简), or
nothing. The degree of a training pair is measured on its two sentences: how few of their character
bigrams and trigrams they share.
"""

from collections import Counter

DEGREES = 5
END = "<|endoftext|>"
"""The end token of Qwen's models, which ends a paraphrase."""
TONES = ("正式", "口语", "精简")
SHARED = (0.115, 0.20, 0.30, 0.45)
"""Upper bounds of the overlap of degrees 5, 4, 3 and 2; above the last, the degree is 1."""


def prompt(source: str, code: str = "") -> str:
    """Returns what a model reads before it writes the paraphrase."""
    return f"原句：{source}\n改写{code}："


def overlap(source: str, paraphrase: str) -> float:
    """Returns the mean Dice coefficient of the bigrams and of the trigrams of two texts, 0 to 1."""
    return sum(_dice(source, paraphrase, size) for size in (2, 3)) / 2


def degree(source: str, paraphrase: str) -> int:
    """Returns the degree of change of a pair."""
    shared = overlap(source, paraphrase)
    return DEGREES - sum(shared > bound for bound in SHARED)


def _dice(a: str, b: str, size: int) -> float:
    grams = [Counter(text[k : k + size] for k in range(len(text) - size + 1)) for text in (a, b)]
    total = max(1, len(a) + len(b) - 2 * size + 2)
    return 2 * (grams[0] & grams[1]).total() / total
