import math
from pathlib import Path

import plain_metrics
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaixie.udfs.metrics.metric import Pairs
from gaixie.udfs.metrics.sari import SARI, score_of, statistics

DATA = Path(__file__).resolve().parents[4] / "shared" / "data" / "mcts"
TEXT = st.text("我你他好𠮷 a", max_size=8)

# The example of the authors' first script.
SOURCE = "About 95 species are currently accepted."
REFERENCES = (
    "About 95 species are currently known.",
    "About 95 species are now accepted.",
    "95 species are now accepted.",
)


def score(source, paraphrase, *references, deletion="precision", **settings):
    """By Xu et al.'s definition, unless told otherwise."""
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


def test_counts_are_weighted_by_references():
    # Source a, references a and b, paraphrase a; R = 2, orders above 1 are empty.
    # add: nothing of nothing and {b}: 0. keep: min(2, 2) = 2 done, min(2, 1) = 1 right, 1 in both:
    # P ½, R 1, F 2/3. delete: nothing done: 0.
    assert score("a", "a", "a", "b") == pytest.approx(100 * (2 / 3) / 4 / 3)


@pytest.mark.parametrize(
    ("paraphrase", "first_script", "precision", "f1"),
    [
        ("About 95 you now get in.", 26.83, 26.9536, 31.3502),
        ("About 95 species are now agreed.", 58.89, 61.7097, 63.2374),
        ("About 95 species are currently agreed.", 50.71, 50.8868, 46.7293),
    ],
)
def test_example_of_the_authors(paraphrase, first_script, precision, f1):
    """The first script's figures, which took means of ratios, lie beside the corrected ones."""
    found = score(SOURCE, paraphrase, *REFERENCES, tokenize="13a")
    assert found == pytest.approx(precision, abs=1e-4)
    assert abs(found - first_script) < 3
    with_f1 = score(SOURCE, paraphrase, *REFERENCES, tokenize="13a", deletion="f1")
    assert with_f1 == pytest.approx(f1, abs=1e-4)


def test_first_of_the_examples_by_hand():
    # Tokens: about 95 species are currently accepted . | about 95 you now get in . ; R = 3.
    # References have: about 2, 95 3, species 3, are 3, currently 1, known 1, now 2, accepted 2, . 3.
    # n = 1  add: {now} of {you now get in} and {known now}: P 1/4, R 1/2, F 1/3
    #        keep: done about 3, 95 3, . 3 = 9; right 2+3+3+3+1+2+3 = 17; both 2+3+3 = 8:
    #              P 8/9, R 8/17, F 2·8/(9+17) = 8/13
    #        delete: done species, are, currently, accepted, 3 each = 12; right about 1, currently 2,
    #              accepted 1; both 2 + 1 = 3: P 1/4
    # n = 2  add: none. keep: done "about 95" 3; right about-95 2, 95-species 3, species-are 3,
    #              are-currently 1, accepted-. 2 = 11; both 2: F 2·2/(3+11) = 2/7
    #        delete: done 95-species, species-are, are-currently, currently-accepted, accepted-. = 15;
    #              right about-95 1, are-currently 2, currently-accepted 3, accepted-. 1; both 6: 6/15
    # n = 3  add, keep: none. delete: done all five = 15; in the references about-95-species 2,
    #              95-species-are 3, species-are-currently 1: right 1+0+2+3+3 = 9 : 9/15
    # n = 4  delete: done all four = 12; in the references about-95-species-are 2,
    #              95-species-are-currently 1: right 1+2+3+3 = 9: 9/12
    add, keep = 1 / 3 / 4, (8 / 13 + 2 / 7) / 4
    delete = (1 / 4 + 6 / 15 + 9 / 15 + 9 / 12) / 4
    found = score(SOURCE, "About 95 you now get in.", *REFERENCES, tokenize="13a")
    assert found == pytest.approx(100 * (add + keep + delete) / 3)


def test_deletions_count_by_f1_unless_told_otherwise():
    # Source a b c, paraphrase a, reference a b. n = 1: keep {a} of {a} and {a b}: P 1, R ½, F 2/3;
    # delete {c} of {b c} and {c}: P ½, R 1, F 2/3. n = 2: delete {bc} of {ab bc} and {bc}: the same;
    # keep nothing of nothing and {ab}: 0. n = 3: delete {abc}: 1.
    pairs = Pairs.of(["abc"], ["a"], ["ab"])
    keep, f1, precision = 2 / 3, 2 / 3 + 2 / 3 + 1, 1 / 2 + 1 / 2 + 1
    assert SARI().sentence_scores(pairs)[0] == pytest.approx(100 * (keep + f1) / 3 / 4)
    found = SARI(deletion="precision").sentence_scores(pairs)[0]
    assert found == pytest.approx(100 * (keep + precision) / 3 / 4)


def test_identity_is_a_third():
    """0 / 0 is 0: nothing is to be added or deleted."""
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


def test_nulls():
    pairs = Pairs.of(
        ["我", None, "我", "我"], ["我", "我", None, "我"], ["我"] * 3 + [None], [None] * 4
    )
    scores = SARI().sentence_scores(pairs)
    assert scores.tolist() == pytest.approx([100 / 12, *[math.nan] * 3], nan_ok=True)
    assert SARI().corpus_score(pairs) == pytest.approx(100 / 12)
    empty = Pairs.of([], [], [])
    assert len(SARI().sentence_scores(empty)) == 0
    assert math.isnan(SARI().corpus_score(empty))
    with pytest.raises(ValueError, match="sari needs a reference"):
        SARI().sentence_scores(Pairs.of(["我"], ["我"]))


@pytest.mark.parametrize("settings", [{"tokenize": "zh"}, {"deletion": "recall"}])
def test_wrong_settings(settings):
    with pytest.raises(ValueError, match="expected one of"):
        SARI(**settings)


def test_signature():
    assert SARI().signature().startswith("SARI|case:lc|tok:char|del:f1|v:")
    assert "tok:zh-word-jieba-rjieba-" in SARI("zh-word").signature()


# Against the definition


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
        expected = plain_metrics.sari(source, paraphrase, given_references, deletion)
        assert value == pytest.approx(expected)
        assert 0 <= value <= 100


@given(st.lists(st.tuples(TEXT, TEXT, TEXT), min_size=1, max_size=4))
def test_corpus_sums_its_sentences(rows):
    pairs = Pairs.of(*map(list, zip(*rows, strict=True)))
    sums = sum(statistics(*[[list(text.replace(" ", ""))] for text in row])[0] for row in rows)
    assert SARI().corpus_score(pairs) == pytest.approx(float(score_of(sums)))


@pytest.mark.skipif(not DATA.is_dir(), reason=f"needs the shared corpora in {DATA}")
def test_mcts():
    """On words: docs/papers.md has these figures beside those that MCTS prints of its test part."""
    names = ["orig", *[f"simp.{k}" for k in range(5)]]
    source, *people = [
        (DATA / f"mcts.dev.{name}").read_text("utf-8").rstrip("\n").split("\n") for name in names
    ]
    metric = SARI("zh-word")
    assert metric.corpus_score(Pairs.of(source, source, *people)) == pytest.approx(22.49, abs=0.005)
    scores = [
        metric.corpus_score(Pairs.of(source, one, *[p for p in people if p is not one]))
        for one in people
    ]
    assert sum(scores) / 5 == pytest.approx(47.29, abs=0.005)
