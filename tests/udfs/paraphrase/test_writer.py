"""The writer must draw what its model knows, and give the likelihood that transformers gives."""

import pytest
import torch
from tiny_writer import tiny_writer
from transformers import AutoModelForCausalLM, AutoTokenizer

from gaixie.udfs.paraphrase.prompt import END, prompt
from gaixie.udfs.paraphrase.writer import ModelWriter, _punctuated

SOURCE, OTHER = "会议原定周四举行，因为暴雨推迟到了下周。", "他昨天在图书馆看书。"
KNOWN = [
    (SOURCE, "4", "因为暴雨，原定周四举行的会议推迟到了下周。"),
    (SOURCE, "2", "会议原定星期四举行，因为暴雨推迟到了下周。"),
    (OTHER, "4", "昨天，他在图书馆看书。"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_writer(tmp_path_factory.mktemp("writer"), KNOWN)


@pytest.fixture(scope="module")
def writer(folder) -> ModelWriter:
    return ModelWriter.load(folder, precision="float32")


def test_it_writes_what_it_knows_by_the_code(writer: ModelWriter) -> None:
    for code in ("2", "4"):
        drawn = writer.draw([OTHER, SOURCE], code, draws=3, temperature=0.1)
        known = {source: text for source, own, text in KNOWN if own == code}
        assert drawn[1][0].text == known[SOURCE]
    assert drawn[0][0].text == known[OTHER]


def test_chinese_has_full_width_marks() -> None:
    assert _punctuated(" 好,他说:“行”,3:1吗?\n") == "好，他说：“行”，3:1吗？"


def test_a_seed_draws_the_same_again(folder) -> None:
    first, again, other = (
        ModelWriter.load(folder, seed=seed).draw([SOURCE], "4", draws=5, temperature=3.0)
        for seed in (1, 1, 2)
    )
    assert first == again != other
    texts = [draft.text for draft in first[0]]
    assert len({*texts}) == len(texts) > 1
    scores = [draft.likelihood for draft in first[0]]
    assert scores == sorted(scores, reverse=True)


def test_likelihoods_are_those_of_transformers(folder, writer: ModelWriter) -> None:
    model = AutoModelForCausalLM.from_pretrained(folder.parent / "whole").eval()
    tokenizer = AutoTokenizer.from_pretrained(folder.parent / "whole")
    pairs = [(prompt(SOURCE, "4"), KNOWN[0][2]), (prompt(OTHER), "他在看龘。"), (prompt(OTHER), "")]
    for (start, text), found in zip(pairs, writer.log_probabilities(pairs), strict=True):
        a, b = tokenizer(start)["input_ids"], tokenizer(text + END)["input_ids"]
        with torch.no_grad():
            scores = model(torch.tensor([a + b])).logits[0].log_softmax(-1)
        expected = [float(scores[len(a) - 1 + k, token]) for k, token in enumerate(b)]
        assert found == pytest.approx(expected, abs=0.05)  # its weights have eight bits
        assert len(found) == len(b)


def test_a_folder_without_a_model(tmp_path) -> None:
    with pytest.raises(ValueError, match="gaixie writer"):
        ModelWriter.load(tmp_path)
    (tmp_path / "model.bin").write_bytes(b"x")
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ValueError, match=tmp_path.name):
        ModelWriter.load(tmp_path)
    with pytest.raises(ValueError, match=tmp_path.name):
        ModelWriter.load(tmp_path, seed=-1)
