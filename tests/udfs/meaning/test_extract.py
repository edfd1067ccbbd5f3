"""All features of tier core together."""

import numpy as np

from gaixie.udfs.features import extract_code_points
from gaixie.udfs.meaning import extract, language_model, vectors
from gaixie.udfs.meaning.extract import Resources, extract_core
from gaixie.udfs.text.code_points import from_strings
from gaixie.udfs.text.segmenters import load_segmenter

SEGMENTER = load_segmenter()


def columns_of(sources, paraphrases):
    a, b = from_strings(sources), from_strings(paraphrases)
    return a, b, SEGMENTER.word_ends(a), SEGMENTER.word_ends(b)


def test_blocks_do_not_show(monkeypatch):
    pairs = [
        (f"他在{k}年去了北京的公园。", f"北京的公园他{k + k % 3}年去过了。") for k in range(50)
    ]
    sides = columns_of(*zip(*pairs, strict=True))
    whole = extract_core(*sides, Resources.load())
    tables = Resources.load()
    families = [
        extract_code_points(*sides),
        extract.count(*sides),
        vectors.features(*sides, tables.vectors),
        language_model.features(*sides[:2], tables.language_model),
    ]
    np.testing.assert_array_equal(whole, np.hstack(families))
    monkeypatch.setattr(extract, "BLOCK", 7)
    np.testing.assert_array_equal(extract_core(*sides, Resources.load()), whole)
