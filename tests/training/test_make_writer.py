"""An adapter and its base must become the folder that gaixie paraphrase reads."""

import copy
from pathlib import Path

import pytest
import torch
from tiny_causal import tiny_adapter

from gaixie.training import make_writer
from gaixie.training.modeling.trimming import trim
from gaixie.udfs.paraphrase.prompt import END, prompt
from gaixie.udfs.paraphrase.writer import ModelWriter

SENTENCES = ["今天天气很好，我们去公园看花。", "他昨天在图书馆看书。"]


@pytest.fixture
def adapter(tmp_path: Path, monkeypatch) -> tuple[Path, torch.nn.Module, object]:
    """Returns the folder of an adapter, and the merged model with its tokenizer."""
    tuned, tokenizer = tiny_adapter(tmp_path, SENTENCES, monkeypatch)
    model = tuned.merge_and_unload().eval()
    _, trimmed = trim(copy.deepcopy(model), tokenizer, SENTENCES * 9, 4)
    assert len(trimmed) < len(tokenizer)
    trimmed.save_pretrained(tmp_path / "adapter")
    return tmp_path / "adapter", model, tokenizer


def test_the_writer_has_the_adapters_changes(adapter, tmp_path, capsys) -> None:
    folder, model, tokenizer = adapter
    line = ["--adapter", str(folder), "--output", str(tmp_path / "made/writer")]
    line += ["--parts", str(tmp_path)]
    assert make_writer.main(line) == 0
    assert "made/writer" in capsys.readouterr().out
    writer = ModelWriter.load(tmp_path / "made/writer", "float32")
    start = prompt(SENTENCES[0], "4")
    # Of its own tokens alone: the base also gives some probability to those that were left out.
    [found] = writer.log_probabilities([(start, SENTENCES[1])])
    ids, ends = tokenizer(start)["input_ids"], tokenizer(SENTENCES[1] + END)["input_ids"]
    kept = sorted({*tokenizer.get_vocab()} & {*writer.tokenizer.get_vocab()})
    with torch.no_grad():
        logits = model(torch.tensor([ids + ends])).logits[0]
    rows = torch.tensor([tokenizer.get_vocab()[token] for token in kept])
    totals = logits[:, rows].logsumexp(-1)
    expected = [float(logits[k, token] - totals[k]) for k, token in enumerate(ends, len(ids) - 1)]
    assert found == pytest.approx(expected, abs=0.1)  # its weights have eight bits
    assert [*(tmp_path / "made").iterdir()] == [tmp_path / "made/writer"]
    assert make_writer.main(line) == 2
    assert "is there already" in capsys.readouterr().err


def test_a_folder_that_is_no_adapter(tmp_path, capsys) -> None:
    assert make_writer.main(["--adapter", str(tmp_path), "--output", str(tmp_path / "x")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not (tmp_path / "x").exists()
