"""Gives what the scoring job needs of a pair: its quarantine reason, or its features."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from gaixie.udfs.defaults import MAX_CHARACTERS, MIN_CHARACTERS
from gaixie.udfs.spscore import SPScore
from gaixie.udfs.text.normalise import normalise_column
from gaixie.udfs.text.segmenters import Segmenter
from gaixie.udfs.text.validate import quarantine_reasons, take_rows


def validated_features(
    source: pa.Array,
    paraphrase: pa.Array,
    model: SPScore,
    segmenter: Segmenter,
    min_characters: int = MIN_CHARACTERS,
    max_characters: int = MAX_CHARACTERS,
    read_short: bool = False,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns (codes of quarantine_reasons, which pairs are read, the features of those).

    Shapes (rows,) uint8, (rows,) bool, (pairs read, columns of the model). read_short: also read
    pairs whose only fault is a short sentence; their code still says too_short.
    """
    a, flags_a = normalise_column(source)
    b, flags_b = normalise_column(paraphrase)
    codes = quarantine_reasons(a, flags_a, b, flags_b, min_characters, max_characters)
    read = codes == 0
    if read_short:
        others = quarantine_reasons(a, flags_a, b, flags_b, 1, max_characters)
        read = others == 0
        codes = np.where(read, codes, others)  # too_short is only for pairs that are read
    a, b = take_rows(a, read), take_rows(b, read)
    return codes, read, model.features(a, b, segmenter.word_ends(a), segmenter.word_ends(b))
