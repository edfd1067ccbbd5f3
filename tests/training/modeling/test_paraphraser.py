"""Candidates from search and sampling together must be ranked by the metric."""

import math
from collections import Counter

import numpy as np
import pytest
import torch
from tiny_seq2seq import tiny_seq2seq

from gaixie.training.modeling.generation import load_generator
from gaixie.training.modeling.generator import Candidate, Decoding, Generator
from gaixie.training.modeling.paraphraser import Paraphraser, Ranked, Ranking
from gaixie.udfs.spscore import SPScore

PAIRS = [
    ("他2024年3月读了《三国》。", "《三国》他2024年3月读了。"),
    ("我们昨天花了300元", "昨天我们花了300元"),
    ("今天公园很好看", "公园今天很好看"),
]
SOURCES = [source for source, _ in PAIRS]


@pytest.fixture(scope="module")
def generator(tmp_path_factory) -> Generator:
    torch.set_num_threads(1)
    return load_generator(tiny_seq2seq(tmp_path_factory.mktemp("model"), PAIRS))


@pytest.fixture(scope="module")
def spscore() -> SPScore:
    return SPScore.load("paper")  # other tiers cannot tell such short sentences apart


def texts(rows) -> list[list[str]]:
    return [[candidate.text for candidate in row] for row in rows]


def test_draws_stand_behind_the_search(generator):
    searched = texts(generator.candidates(SOURCES, Decoding(beams=2, n_best=2)))
    both = texts(
        generator.candidates(
            SOURCES, Decoding(beams=2, draws=24, temperature=1.5, top_p=1, n_best=26)
        )
    )
    assert all(b[: len(a)] == a for a, b in zip(searched, both, strict=True))
    assert sum(map(len, both)) > sum(map(len, searched))
    assert all(len(set(row)) == len(row) for row in both)


def test_the_models_order_by_default(generator, spscore):
    decoding = Decoding(beams=4, n_best=2)
    ranked = Paraphraser(generator, decoding, Ranking(), spscore)(SOURCES)
    assert texts(ranked) == texts(generator.candidates(SOURCES, decoding))


def test_ranked_by_spscore_from_all_candidates(generator, spscore):
    """The best must come from all beams and draws, not only from the first n_best."""
    decoding = Decoding(beams=3, draws=6, temperature=1.5, top_p=1, n_best=2)
    found = Paraphraser(generator, decoding, Ranking("spscore"), spscore)(SOURCES)
    pool = Decoding(beams=3, draws=6, temperature=1.5, top_p=1, n_best=9)
    everything = Paraphraser(generator, pool, Ranking(), spscore)(SOURCES)
    for best, candidates in zip(found, everything, strict=True):
        kept = [one for one in candidates if not one.entities < 100]
        expected = sorted((one.judgements["spscore"] for one in kept), reverse=True)[:2]
        assert [one.judgements["spscore"] for one in best[: len(kept)]] == expected


def ranked(
    text: str, spscore: float, meaning: float = 1.0, entities: float = 100.0, reverse=0.0, own=-1.0
):
    return Ranked(text, own, reverse, entities, {"spscore": spscore, "meaning": meaning})


def test_what_stands_before_what(generator, spscore):
    candidates = [
        ranked("lost an entity", 0.9, entities=50.0),
        ranked("means something else", 0.8, meaning=0.2),
        ranked("fair", 0.3),
        ranked("no entities to lose", 0.5, entities=math.nan),
        ranked("not scored", math.nan, entities=math.nan, own=math.nan),
    ]
    order = Paraphraser(generator, None, Ranking("spscore", min_meaning=0.5), spscore)._key
    assert [one.text for one in sorted(candidates, key=order)] == [
        *("no entities to lose", "fair", "not scored", "means something else", "lost an entity")
    ]
    rows = [
        ranked("a", 0.5, reverse=-3.0, own=-2.0),
        ranked("b", 0.4, reverse=-1.0, own=-2.0),
        ranked("c", 0.3, reverse=-3.0, own=-1.0),
    ]
    for reverse, forward, first in ((0.04, 0, "a"), (0.06, 0, "b"), (0, 0.19, "a"), (0, 0.21, "c")):
        ranking = Ranking("spscore", reverse=reverse, forward=forward)
        key = Paraphraser(generator, None, ranking, spscore)._key
        assert min(rows, key=key).text == first


def test_reverse_probability_is_that_of_the_source(generator, spscore):
    """Reverse probability must equal the source's by teacher forcing, token by token, given the
    paraphrase with indexed entities."""
    ranking = Ranking("spscore", reverse=0.1)
    [[best]] = Paraphraser(generator, Decoding(), ranking, spscore)([SOURCES[1]])
    tokenizer, model = generator.tokenizer, generator.model
    batch = tokenizer(best.text, text_target=SOURCES[1])
    start = model.config.decoder_start_token_id
    with torch.no_grad():
        logits = model(
            input_ids=torch.tensor([batch["input_ids"]]),
            decoder_input_ids=torch.tensor([[start, *batch["labels"][:-1]]]),
        ).logits[0]
    expected = logits.log_softmax(1)[range(len(batch["labels"])), batch["labels"]].mean().item()
    assert best.reverse == pytest.approx(expected, abs=1e-5)
    both = generator.log_probabilities([SOURCES[0], best.text], [PAIRS[0][1], SOURCES[1]])
    np.testing.assert_allclose(both[1], expected, atol=1e-5)


def test_a_degree_is_a_token_behind_the_first(generator):
    plain, _ = generator._encode(SOURCES, None)
    asked, _ = generator._encode(SOURCES, 4)
    token = generator.tokenizer.get_vocab()["<degree_4>"]
    assert asked == [[row[0], token, *row[1:]] for row in plain]
    assert generator.tokenizer.decode(asked[2]) == SOURCES[2]
    with pytest.raises(ValueError, match="degree 6: the tokenizer's degrees are 1 to 5"):
        generator.tokenizer.degree_id(6)


def test_a_degree_that_the_model_has_not_learned_is_refused(generator, monkeypatch):
    """An unlearned degree must be refused: its token exists, but no training has touched it."""
    monkeypatch.setattr(generator.model.config, "degrees", False)
    unlearned = Generator(generator.model, generator.tokenizer)
    with pytest.raises(ValueError, match="degree 4: the model has learned 0 degrees"):
        unlearned.candidates(SOURCES, Decoding(degree=4))


def test_a_smaller_change_where_none_is_good(generator, spscore, monkeypatch):
    """If no candidate is good, smaller degrees must be tried: the first source keeps its date only
    at degree 1, and the third has none to lose."""
    asked = []

    def candidates(sources, decoding, progress=None):
        asked.append((decoding.degree, list(sources)))
        generator.counts["sentences"] += len(sources)
        text = SOURCES[0] if decoding.degree == 1 else "他读了《三国》。"
        return [[Candidate(text if source == SOURCES[0] else source, -1.0)] for source in sources]

    monkeypatch.setattr(generator, "candidates", candidates)
    monkeypatch.setattr(generator, "counts", Counter())
    decoding = Decoding(beams=2, n_best=2, degree=3)
    found = Paraphraser(generator, decoding, Ranking("spscore"), spscore)([SOURCES[0], SOURCES[2]])
    assert asked == [(3, [SOURCES[0], SOURCES[2]]), (2, SOURCES[:1]), (1, SOURCES[:1])]
    assert texts(found) == [[SOURCES[0], "他读了《三国》。"], [SOURCES[2]]]
    assert generator.counts == {"sentences": 2}
