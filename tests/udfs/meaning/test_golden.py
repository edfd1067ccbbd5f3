"""Columns must stay what plain Python made of their definitions, for 396 real and random pairs.

golden/meaning.parquet was made by tests/support/plain_surface.py, plain_vectors.py and
plain_language_model.py of commit 60dfc93, with the shipped tables. Each pair is given as words.
"""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from gaixie.udfs.features import extract_code_points
from gaixie.udfs.meaning import core_features
from gaixie.udfs.meaning.core_features import CORE_FEATURES, FAMILIES, Resources
from gaixie.udfs.text.code_points import from_strings, word_ends

GOLDEN = pq.read_table(Path(__file__).parents[1] / "golden/meaning.parquet")
BOUNDS = {
    "surface": {"rtol": 1e-6},
    "vectors": {"rtol": 0, "atol": 2e-3},
    "language_model": {"rtol": 1e-5, "atol": 1e-4},
}


def test_columns_stay_and_blocks_do_not_show(monkeypatch):
    sides = [GOLDEN[side].to_pylist() for side in ("source", "paraphrase")]
    texts = [from_strings(["".join(words) for words in side]) for side in sides]
    pairs = *texts, *map(word_ends, sides)
    found = core_features.extract_core(*pairs, Resources.load())
    columns = dict(zip(CORE_FEATURES, found.T, strict=True))
    for family, bounds in BOUNDS.items():
        for name in FAMILIES[family]:
            np.testing.assert_allclose(columns[name], GOLDEN[name], err_msg=name, **bounds)
    eight = extract_code_points(*pairs)
    np.testing.assert_array_equal(found[:, : eight.shape[1]], eight)
    monkeypatch.setattr(core_features, "BLOCK", 7)
    np.testing.assert_array_equal(core_features.extract_core(*pairs, Resources.load()), found)
