"""Restores full-width punctuation, which the tokenizer's normalisation (NFKC) removes."""

import re

HAN = r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
CHINESE = rf"{HAN}“”‘’《》「」『』〈〉【】。、—"
MARKS = {mark: chr(ord(mark) + 0xFEE0) for mark in "!(),:;?"}
ELLIPSIS = {"......": "……", "...": "…"}

BESIDE = re.compile(
    rf"(?<=[{CHINESE}])[!(),:;?]+|[!(),:;?]+(?=[{CHINESE}])|(?<=[A-Za-z0-9%])[!,;?]+$"
)
"""Marks next to Chinese text; at the end of a sentence also behind a number or a Latin word."""
HALF_WIDTH = re.compile(rf"(?<=[{HAN}])[!(),:;?]|[!(),:;?](?=[{HAN}])")
FULL_WIDTH = re.compile(f"[{''.join(MARKS.values())}]")


def restore(text: str, source: str) -> str:
    """Gives a normalised text Chinese punctuation again, unless its source has none.

    Marks between digits and Latin letters do not change: 3:1, (COVID-19), 1,200.
    """
    if HALF_WIDTH.search(source) and not FULL_WIDTH.search(source):
        return text
    text = BESIDE.sub(lambda match: "".join(MARKS[mark] for mark in match[0]), text)
    if "…" in source or "..." not in source:
        for ascii_dots, dots in ELLIPSIS.items():
            text = text.replace(ascii_dots, dots)
    return text
