from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaixie.udfs.metrics.metric import Pairs
from gaixie.udfs.metrics.sari import SARI

TEXT = st.text("我你他好𠮷 a", max_size=8)

# The example of the authors' first script.
SOURCE = "About 95 species are currently accepted."
REFERENCES = (
    "About 95 species are currently known.",
    "About 95 species are now accepted.",
    "95 species are now accepted.",
)


def score(source, paraphrase, *references, deletion="precision", **settings):
    """Returns SARI, by Xu et al.'s definition unless told otherwise."""
    settings["deletion"] = deletion
    columns = [[text] for text in (source, paraphrase, *references)]
    return SARI(**settings).sentence_scores(Pairs.of(*columns))[0]


# By hand


def test_small_case_by_hand():
    # Source a b, paraphrase a c, reference a c d; R = 1.
    # n = 1: add {c} of {c} and {c, d}: P 1, R ½, F 2/3; keep {a} of {a} and {a}: F 1;
    #        delete {b} of {b} and {b}: P 1.
    # n = 2: add {ac} of {ac} and {ac, cd}: F 2/3; keep nothing: 0; delete {ab}: P 1.
    # n = 3: add nothing of nothing and {acd}: 0; keep 0; delete 0. n = 4: 0.
    # (2/3 + 2/3)/4 = 1/3; 1/4; (1 + 1)/4 = 1/2: 100 · (1/3 + 1/4 + 1/2)/3 = 36.11
    assert score("ab", "ac", "acd") == pytest.approx(100 * (1 / 3 + 1 / 4 + 1 / 2) / 3)


@pytest.mark.parametrize(
    ("paraphrase", "first_script", "precision", "f1"),
    [
        ("About 95 you now get in.", 26.83, 26.9536, 31.3502),
        ("About 95 species are now agreed.", 58.89, 61.7097, 63.2374),
        ("About 95 species are currently agreed.", 50.71, 50.8868, 46.7293),
    ],
)
def test_example_of_the_authors(paraphrase, first_script, precision, f1):
    """Scores must equal the corrected script's, and be within 3 of the first script's, which took
    means of ratios."""
    found = score(SOURCE, paraphrase, *REFERENCES, tokenize="13a")
    assert found == pytest.approx(precision, abs=1e-4)
    assert abs(found - first_script) < 3
    with_f1 = score(SOURCE, paraphrase, *REFERENCES, tokenize="13a", deletion="f1")
    assert with_f1 == pytest.approx(f1, abs=1e-4)


def test_identity_is_a_third():
    """A copy must score a third: adding and deleting nothing is 0 / 0, which counts as 0."""
    assert score("我们今天去公园", "我们今天去公园", "我们今天去公园") == pytest.approx(100 / 3)


def test_edges():
    assert score("", "", "") == 0
    assert score("我", "", "我") == 0
    assert score("𠮷", "𠮷", "𠮷") == pytest.approx(100 / 12)
    assert score("ABC", "abc", "Abc") == score("abc", "abc", "abc")


def test_words():
    # 我/很/高兴 | 我/很/快乐: n = 1: add {快乐} 1, keep {我 很} 1, delete {高兴} 1;
    # n = 2: add {很快乐} 1, keep {我很} 1, delete {很高兴} 1; n = 3: add 1, keep 0, delete 1.
    found = score("我很高兴", "我很快乐", "我很快乐", tokenize="zh-word")
    assert found == pytest.approx(100 * (3 / 4 + 2 / 4 + 3 / 4) / 3)


# Against the definition


def by_definition(source, paraphrase, references, deletion):
    def grams(tokens, n, times=1):
        found = Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))
        return Counter({gram: times * count for gram, count in found.items()})

    def score_of_sides(both, done, right, kind="f1"):
        precision, recall = both / done if done else 0.0, both / right if right else 0.0
        f1 = 2 * precision * recall / (precision + recall) if both else 0.0
        return precision if kind == "precision" else f1

    total = 0.0
    for n in (1, 2, 3, 4):
        o, p = grams(source, n, len(references)), grams(paraphrase, n, len(references))
        r = sum((grams(reference, n) for reference in references), Counter())
        new, wanted = p.keys() - o.keys(), r.keys() - o.keys()
        total += score_of_sides(len(new & wanted), len(new), len(wanted))
        total += score_of_sides((o & p & r).total(), (o & p).total(), (o & r).total())
        both, done, right = (o - p) & (o - r), o - p, o - r
        total += score_of_sides(both.total(), done.total(), right.total(), deletion)
    return 100 * total / 3 / 4


@given(
    st.lists(st.tuples(TEXT, TEXT, TEXT, st.none() | TEXT), min_size=1, max_size=4),
    st.sampled_from(["precision", "f1"]),
)
def test_fast_equals_the_reference(rows, deletion):
    columns = [list(column) for column in zip(*rows, strict=True)]
    found = SARI(deletion=deletion).sentence_scores(Pairs.of(*columns))
    for row, value in zip(rows, found, strict=True):
        source, paraphrase, *references = [
            None if text is None else list(text.replace(" ", "")) for text in row
        ]
        given_references = [reference for reference in references if reference is not None]
        expected = by_definition(source, paraphrase, given_references, deletion)
        assert value == pytest.approx(expected)
        assert 0 <= value <= 100
