"""Words: one small interface, two segmenters behind it.

* ``jieba``: dictionary and hidden Markov model, the default at scale
  (``udfs/text/segmenters/jieba.py``).
* ``ltp:NAME_OR_FOLDER``: any LTP model, neural or legacy (``udfs/text/segmenters/ltp.py``).

The segmenter decides two of the eight features, so its name and version are part of the metric's
signature: scores under different segmenters do not compare.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gaixie.udfs.text.code_points import CodePoints, Words


class Segmenter(Protocol):
    """Cuts sentences into words. Words cover the sentence without gaps."""

    name: str
    """What stands in the signature: ``jieba``, ``ltp-legacy``, ``ltp-small``…"""
    version: str
    """Whatever decides the cuts: the back-end's version, or a digest of the model."""

    def cut(self, texts: Sequence[str]) -> list[list[str]]:
        """Words of each text; ``"".join(words) == text``."""
        ...

    def tag(self, texts: Sequence[str]) -> list[list[tuple[str, str]]]:
        """(word, part of speech) of each text: the words of ``cut``."""
        ...

    def word_ends(self, text: CodePoints) -> Words:
        """The same cuts for a column of code points."""
        ...


def load_segmenter(spec: str = "jieba") -> Segmenter:
    """The segmenter that a setting names: ``jieba`` or ``ltp:NAME_OR_FOLDER``.

    Raises ValueError for any other spec, and what the back-end raises where its model is missing.
    """
    if spec == "jieba":
        from gaixie.udfs.text.segmenters.jieba import JiebaSegmenter

        return JiebaSegmenter()
    if spec.startswith("ltp:") and len(spec) > len("ltp:"):
        from gaixie.udfs.text.segmenters.ltp import LtpSegmenter

        return LtpSegmenter(spec.removeprefix("ltp:"))
    raise ValueError(f"segmenter {spec!r}: expected 'jieba' or 'ltp:NAME_OR_FOLDER'")
