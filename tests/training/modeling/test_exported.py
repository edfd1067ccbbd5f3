"""An exported paraphraser must write what the model writes."""

import pytest
import torch
from tiny_models import tiny_bart
from tiny_seq2seq import tiny_seq2seq

from gaixie.training.export import main
from gaixie.training.generate import main as generate
from gaixie.training.modeling.generation import load_generator
from gaixie.training.modeling.generator import Decoding

PAIRS = [
    ("他2024年3月读了《三国》。", "《三国》他2024年3月读了。"),
    ("我们昨天花了300元", "昨天我们花了300元"),
    ("今天公园很好看", "公园今天很好看"),
    ("他在看花", "花他在看"),
]
SOURCES, TARGETS = (list(side) for side in zip(*PAIRS, strict=True))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    torch.set_num_threads(1)
    return tiny_seq2seq(tmp_path_factory.mktemp("model"), PAIRS)


@pytest.fixture(scope="module", params=["float32", "int8"])
def exported(folder, tmp_path_factory, request) -> str:
    output = tmp_path_factory.mktemp("exported") / request.param
    assert main([folder, "--output", str(output), "--quantization", request.param]) == 0
    return str(output)


@pytest.mark.parametrize("beams", [1, 4])
def test_writes_and_scores_what_the_model_does(folder, exported, beams):
    """The best candidate must be the model's; with eight-bit weights, so small a model may choose
    another word in a search."""
    exact = "float32" in exported
    decoding = Decoding(beams=beams, n_best=beams)
    expected = load_generator(folder).candidates(SOURCES, decoding)
    found = load_generator(exported).candidates(SOURCES, decoding)
    if exact or beams == 1:
        assert [row[0].text for row in found] == TARGETS
        for row, other in zip(found, expected, strict=True):
            close = 1e-4 if exact else 0.1
            assert row[0].log_probability == pytest.approx(other[0].log_probability, abs=close)


def test_log_probabilities_of_any_pairs(folder, exported):
    pairs = SOURCES, [*TARGETS[1:], TARGETS[0]]
    expected = load_generator(folder).log_probabilities(*pairs)
    close = 1e-3 if "float32" in exported else 0.5
    assert load_generator(exported).log_probabilities(*pairs) == pytest.approx(expected, abs=close)


def test_limits_and_draws(exported):
    generator = load_generator(exported)
    [[short]] = generator.candidates(SOURCES[:1], Decoding(max_new_tokens=3))
    assert len(short.text) < len(TARGETS[0])
    drawing = Decoding(draws=24, temperature=1.5, top_p=1, n_best=28, seed=3)
    rows = generator.candidates(SOURCES, drawing)
    assert max(map(len, rows)) > 4
    assert all(len({one.text for one in row}) == len(row) for row in rows)


def test_as_a_model_of_the_other_commands(exported, tmp_path, capsys):
    (tmp_path / "in.txt").write_text("\n".join([*SOURCES, ""]) + "\n", "utf-8")
    assert generate([exported, str(tmp_path / "in.txt"), "--beams", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.split("\t")[3] for line in lines] == [*TARGETS, ""]


def test_only_a_bart_with_our_tokenizer(tmp_path, capsys):
    tiny_bart(tmp_path / "other")
    assert main([str(tmp_path / "other"), "--output", str(tmp_path / "o")]) == 2
    assert "expected a BART with Gaixie's tokenizer" in capsys.readouterr().err
    assert not (tmp_path / "o").exists()
