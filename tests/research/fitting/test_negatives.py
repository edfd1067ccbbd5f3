"""Negatives: each kind must do what its line says, and equal arguments give equal negatives."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from gaixie.research.fitting.negatives import KINDS, make_negatives, one_edit
from gaixie.udfs.text.segmenters import load_segmenter

SOURCE = "王小明昨天在北京买了3本书，他不喜欢其中一本，所以今天去书店退货。"
PARAPHRASE = "昨天，王小明从北京的书店购入3本书，有一本他不中意，今天便拿回去退了。"
OTHER = "这家酒店的早餐很丰盛，房间也很安静。"
TEXTS = st.text(alphabet="我他不买卖书店天北京了的3,。，！ A", max_size=40)


def tag(text):
    return load_segmenter().tag([text])[0]


def negatives(**given):
    return make_negatives(SOURCE, PARAPHRASE, OTHER, tag, **given)


def test_what_each_corruption_does():
    made = negatives()
    assert set(made) == set(KINDS)
    assert made.pop("copy") == SOURCE
    assert not {SOURCE, PARAPHRASE} & {*made.values()}
    half = len(SOURCE) // 2
    assert made["first_half"] + made["last_half"] == SOURCE
    assert made["repeated"] == SOURCE + SOURCE
    assert made["spliced"].startswith(SOURCE[:half])
    assert sorted(made["words_shuffled"]) == sorted(made["roles_swapped"]) == sorted(SOURCE)
    assert Levenshtein.distance(made["edit"], SOURCE) == 1
    assert Levenshtein.distance(made["two_edits"], SOURCE) <= 2
    assert made["negation_dropped"] == SOURCE.replace("不喜欢", "喜欢")
    assert len(made["negation_inserted"]) - len(SOURCE) in (1, 2)
    assert "3" not in made["number_changed"]
    assert "北京" not in made["name_changed"] or "王小明" not in made["name_changed"]
    assert len(made["clause_dropped"]) < len(SOURCE) < len(made["clause_added"])
    changed = sum(a != b for a, b in zip(SOURCE, made["characters_replaced"], strict=True))
    han = sum("\u4e00" <= character <= "\u9fff" for character in SOURCE)
    assert 0.15 * han < changed <= round(0.3 * han)
    # Kinds called own_… corrupt the paraphrase.
    assert made["own_first_half"] == PARAPHRASE[: len(PARAPHRASE) // 2]
    assert sorted(made["own_words_shuffled"]) == sorted(PARAPHRASE)


def test_the_same_arguments_give_the_same_whatever_else_is_made():
    assert negatives() == negatives()
    assert negatives(kinds=["edit"])["edit"] == negatives()["edit"]
    assert any(negatives(seed=seed)["edit"] != negatives()["edit"] for seed in range(1, 5))


@given(TEXTS, TEXTS, TEXTS, st.integers(0, 5))
@settings(max_examples=30, deadline=None)
def test_any_texts_are_taken(source, paraphrase, other, seed):
    for kind, text in make_negatives(source, paraphrase, other, tag, seed).items():
        assert text
        assert kind == "copy" or text not in (source, paraphrase)


@given(TEXTS, st.sampled_from(["substitution", "insertion", "deletion"]), st.integers())
@settings(max_examples=100, deadline=None)
def test_an_edit_is_one_edit(text, operation, seed):
    assert Levenshtein.distance(text, one_edit(text, random.Random(seed), operation)) == 1
