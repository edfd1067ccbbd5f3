"""Why the pairs of a run are judged as they are."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from gaixie.udfs.meaning.explain import explain
from gaixie.udfs.meaning.extract import Resources
from gaixie.udfs.text.segmenters import load_segmenter

Why = Callable[[str, str, dict[str, Any]], list[str]]
"""(source, paraphrase, row) -> what pulls the pair's low judgements down."""


def explainer(signature: str, segmenter: str = "jieba") -> Why:
    """What says why a pair is judged as it is, where the tier of a signature can."""
    if not re.search(r"\|tier:(core|full)\b", signature):
        return lambda source, paraphrase, row: []
    cut, resources = load_segmenter(segmenter), Resources.load()
    return lambda source, paraphrase, row: explain(source, paraphrase, cut, resources, row)
