"""All features of tier core together, and the metric's explanations in words."""

import numpy as np
import plain_facts
import plain_language_model
import plain_surface
import plain_vectors
from hypothesis import given, settings
from hypothesis import strategies as st

from gaixie.udfs.features import FEATURES, extract_code_points
from gaixie.udfs.meaning import extract
from gaixie.udfs.meaning.extract import CORE_FEATURES, FAMILIES, Resources, extract_core
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.text.code_points import from_strings
from gaixie.udfs.text.segmenters import load_segmenter

SEGMENTER = load_segmenter()
SENTENCES = st.lists(
    st.sampled_from(
        [*"天气很好不我们的,。了3三", "公园", "2019年", "3000元", "没有", "PM2.5", "《红楼梦》"]
    ),
    max_size=25,
).map("".join)


def columns_of(sources, paraphrases):
    a, b = from_strings(sources), from_strings(paraphrases)
    return a, b, SEGMENTER.word_ends(a), SEGMENTER.word_ends(b)


def test_columns_have_names_of_their_own():
    assert CORE_FEATURES[: len(FEATURES)] == FEATURES
    assert len({*CORE_FEATURES, *OUTPUTS}) == len(CORE_FEATURES) + len(OUTPUTS)
    assert sum(map(len, FAMILIES.values())) + len(FEATURES) == len(CORE_FEATURES)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(SENTENCES, SENTENCES), max_size=4))
def test_columns_are_what_their_definitions_say(pairs):
    sides = columns_of(*([pair[k] for pair in pairs] for k in (0, 1)))
    found = extract_core(*sides, Resources.load())
    assert found.dtype == np.float32
    assert found.shape == (len(pairs), len(CORE_FEATURES))
    np.testing.assert_array_equal(found[:, :8], extract_code_points(*sides))
    for row, (a, b) in zip(found, pairs, strict=True):
        words = SEGMENTER.cut([a, b])
        expected = [
            *plain_surface.reference(a, b, *words).values(),
            *plain_facts.reference(a, b, *words).values(),
            *plain_vectors.reference(*words, Resources.load().vectors).values(),
            *plain_language_model.reference(a, b, Resources.load().language_model).values(),
        ]
        np.testing.assert_allclose(row[8:], expected, rtol=1e-4, atol=1e-4)


def test_blocks_do_not_show(monkeypatch):
    pairs = [
        (f"他在{k}年去了北京的公园。", f"北京的公园他{k + k % 3}年去过了。") for k in range(50)
    ]
    sides = columns_of(*zip(*pairs, strict=True))
    whole = extract_core(*sides, Resources.load())
    monkeypatch.setattr(extract, "BLOCK", 7)
    np.testing.assert_array_equal(extract_core(*sides, Resources.load()), whole)


def test_tables_are_loaded_once_and_mapped():
    found = Resources.load()
    assert Resources.load() is found
    arrays = found.vectors.tables.vectors, found.language_model.tables.slots
    assert all(
        isinstance(array, np.memmap) or isinstance(array.base, np.memmap) for array in arrays
    )
    assert not any(array.flags.writeable for array in arrays)
    assert [len(digest) for digest in found.digests().values()] == [10, 10]
