"""Columns must stay what plain Python made of their definitions, for 396 real and random pairs.

golden/meaning.parquet was made by tests/support/plain_surface.py, plain_vectors.py and
plain_language_model.py of commit 60dfc93, with the shipped tables. Each pair is given as words.
"""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from gaixie.udfs.meaning import extract, language_model, surface, vectors
from gaixie.udfs.meaning.extract import Resources
from gaixie.udfs.text.code_points import from_strings, word_ends

GOLDEN = pq.read_table(Path(__file__).parents[1] / "golden/meaning.parquet")
SIDES = [GOLDEN[side].to_pylist() for side in ("source", "paraphrase")]


@pytest.fixture(scope="module")
def pairs():
    texts = [from_strings(["".join(words) for words in side]) for side in SIDES]
    return *texts, *map(word_ends, SIDES)


def expected(names):
    return np.column_stack([GOLDEN[name] for name in names])


def test_surface(pairs):
    found = extract.count(*pairs)[:, : len(surface.NAMES)]
    np.testing.assert_allclose(found, expected(surface.NAMES), rtol=1e-6)


def test_vectors(pairs):
    found = vectors.features(*pairs, Resources.load().vectors)
    names = [f"vectors_{name}" for name in vectors.NAMES]
    np.testing.assert_allclose(found, expected(names), atol=2e-3)


def test_language_model(pairs):
    found = language_model.features(*pairs[:2], Resources.load().language_model)
    names = [f"lm_{name}" for name in language_model.NAMES]
    np.testing.assert_allclose(found, expected(names), rtol=1e-5, atol=1e-4)
