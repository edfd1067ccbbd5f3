import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaixie.udfs.metrics.metric import Pairs
from gaixie.udfs.metrics.weem4pg import WEEM4PG, WordVectors, load_vectors, score_of

# Unit vectors whose cosines are plain: 高兴·快乐 = 0.8, 高兴·难过 = -0.6, 快乐·难过 = 0.
VECTORS = {"高兴": [0.8, -0.6], "快乐": [1.0, 0.0], "难过": [0.0, 1.0], "glad": [0.6, 0.8]}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Writes vectors in word2vec's text format, whose lengths must not matter."""
    path = tmp_path_factory.mktemp("vectors") / "vectors.txt"
    rows = [f"{word} {3 * x} {3 * y}" for word, (x, y) in VECTORS.items()]
    path.write_text("\n".join([f"{len(VECTORS)} 2", *rows]) + "\n", encoding="utf-8")
    return str(path)


def score(path, source, paraphrase, **settings):
    return WEEM4PG(path, **settings).sentence_scores(Pairs.of([source], [paraphrase]))[0]


# By hand


@pytest.mark.parametrize(
    ("source", "paraphrase", "expected"),
    [
        ("我很高兴", "我很快乐", (1 + 1 + 0.8) / 3 / math.sqrt(2)),  # N = 2: 我 很
        ("高兴", "快乐", 0.8),  # N = 0: the first factor is 1
        ("高兴。", "快乐!", 0.8),  # punctuation is not a word
        ("高兴的", "难过", 0.0),  # the nearest word is 的, which has no vector
        ("的", "的", 1.0),  # no vector, but equal words
        ("", "快乐", 0.0),
    ],
)
def test_by_hand(path, source, paraphrase, expected):
    assert score(path, source, paraphrase) == pytest.approx(expected)


def test_occurrences_count(path):
    # source twice, paraphrase twice: N = 2
    assert score(path, "glad glad", "Glad glad", language="en") == pytest.approx(1 / math.sqrt(2))
    assert score(path, "glad", "glad glad", language="en") == pytest.approx(1.0)


# Against the definition

TOKENS = ["a", "b", "c", "d", "零", "无"]  # 无 has no vector, 零 has a zero vector
SENTENCES = st.lists(st.sampled_from(TOKENS), max_size=7)
random = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
random /= np.linalg.norm(random, axis=1, keepdims=True)
random[4] = 0
RANDOM = WordVectors({word: k for k, word in enumerate(TOKENS[:5])}, random)


def by_definition(source, paraphrase, vectors):
    if not source or not paraphrase:
        return 0.0

    def cosine(word, other):
        if word == other:
            return 1.0
        if word in vectors.rows and other in vectors.rows:
            return float(vectors.matrix[vectors.rows[word]] @ vectors.matrix[vectors.rows[other]])
        return 0.0

    nearest = [max(cosine(word, other) for other in source) for word in paraphrase]
    shared = (Counter(source) & Counter(paraphrase)).total()
    return sum(nearest) / len(paraphrase) / math.sqrt(max(shared, 1))


@given(SENTENCES, SENTENCES)
def test_fast_equals_the_reference(source, paraphrase):
    found = score_of(source, paraphrase, RANDOM)
    assert found == pytest.approx(by_definition(source, paraphrase, RANDOM), abs=1e-6)
    assert -1 - 1e-6 <= found <= 1 + 1e-6


# Reading


@pytest.mark.parametrize("name", ["vectors.txt.gz", "v.bin", "vectors.bin"])
def test_every_format(tmp_path, path, name):
    from gensim.models import KeyedVectors

    vectors = KeyedVectors.load_word2vec_format(path)
    vectors.save_word2vec_format(str(tmp_path / name), binary=".bin" in name)
    index, matrix = load_vectors(tmp_path if name == "vectors.bin" else tmp_path / name)
    assert set(index) == set(VECTORS)
    for word, vector in VECTORS.items():
        assert matrix[index[word]].tolist() == pytest.approx(vector)


def test_no_vectors(tmp_path):
    path = tmp_path / "vectors.txt"
    for content in ("", "我们今天去公园。\n", "3 2\n高兴 1.0 0.0\n快乐 x y\n"):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(ValueError, match=r"^[^\n]*no word vectors could be read[^\n]*$"):
            load_vectors(path)
