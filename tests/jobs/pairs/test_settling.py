"""Candidates that a model wrote must become pairs or be counted."""

import json

import pytest

from gaixie.jobs.pairs.back_translation import BackTranslation
from gaixie.jobs.pairs.method import Candidate
from gaixie.jobs.pairs.pieces import settle

A, B, C = (f"{word}从三楼的一间厨房开始蔓延。" for word in ("火势", "大火", "火灾"))


def settled(*written: Candidate, reads: str = "source", copies: int = 1) -> list[dict]:
    sources = [A, B] if reads == "foreign" else dict.fromkeys(item.source for item in written)
    same = {"foreign": "Fire.", "copies": copies}
    rows = [{"source": text, "group": text[:2], **same} for text in sources]
    limits = {"min_characters": 5, "max_characters": 30}
    method = BackTranslation(input="in", output="out", model="m", **limits)
    return settle(rows, reads, lambda _: written, method).to_pylist()


def test_a_pair_has_the_parameters_of_the_building_and_its_own():
    [pair] = settled(Candidate(None, A, B, {"pivot": "en"}))
    assert (pair["reason"], pair["source"], pair["paraphrase"]) == (None, A, B)
    assert (pair["group"], pair["dropped"]) == (A[:2], False)
    told = json.loads(pair["parameters"])
    assert (told["beams"], told["pivot"], told["min_characters"]) == (4, "en", 5)


def test_what_is_no_pair_whatever_the_method():
    reasons = {None: "null", "火。": "too_short", A + " ": "copied", A + "\ufffd": "undecodable"}
    for paraphrase, reason in reasons.items():
        [made] = settled(Candidate(None, A, paraphrase))
        assert (made["reason"], made["dropped"]) == (reason, False)


def test_a_sentence_is_in_a_pair_or_in_one_leftover():
    made = settled(
        Candidate("cut_off", A, None),
        Candidate(None, A, B),
        Candidate(None, A, B + " "),
        Candidate("cut_off", B, "火"),
        Candidate(None, B, B),
        Candidate(None, C, A),
    )
    found = {(item["source"], item["reason"], item["dropped"]) for item in made}
    expected = {(A, "cut_off", True), (A, None, False), (A, "repeated", True)}
    assert found == expected | {(B, "cut_off", False), (B, "copied", True), (C, None, False)}
    assert len(made) == 6


def test_copies_of_a_sentence_are_counted():
    made = settled(Candidate(None, A, B), copies=3)
    assert [item["reason"] for item in made] == ["repeated", "repeated", None]
    assert not any(item["dropped"] for item in made)


def test_several_sentences_of_one_foreign_sentence():
    made = settled(Candidate(None, "Fire.", C), reads="foreign")
    assert {(pair["source"], pair["paraphrase"]) for pair in made} == {(A, C), (B, C)}


def test_a_model_that_leaves_a_sentence_out():
    with pytest.raises(RuntimeError, match="wrote nothing for"):
        settled(reads="foreign")
