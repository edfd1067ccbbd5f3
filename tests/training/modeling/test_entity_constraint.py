"""Paraphrases must have the entities of their source, whatever the model prefers."""

from collections import Counter

import pytest
import torch
from tiny_seq2seq import tiny_seq2seq

from gaixie.training.modeling.entity_constraint import EntityConstraint
from gaixie.training.modeling.generator import Generator
from gaixie.training.modeling.model import load_model
from gaixie.training.settings import Decoding

END, DATE, MONEY, TITLE, WORD = 2, 5, 6, 7, 8
"""A vocabulary of 10 tokens; 5 to 7 are indexed entities."""
NEVER = float("-inf")


def allowed(so_far: list[int], source: list[int], limit: int = 20) -> list[float]:
    scores = torch.log_softmax(torch.arange(10.0), 0).unsqueeze(0)
    scores[0, END] = -0.5
    constraint = EntityConstraint([source], range(5, 8), [END], limit)
    return constraint(torch.tensor([[0, *so_far]]), scores)[0].tolist()


def test_what_may_come_next():
    """Only tokens that keep the entities may come next; the source has a date twice and money
    once."""
    source = [DATE, WORD, MONEY, DATE]
    first = allowed([WORD], source)
    assert first[TITLE] == NEVER, "it is not in the source"
    assert first[END] == NEVER, "nothing is there yet"
    assert first[DATE] == first[MONEY] == -0.5, "the end's score: they are missing"
    assert first[WORD] > NEVER
    second = allowed([DATE, MONEY, WORD], source)
    assert second[END] == -0.5
    assert second[MONEY] == NEVER, "as often as in the source"
    assert NEVER < second[DATE] < -0.5, "a second time, as the model likes"


def test_the_last_tokens_are_for_what_is_missing():
    source = [DATE, MONEY]
    assert sum(score > NEVER for score in allowed([WORD, WORD], source, limit=5)) == 2
    assert sum(score > NEVER for score in allowed([WORD], source, limit=5)) > 2
    after_one = allowed([WORD, WORD, DATE], source, limit=5)
    assert [k for k, score in enumerate(after_one) if score > NEVER] == [MONEY]
    assert allowed([END], [DATE])[END] == -0.5, "a line that has ended is left alone"


@pytest.mark.parametrize("decoding", [Decoding(beams=3), Decoding(draws=8)])
def test_every_line_of_a_model_that_has_seen_no_entity(decoding, tmp_path):
    torch.set_num_threads(1)
    pairs = [("今天公园很好看", "公园今天很好看"), ("我们昨天看书", "昨天我们看书")]
    generator = Generator(*load_model(tiny_seq2seq(tmp_path, pairs)))
    entities = generator.tokenizer.codec.entity_ids
    sources = ["他2024年3月读了《三国》,花了300元和300元", "我们昨天花了300元", "今天公园很好看"]
    ids, _ = generator._encode(sources, "")
    lines = generator._write(ids, 20, decoding)
    each = decoding.draws or decoding.beams
    assert len(lines) == 3 * each
    for number, line in enumerate(lines):
        source = Counter(index for index in ids[number // each] if index in entities)
        written = Counter(index for index in line if index in entities)
        assert written <= source
        assert written.keys() == source.keys()
