"""Cuts text into words: one small interface with two segmenters.

* ``jieba``: dictionary and hidden Markov model, the default at scale
  (``udfs/text/segmenters/jieba.py``).
* ``ltp:NAME_OR_FOLDER``: any model of LTP (``udfs/text/segmenters/ltp.py``).

The segmenter decides two of the eight features, so its name and version are part of the metric's
signature: scores under different segmenters do not compare.
"""

from collections.abc import Sequence
from typing import Protocol

from gaixie.udfs.text.code_points import CodePoints, Words


class Segmenter(Protocol):
    """Cuts sentences into words, which cover the sentence without gaps."""

    name: str
    """The name in the signature: ``jieba``, ``ltp-legacy``, ``ltp-small``…"""
    version: str
    """The back-end's version or a digest of the model: whatever decides the cuts."""

    def cut(self, texts: Sequence[str]) -> list[list[str]]:
        """Returns the words of each text; ``"".join(words) == text``."""
        ...

    def tag(self, texts: Sequence[str]) -> list[list[tuple[str, str]]]:
        """Returns (word, part of speech) for each text; the words are those of ``cut``."""
        ...

    def word_ends(self, text: CodePoints) -> Words:
        """Makes the same cuts in a column of code points."""
        ...


def load_segmenter(spec: str = "jieba") -> Segmenter:
    """Loads the segmenter that a setting names: ``jieba`` or ``ltp:NAME_OR_FOLDER``.

    Raises ValueError for any other spec, and what the back-end raises if its model is missing.
    """
    if spec == "jieba":
        from gaixie.udfs.text.segmenters.jieba import JiebaSegmenter

        return JiebaSegmenter()
    if spec.startswith("ltp:") and len(spec) > len("ltp:"):
        from gaixie.udfs.text.segmenters.ltp import LtpSegmenter

        return LtpSegmenter(spec.removeprefix("ltp:"))
    raise ValueError(f"segmenter {spec!r}: expected 'jieba' or 'ltp:NAME_OR_FOLDER'")
