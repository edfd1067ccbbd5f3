"""Contrasts: what a paraphrase metric must score low, made from real sentences.

Human scores exist for short machine-made paraphrases only. The contrasts teach the metric, on
sentences of any length, what is no paraphrase: the copy, the near-copy, the fragment, the stranger.
Only what the eight surface features can see is made here. A wrong number or a wrong name *inside a
good rewrite* leaves them nearly unchanged, so teaching it would be teaching noise; the same swap in
an otherwise copied sentence is a near-copy, and that they do see.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

KINDS = {
    "copy": "the source itself",
    "edit": "the source with one character substituted, inserted or deleted",
    "two_edits": "the source with two such edits",
    "swapped_numbers": "the source with its digits replaced",
    "swapped_words": "the source with two of its words exchanged",
    "first_half": "the first half of the source",
    "last_half": "the last half of the source",
    "first_third": "the first third of the source",
    "most": "the first 60 to 85 % of the source",
    "own_first_half": "the first half of the rewrite",
    "own_last_half": "the last half of the rewrite",
    "unrelated": "another source",
    "spliced": "the first half of the source and the last half of another",
    "words_shuffled": "the words of the source in random order",
    "own_words_shuffled": "the words of the rewrite in random order",
    "repeated": "the source twice",
    "own_repeated": "the rewrite twice",
}
"""Every kind of contrast and what stands in the place of the paraphrase."""

_FREQUENT = "的了是在一不有这人我他们上大来国到说为子和你地出会也时要就可以对生年发后"
_NUMBER = re.compile(
    r"[0-9〇一二三四五六七八九十百千万亿]*[0-9]+|[一二三四五六七八九]+(?=[十百千万亿年月日个])"
)


def make_contrasts(
    source: str,
    paraphrase: str,
    other: str,
    cut: Callable[[str], list[str]],
    seed: int = 0,
    kinds: Sequence[str] = tuple(KINDS),
) -> dict[str, str]:
    """The contrasts of one rewrite, by kind; a kind that does not apply is absent.

    source, paraphrase: a sentence and its rewrite by a human. other: a sentence on something else.
    cut: words of a text, in order (``Segmenter.cut`` for one text).
    The same arguments give the same contrasts, whatever was made before.

    Raises ValueError for an unknown kind.
    """
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise ValueError(f"contrast {unknown[0]!r}: expected one of {', '.join(KINDS)}")
    half, own_half = len(source) // 2, len(paraphrase) // 2
    made = {}
    for kind in kinds:
        # A generator of its own for each kind: adding a kind leaves the others as they were.
        rng = random.Random(f"{seed}|{kind}|{source}|{paraphrase}")
        match kind:
            case "copy":
                text = source
            case "edit":
                text = one_edit(source, rng)
            case "two_edits":
                text = one_edit(one_edit(source, rng), rng)
            case "swapped_numbers":
                text = swap_numbers(source, rng)
            case "swapped_words":
                text = swap_words(cut(source), rng)
            case "first_half":
                text = source[:half]
            case "last_half":
                text = source[half:]
            case "first_third":
                text = source[: len(source) // 3]
            case "most":
                text = source[: int(len(source) * rng.uniform(0.6, 0.85))]
            case "own_first_half":
                text = paraphrase[:own_half]
            case "own_last_half":
                text = paraphrase[own_half:]
            case "unrelated":
                text = other
            case "spliced":
                text = source[:half] + other[len(other) // 2 :]
            case "words_shuffled":
                text = shuffle_words(cut(source), rng)
            case "own_words_shuffled":
                text = shuffle_words(cut(paraphrase), rng)
            case "repeated":
                text = source + source
            case "own_repeated":
                text = paraphrase + paraphrase
        # A shuffle or swap that gave the source itself is a copy, and counted as one already.
        if text and (kind == "copy" or text != source):
            made[kind] = text
    return made


def one_edit(text: str, rng: random.Random, operation: str | None = None) -> str:
    """The text with one character substituted, inserted or deleted (by lot unless named)."""
    operation = operation or rng.choice(("substitution", "insertion", "deletion"))
    # Half of the new characters are frequent ones, half come from the sentence itself.
    new = rng.choice(_FREQUENT if rng.random() < 0.5 or not text else text)
    if operation == "insertion" or not text:
        place = rng.randrange(len(text) + 1)
        return text[:place] + new + text[place:]
    place = rng.randrange(len(text))
    if operation == "deletion":
        return text[:place] + text[place + 1 :]
    while new == text[place]:
        new = rng.choice(_FREQUENT)
    return text[:place] + new + text[place + 1 :]


def swap_numbers(text: str, rng: random.Random) -> str:
    """The text with every digit of its numbers replaced by another digit."""

    def another(match: re.Match) -> str:
        digits = ("0123456789", "一二三四五六七八九")
        changed = []
        for character in match.group():
            alphabet = next((each for each in digits if character in each), character)
            rest = alphabet.replace(character, "")
            changed.append(rng.choice(rest) if rest else character)
        return "".join(changed)

    return _NUMBER.sub(another, text)


def swap_words(words: list[str], rng: random.Random) -> str:
    """The text with two different words of two or more characters exchanged."""
    long = [place for place, word in enumerate(words) if len(word) > 1 and word.isalnum()]
    pairs = [(i, j) for i in long for j in long if i < j and words[i] != words[j]]
    if not pairs:
        return ""
    i, j = rng.choice(pairs)
    words = list(words)
    words[i], words[j] = words[j], words[i]
    return "".join(words)


def shuffle_words(words: list[str], rng: random.Random) -> str:
    """The words in random order."""
    words = list(words)
    rng.shuffle(words)
    return "".join(words)


def edit_distance(a: str, b: str) -> int:
    """Levenshtein distance in characters."""
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    end = 0
    while end < min(len(a), len(b)) - start and a[-1 - end] == b[-1 - end]:
        end += 1
    a, b = a[start : len(a) - end], b[start : len(b) - end]
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (x != y))
    return row[-1]
