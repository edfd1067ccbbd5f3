"""Terms to keep must become tokens of the sentence, and the search must write them."""

import pytest
from tiny_seq2seq import ENTITIES, tiny_seq2seq

from gaixie.training.modeling.generation import load_generator
from gaixie.training.modeling.generator import Decoding
from gaixie.training.modeling.kept_terms import TermFinder, keeping
from gaixie.udfs.text.entities import EntityFinder, load_settings

PAIRS = [("我们昨天看好看的花", "他读了书"), ("他在公园看书", "我们读书")]


@pytest.fixture(scope="module")
def generator(tmp_path_factory):
    """Returns a generator that has learnt to lose the terms it must keep below."""
    return load_generator(tiny_seq2seq(tmp_path_factory.mktemp("model"), PAIRS), "cpu")


def found(text: str, *terms: str) -> list[tuple[str, str]]:
    finder = TermFinder(EntityFinder(load_settings(ENTITIES)), terms)
    return [(own.kind, text[own.start : own.end]) for own in finder.find(text)]


def lost(terms: list[str], source: str, paraphrase: str) -> bool:
    return any(paraphrase.count(term) < source.count(term) for term in terms)


def test_terms_beside_entities():
    text = "贸易司在2024年3月买了《贸易司》,贸易司长看了。"
    assert found(text) == [("date", "2024年3月"), ("title", "《贸易司》")]
    assert found(text, "贸易司", "贸易司长") == [
        ("word", "贸易司"),
        ("date", "2024年3月"),
        ("title", "《贸易司》"),
        ("word", "贸易司长"),
    ]
    assert found(text, "在2024") == [("word", "在2024"), ("title", "《贸易司》")]
    assert found(text, "ＡＢ", "") == found(text)
    assert found("买AB吗", "ＡＢ") == [("latin", "AB")]  # a term inside an entity is kept with it


def test_the_search_writes_every_term(generator):
    """The search must write every term, and the generator must be unchanged afterwards."""
    sources = [source for source, _ in PAIRS]
    before = generator.candidates(sources, Decoding(beams=3, n_best=3))
    terms = ["昨天看", "公园", "不在"]
    assert [candidates[0].text for candidates in before] == [lossy for _, lossy in PAIRS]
    assert all(lost(terms, *pair) for pair in PAIRS)
    with keeping(generator.tokenizer, terms):
        kept = generator.candidates(sources, Decoding(beams=3, draws=4, n_best=7, seed=2))
    for source, candidates in zip(sources, kept, strict=True):
        assert candidates
        assert not any(lost(terms, source, candidate.text) for candidate in candidates)
    assert generator.candidates(sources, Decoding(beams=3, n_best=3)) == before
