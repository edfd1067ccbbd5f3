"""Explains the judgements of the pairs of a run."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from gaixie.udfs.meaning.explain import explain
from gaixie.udfs.meaning.extract import Resources
from gaixie.udfs.text.segmenters import load_segmenter

Why = Callable[[str, str, dict[str, Any]], list[str]]
"""Maps (source, paraphrase, row) to the reasons for the pair's low judgements."""


def explainer(signature: str, segmenter: str = "jieba") -> Why:
    """Returns a function that explains judgements; for a tier that cannot, it gives no reasons."""
    if not re.search(r"\|tier:(core|full)\b", signature):
        return lambda source, paraphrase, row: []
    cut, resources = load_segmenter(segmenter), Resources.load()
    return lambda source, paraphrase, row: explain(source, paraphrase, cut, resources, row)
