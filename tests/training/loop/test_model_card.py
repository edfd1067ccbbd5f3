"""The card of a model: what must be in it, and what must not."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tiny_run
from huggingface_hub import ModelCard
from manifests import run_manifest
from tiny_seq2seq import tiny_seq2seq

from gaixie.training import evaluate
from gaixie.training.card import main
from gaixie.training.loop.model_card import write_plain_card
from gaixie.training.settings import Settings

SOURCES = ["我们昨天在公园看花", "他在看书", "他2024年3月读了书", "今天公园很好看"]
HUMAN = ["昨天我们看花在公园", "书他在看", "书他2024年3月读了", "公园今天很好看"]
SIGNATURE = "SPScore-zh|v:0.2|tier:core|seg:jieba|model:lightgbm-0123456789ab"


def history(stage: int, evaluation: int, best: int | None, reason: str = "") -> str:
    """Returns a line of history.jsonl; an evaluation without a best one has no score."""
    own = {"stage": stage, "evaluation": evaluation, "best_evaluation": best, "reason": reason}
    own |= {"step": 10 * evaluation, "accuracy": 0.5 + evaluation / 100, "signature": SIGNATURE}
    own |= {"score": best and evaluation / 100}
    own |= {"samples": [["他在看书", "书他在看"], ["今天好", ""]]}
    return json.dumps(own) + "\n"


@pytest.fixture(scope="module")
def output(tmp_path_factory) -> Path:
    """Returns the output of a training, in a folder whose name must not leak."""
    folder = tmp_path_factory.mktemp("secret")
    run = folder / "runs/monday"
    run.mkdir(parents=True)
    (run / "manifest.json").write_text(run_manifest(run_id="monday").to_json())
    output = folder / "trained"
    tiny_seq2seq(output / "model", [*zip(SOURCES[:3], HUMAN, strict=False)])
    changes = {"mirror": str(folder / "mirror"), "model": {"pretrained": str(folder / "base")}}
    values = tiny_run.settings(str(run), str(folder / "tokenizer"), output, **changes)
    lines = [history(1, 1, 1), history(1, 2, 1, "the stage is fitted")]
    lines += [history(3, 1, None, "of evaluation 1")]
    (output / "history.jsonl").write_text("".join(lines))
    write_plain_card(output / "model", Settings.model_validate(values))
    return output


def test_a_card_without_figures(output):
    text = (output / "model/README.md").read_text("utf-8")
    card = ModelCard(text)
    assert card.data.language == ["zh"]
    assert card.data.library_name == "transformers"
    assert "| 1 | 1 | 20 | 0.510 | 0.010 | the stage is fitted |" in text
    assert "| 3 | 3 | 10 | 0.510 | – | of evaluation 1 |" in text
    assert "| 今天好 | (nothing) |" in text
    assert "run monday" in text
    facts = (output / "model/training.json").read_text("utf-8")
    assert json.loads(facts)["settings"]["max_length"] == 64
    assert "secret" not in text + facts


def test_a_card_with_figures(output, tmp_path):
    table = tmp_path / "pairs.parquet"
    pq.write_table(pa.table({"source": SOURCES, "human": HUMAN}), table)
    model, evaluation = str(output / "model"), str(tmp_path / "evaluation")
    line = [str(table), "--model", f"ours={model}", "--metrics", "self-bleu"]
    assert evaluate.main([*line, "--output", evaluation]) == 0
    assert main([model, "--evaluation", evaluation, "--license", "mit"]) == 0
    text = (output / "model/README.md").read_text("utf-8")
    assert ModelCard(text).data.license == "mit"
    result = json.loads(Path(evaluation, "evaluation.json").read_text("utf-8"))
    [ours] = [one for one in result["systems"] if one["name"] == "ours"]
    assert all(f"| {name} " in text for name in ("SPScore-zh", "Self-BLEU", "copies %"))
    assert f"| {ours['measures']['spscore']['mean']:.3f} |" in text
    assert "secret" not in text


def test_a_mistake(tmp_path, refused):
    refused(main, [tmp_path], str(tmp_path))
