"""Generation: entities come back, copies are dropped, batches change nothing."""

import math

import pytest
import torch
from tiny_causal import tiny_causal
from tiny_seq2seq import COPIED, PAIRS, POSITIONS, tiny_seq2seq
from transformers import AutoTokenizer

from gaixie.training.modeling.generator import Generator
from gaixie.training.modeling.model import load_model
from gaixie.training.modeling.trained_paraphraser import Ranked, TrainedParaphraser
from gaixie.training.settings import Decoding, Ranking
from gaixie.udfs.paraphrase.prompt import prompt

SOURCES, TARGETS = (list(side) for side in zip(*PAIRS, strict=True))
GREEDY = Decoding(beams=1)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    """Returns a model that knows PAIRS by heart; read-only."""
    return tiny_seq2seq(tmp_path_factory.mktemp("model"), PAIRS)


@pytest.fixture(scope="module")
def generator(folder) -> Generator:
    return Generator(*load_model(folder))


def test_what_it_learnt(generator):
    found = generator.candidates(SOURCES, GREEDY)
    assert found == [[target] if target != COPIED else [] for target in TARGETS]


def test_entities_it_never_saw_come_back(generator):
    """Unseen entities must come back from the source, where the model writes <date_1> and
    <title_1>."""
    found = generator.candidates(["他1998年12月读了《西游记》。"], Decoding())
    assert found[0][0] == "《西游记》他1998年12月读了。"


def test_sources_without_text(generator):
    sources = [None, "", " \t", "坏\ufffd的", SOURCES[2]]
    assert generator.candidates(sources, GREEDY) == [[], [], [], [], [TARGETS[2]]]
    assert generator.candidates([], GREEDY) == []
    assert generator.candidates([None], GREEDY) == [[]]


@pytest.mark.parametrize("kind", ["seq2seq", "causal"])
def test_batches_change_nothing(tmp_path, kind):
    """Batches must not change the output; tested with sources of many lengths and a random model,
    which writes up to its limits."""
    causal = kind == "causal"
    folder = tiny_causal(tmp_path, False) if causal else tiny_seq2seq(tmp_path)
    text = ["仓库的货物", "昨天夜里，全部运到了码头", "第12号"] if causal else SOURCES
    sources = ["".join(text[: n % len(text) + 1]) * (n % 2 + 1) for n in range(8)]
    runs = []
    for batch_size in (1, 8):
        one = Generator(*load_model(folder))
        decoding = Decoding(beams=3, batch_size=batch_size, max_new_tokens=12)
        runs.append(one.candidates(sources, decoding))
    assert runs[0] == runs[1]


def test_a_causal_model_reads_the_prompt(tmp_path):
    """What is written must be what the model's own generate() writes behind the prompt."""
    model, tokenizer = load_model(tiny_causal(tmp_path, False))
    model.config.degrees = True
    generator = Generator(model, tokenizer)
    asked = Decoding(beams=1, code="4", max_new_tokens=8)
    found = generator.candidates(["仓库的货物", "第1号"], asked)
    plain = AutoTokenizer.from_pretrained(tmp_path)
    for source, texts in zip(["仓库的货物", "第1号"], found, strict=True):
        ids = [plain.bos_token_id, *plain(prompt(source, "4"))["input_ids"]]
        written = model.generate(torch.tensor([ids]), max_new_tokens=8, do_sample=False)
        expected = plain.decode(written[0, len(ids) :], skip_special_tokens=True).strip()
        assert texts == ([expected] if expected else [])


def test_draws(generator):
    """A seed must repeat its draws, and another draw others; torch's own state stays."""
    drawn = Decoding(draws=5, temperature=3.0, seed=1)
    state = torch.get_rng_state()
    found = generator.candidates(SOURCES, drawn)
    assert torch.equal(torch.get_rng_state(), state)
    assert found == generator.candidates(SOURCES, drawn)
    assert found != generator.candidates(SOURCES, Decoding(draws=5, temperature=3.0, seed=2))
    assert all(len({*row}) == len(row) for row in found)
    greedy = generator.candidates(SOURCES, Decoding(draws=1, top_p=1e-6))
    assert greedy == generator.candidates(SOURCES, GREEDY)


def test_limits_of_length(tmp_path, generator, capsys):
    """A source beyond the model's positions must be cut with a word, and a paraphrase must end at
    its limit."""
    Generator(*load_model(tiny_seq2seq(tmp_path))).candidates(["看花" * POSITIONS, "看花"], GREEDY)
    assert "1 of 2 sources" in capsys.readouterr().err
    [[short]] = generator.candidates([SOURCES[2]], Decoding(beams=1, max_new_tokens=3))
    assert TARGETS[2].startswith(short)
    assert 0 < len(short) < len(TARGETS[2])


def test_a_code_that_was_not_learned(generator):
    with pytest.raises(ValueError, match="has learned no control codes"):
        generator.candidates(SOURCES, Decoding(code="4"))


# Ranking


def test_ranked_by_the_model_or_the_metric(folder, generator):
    """Ranking must keep the candidates; the metric puts the highest score first."""
    asked = SOURCES, Decoding(beams=4)
    settings = Ranking(rank_by="model", tier="paper"), Ranking(tier="paper")
    by_model, ranked = (TrainedParaphraser.load(folder, own)(*asked) for own in settings)
    assert [[one.text for one in row] for row in by_model] == generator.candidates(*asked)
    for before, after in zip(by_model, ranked, strict=True):
        assert sorted(one.text for one in before) == sorted(one.text for one in after)
        whole = [one.judgements["spscore"] for one in after if not one.entities < 100]
        assert whole == sorted(whole, reverse=True)


def test_what_stands_before_what(generator):
    order = [
        ("no entities to lose", math.nan, 0.5, 1.0),
        ("fair", 100.0, 0.3, 1.0),
        ("not scored", math.nan, math.nan, 1.0),
        ("means something else", 100.0, 0.8, 0.2),
        ("lost an entity", 50.0, 0.9, 1.0),
    ]
    candidates = [Ranked(text, kept, {"spscore": s, "meaning": m}) for text, kept, s, m in order]
    key = TrainedParaphraser(generator, Ranking(min_meaning=0.5, tier="paper"))._key
    assert sorted([*candidates[2:], *candidates[:2]], key=key) == candidates
