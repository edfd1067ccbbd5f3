"""Static vectors: values by hand."""

import numpy as np
import pytest

from gaixie.udfs.meaning.vectors import NAMES, VectorTable, features, write_table
from gaixie.udfs.text.code_points import from_strings, word_ends

WORDS = ["医生", "大夫", "病人", "患者", "治疗", "今天", "天", "病", "Apple", "三"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Writes vectors: 医生 and 大夫 have a cosine of 0.8, 病人 and 患者 0.6, all others 0."""
    # Vectors use many dimensions, because a table's value is at most half a vector's length.
    axes, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(64, 64)))
    rows = axes[: len(WORDS)].copy()
    rows[1] = 0.8 * axes[0] + 0.6 * axes[12]
    rows[3] = 0.6 * axes[2] + 0.8 * axes[13]
    weights = np.array([1, 1, 1, 1, 0.5, 0.25, 0.25, 1, 1, 1, 0.9])
    folder = tmp_path_factory.mktemp("vectors")
    write_table(folder, WORDS, rows, weights, licence="none")
    return VectorTable.load(folder)


def columns(pairs, table):
    """Returns the features of pairs given as words."""
    sides = [*zip(*pairs, strict=True)]
    texts = [from_strings(["".join(words) for words in side]) for side in sides]
    return features(*texts, *map(word_ends, sides), table)


def test_golden(table):
    row = columns([(["医生", "治疗", "病人"], ["大夫", "治疗", "患者"])], table)[0]
    found = dict(zip(NAMES, row.tolist(), strict=True))
    # Weights 1, 0.5, 1; best cosines 0.8, 1 (equal), 0.6: (0.8 + 0.5 + 0.6) / 2.5
    expected = {"source_kept": 0.76, "source_kept_plain": 0.8, "source_same": 0.2}
    expected |= {"source_most": 0.4, "source_second": 0.2, "source_gone": 0}
    expected |= {"words_a": 3, "words_b": 3, "inverted": 0}
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize(
    ("source", "paraphrase", "name", "expected"),
    [
        ("医生 治疗", "治疗 医生", "inverted", 1),
        ("APPLE", "apple", "source_same", 1),
        ("天病", "病", "source_kept", 0.5**0.5),  # a word without a row is its characters
        ("。", "医生", "source_kept", float("nan")),
    ],
)
def test_a_column(table, source, paraphrase, name, expected):
    found = columns([(source.split(), paraphrase.split())], table)[0][NAMES.index(name)]
    assert found == pytest.approx(expected, abs=0.01, nan_ok=True)


def test_the_shipped_table_knows_synonyms():
    shipped = VectorTable.load()
    (row,) = columns([(["购买", "汽车"], ["买", "轿车"])], shipped)
    (other,) = columns([(["购买", "汽车"], ["哲学", "天空"])], shipped)
    place = NAMES.index("source_kept")
    assert row[place] > 0.6 > other[place]


def test_words_without_a_partner_are_losses(table):
    """Words without a partner must count as lost or new, by weight: here 医生 and 三, while 病人 has
    a partner with a cosine above 0.5."""
    words = ["医生", "，", "治疗", "病人"], ["三", "治疗", "患者"]
    texts = [from_strings(["".join(side)]) for side in words]
    ends = [word_ends([side]) for side in words]
    lost, new = (np.zeros(len(text.values), np.float32) for text in texts)
    rows = features(*texts, *ends, table, (lost, new))
    np.testing.assert_array_equal(rows, features(*texts, *ends, table))
    assert lost.tolist() == pytest.approx([1, *[0] * 6], abs=0.01)
    assert new.tolist() == pytest.approx([1, *[0] * 4], abs=0.01)
