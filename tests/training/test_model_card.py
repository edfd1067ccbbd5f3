"""The card of a model and the folder to upload: what must be in them, and what must not."""

import getpass
import json
import re
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tiny_run
import yaml
from huggingface_hub import ModelCard
from manifests import release_manifest, run_manifest
from tiny_models import tiny_t5
from tiny_seq2seq import tiny_seq2seq
from transformers import AutoModelForSeq2SeqLM

from gaixie.training import evaluate
from gaixie.training.cards.card import write_plain_card
from gaixie.training.cards.facts import FILE, Data, Training, of_run, read_training, write_training
from gaixie.training.model_card import main
from gaixie.training.settings import Settings
from gaixie.udfs.storage import storage

ROOT = Path(__file__).parents[2]
SOURCES = ["我们昨天在公园看花", "他在看书", "他2024年3月读了书", "今天公园很好看"]
HUMAN = ["昨天我们看花在公园", "书他在看", "书他2024年3月读了", "公园今天很好看"]
SIGNATURE = "SPScore-zh|v:0.2|tier:core|seg:jieba|model:lightgbm-0123456789ab"


def history(stage: int, evaluation: int, step: int, **changes) -> dict:
    line = {
        "action": "save best",
        "reason": f"of evaluation {evaluation}",
        "stage": stage,
        "evaluation": evaluation,
        "step": step,
        "seconds": 60.0 * step,
        "accuracy": 0.5 + evaluation / 100,
        "score": evaluation / 100,
        "best": evaluation / 100,
        "best_evaluation": evaluation,
        "improved": True,
        "signature": SIGNATURE,
        "samples": [["他在看书", "书他在看"], ["今天|好", ""]],
    }
    return line | changes


@pytest.fixture(scope="module")
def output(tmp_path_factory) -> Path:
    """Returns the output of a training, in a folder whose name must not leak; read-only."""
    folder = tmp_path_factory.mktemp("secret")
    run = folder / "runs/monday"
    run.mkdir(parents=True)
    stages = {"parallel": {0: 9, 1: 240, 3: 1_200}, "human": {1: 7}}
    (run / "manifest.json").write_text(run_manifest(run_id="monday", stages=stages).to_json())
    output = folder / "trained"
    tiny_seq2seq(output / "model", list(zip(SOURCES[:3], HUMAN, strict=False)))
    values = tiny_run.settings(str(run), str(folder / "tokenizer"), output) | {
        "mirror": str(folder / "mirror"),
        "model": {"pretrained": str(folder / "warm")},
        "denoising": {"sentences": {str(folder / "plain.parquet"): "text"}},
        "stages": {"3": {"min_meaning": 0.75}},
    }
    values["data"] |= {"min_meaning": 0.6, "weights": {"human": 3.0}, "max_partners": 2}
    settings = Settings.model_validate(values)
    (output / "settings.yaml").write_text(yaml.safe_dump(settings.model_dump(mode="json")))
    lines = [
        history(0, 1, 10, score=0.51),
        history(1, 2, 20),
        history(1, 3, 30, improved=False, best_evaluation=2, reason="stage 1 is fitted"),
        history(3, 4, 40, score=None, best=None, best_evaluation=None),
    ]
    log = [{"step": 5 * k, "stage": k // 3, "pairs": 16 * k} for k in range(1, 12)]
    for name, rows in (("history.jsonl", lines), ("log.jsonl", log)):
        (output / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    (output / "checkpoints/step-00000040").mkdir(parents=True)
    (output / "model/optimizer.bin").write_bytes(b"state")
    (folder / "warm").mkdir()
    write_training(folder / "warm", Training(base_model="BAAI/bge-small-zh-v1.5"))
    return output


@pytest.fixture(scope="module")
def evaluation(output, tmp_path_factory) -> Path:
    """Returns evaluate.py's output for that model; read-only."""
    folder = tmp_path_factory.mktemp("measured")
    pq.write_table(pa.table({"source": SOURCES, "human": HUMAN}), folder / "held-out.parquet")
    line = [str(folder / "held-out.parquet"), "--system", "human", "--metrics", "self-bleu"]
    model = ["--model", f"mine={output / 'model'}", "--output", str(folder / "out")]
    assert evaluate.main([*line, *model]) == 0
    return folder / "out"


def test_the_facts(output):
    found = of_run(output)
    assert found.data.name == "run monday"
    assert found.data.manifest_sha256 == storage.sha256(
        str(output.parent / "runs/monday/manifest.json")
    )
    assert found.data.pairs == {
        0: {"parallel": 9},
        1: {"parallel": 240, "human": 7},
        3: {"parallel": 1_200},
    }
    rows = [(s.number, s.steps, s.pairs, s.evaluations, s.score, s.best_step) for s in found.stages]
    assert rows == [(0, 10, 32, 1, None, 10), (1, 20, 80, 2, 0.02, 20), (3, 10, 176, 1, None, None)]
    assert [stage.data_stages for stage in found.stages] == [[], [1], [3]]
    assert [stage.min_meaning for stage in found.stages] == [None, 0.6, 0.75]
    assert found.stages[1].reason == "stage 1 is fitted"
    assert found.base_model == "BAAI/bge-small-zh-v1.5"
    assert found.start is None  # nothing was trained there
    assert found.seconds == 2_400
    assert found.settings["denoising"]["sentences"] == {"plain.parquet": "text"}


def test_the_folder(output, evaluation, tmp_path, capsys):
    """The folder must have model, tokenizer, card and settings, nothing else, and nothing about
    this machine."""
    folder = tmp_path / "upload"
    line = [str(output / "model"), "--evaluation", str(evaluation), "--folder", str(folder)]
    assert main(line) == 0
    assert capsys.readouterr().out == f"{folder / 'README.md'}\n"
    assert {path.name for path in folder.iterdir()} == {
        *("README.md", FILE, "config.json", "generation_config.json", "model.safetensors"),
        *("entities.json", "tokenizer_config.json", "vocabulary.txt"),
    }
    places = [output.parent, evaluation.parent, tmp_path, ROOT, Path.home()]
    known = [*map(str, places), f"/{getpass.getuser()}/"]
    for path in folder.iterdir():
        assert path.stat().st_mode & 0o044 == 0o044
        content = path.read_bytes()
        for name in known:
            assert name.encode() not in content, (path.name, name)
        assert b"secret" not in content
    text = (folder / "README.md").read_text("utf-8")
    weights = AutoModelForSeq2SeqLM.from_pretrained(folder).num_parameters()
    assert f"{weights:,} weights" in text
    again = tmp_path / "again"
    assert main([str(folder), "--folder", str(again)]) == 0  # the folder is enough by itself
    assert read_training(again) == read_training(folder)
    capsys.readouterr()
    assert main(line) == 2
    assert "exists and is not empty" in capsys.readouterr().err
    assert main([*line, "--overwrite"]) == 0


def test_the_head(output, evaluation, tmp_path):
    given = ["--license", "Our Own", "--dataset", "me/pairs", "--title", "Small: one"]
    line = [str(output / "model"), "--evaluation", str(evaluation), *given]
    assert main([*line, "--folder", str(tmp_path / "out")]) == 0
    data = ModelCard.load(tmp_path / "out/README.md").data
    assert (data.language, data.library_name) == (["zh"], "transformers")
    assert (data.license, data["license_name"]) == ("other", "our-own")
    assert (data.base_model, data.datasets) == ("BAAI/bge-small-zh-v1.5", ["me/pairs"])
    names = ["spscore", "self-bleu", "copies", "entities", "length-ratio"]
    assert data.metrics == names
    result = json.loads((evaluation / "evaluation.json").read_text())
    own = next(system for system in result["systems"] if system["name"] == "mine")
    values = {found.metric_type: found.metric_value for found in data.eval_results}
    assert values == {n: round(own["measures"][n]["mean"], 4) for n in names}
    assert {found.dataset_name for found in data.eval_results} == {"held-out.parquet"}


def test_figures_and_examples(output, evaluation, tmp_path):
    line = [str(output / "model"), "--evaluation", str(evaluation)]
    assert main([*line, "--folder", str(tmp_path / "out")]) == 0
    text = (tmp_path / "out/README.md").read_text("utf-8")
    result = json.loads((evaluation / "evaluation.json").read_text())
    own, human = (s["measures"] for s in (result["systems"][2], result["systems"][1]))
    score = own["spscore"]
    cell = f"{score['mean']:.3f} ({score['low']:.3f} to {score['high']:.3f})"
    assert f"| SPScore-zh ↑ | {cell} |" in text
    table = pq.read_table(evaluation / "scores.parquet").to_pylist()
    rows = sorted((r for r in table if r["system"] == "mine"), key=lambda r: r["spscore"])
    _, examples = text.split("## Examples")
    best, worst = examples.split("| Lowest |")
    for row, part in ((rows[-1], best), (rows[0], worst)):
        assert f"| {row['spscore']:.3f} | {row['source']} | {row['paraphrase']} |" in part
    assert "the 2 highest and the 2 lowest" in text
    if own["spscore"]["mean"] < human["spscore"]["mean"]:
        assert "- Worse than `human` by SPScore-zh" in text
    assert f"- {own['copies']['mean']:.1f} % of its paraphrases are copies" in text
    for measure in result["measures"]:
        assert f"- {measure['title']}: `{measure['signature']}`" in text
    assert "| 0 | masked sentences | – |" in text
    assert "| 3 | stage 3 | meaning 0.75 |" in text
    assert "| below the cut | 9 | 0 |" in text


def test_a_card_without_figures(output, tmp_path):
    shutil.copytree(output, tmp_path / "trained")
    assert main([str(tmp_path / "trained/model")]) == 0  # in the model's own folder
    text = (tmp_path / "trained/model/README.md").read_text("utf-8")
    assert "## Figures\n\nNone yet." in text
    assert "| 今天\\|好 | (nothing) |" in text
    assert "Not evaluated" in text
    assert "No licence was chosen" in text
    assert "{" not in re.sub(r"```.*?```", "", text, flags=re.S)
    assert "\n\n\n" not in text


@pytest.mark.parametrize("kind", ["ours", "any"])
def test_the_code_of_the_card_runs(output, tmp_path, kind, capsys):
    model = output / "model"
    if kind == "any":
        model = Path(tiny_t5(tmp_path / "any"))
        write_training(model, Training())
    assert main([str(model), "--folder", str(tmp_path / "out")]) == 0
    text = (tmp_path / "out/README.md").read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    assert len(blocks) == 2
    for block in blocks:
        code = block.replace("FOLDER_OR_REPOSITORY", str(tmp_path / "out"))
        exec(compile(code, "README.md", "exec"), {})


def test_a_release_states_its_licence_and_splits(output, tmp_path):
    shutil.copytree(output, tmp_path / "trained")
    release = tmp_path / "releases/1.0"
    release.mkdir(parents=True)
    split = {"stages": [1], "split": {"train": 0.9, "test": 0.1}, "seed": 1, "shards_mb": 1}
    manifest = release_manifest(
        counts={"train": {1: {"llm": 90}}, "test": {1: {"llm": 10}}},
        settings=split | {"shards": None, "keep_columns": []},
    )
    (release / "manifest.json").write_text(manifest.to_json())
    path = tmp_path / "trained/settings.yaml"
    path.write_text(path.read_text().replace(str(output.parent / "runs/monday"), str(release)))
    assert main([str(tmp_path / "trained/model")]) == 0
    text = (tmp_path / "trained/model/README.md").read_text("utf-8")
    for part in ("Release 1.0 of gaixie-1.0", "its data has MIT", "own splits", "| stage 1 | 90 |"):
        assert part in text


def test_data_that_is_gone(output, tmp_path, capsys):
    shutil.copytree(output, tmp_path / "trained")
    path = tmp_path / "trained/settings.yaml"
    path.write_text(path.read_text().replace("runs/monday", "runs/tuesday"))
    assert main([str(tmp_path / "trained/model"), "--folder", str(tmp_path / "out")]) == 0
    assert "card: states only the name of the data" in capsys.readouterr().err
    assert "## Data\n\nTuesday.\n" in (tmp_path / "out/README.md").read_text("utf-8")


def test_a_training_does_not_end_for_its_card(output, tmp_path, capsys):
    shutil.copytree(output, tmp_path / "trained")
    (tmp_path / "trained/settings.yaml").unlink()
    write_plain_card(tmp_path / "trained/model", tmp_path / "trained")
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("card: not written: ")


MISTAKES = {
    "{tmp}/bare": f"bare: has no {FILE}, and is not in an output of training/curriculum.py",
    "{tmp}/odd": f"odd/{FILE}: not written by a training",
    "{tmp}/whole --evaluation {tmp}/odd": "evaluation.json: not an evaluation by training/evaluate",
    "{tmp}/whole --evaluation {tmp}/other": "no system is this model, ",
    "{tmp}/light --folder {tmp}/new": "light: has no weights",
    "{tmp}/whole --folder {tmp}/odd --overwrite": "odd: has no README.md",
}


@pytest.mark.parametrize(("line", "message"), MISTAKES.items())
def test_bad_input(tmp_path, refused, line, message):
    for name in ("bare", "odd", "light", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text('{"model_type": "bart", "vocab_size": 1}')
    tiny_seq2seq(tmp_path / "whole")
    for name in ("whole", "light"):
        write_training(tmp_path / name, Training())
    (tmp_path / "odd" / FILE).write_text('{"stages": 1}')
    (tmp_path / "odd/evaluation.json").write_text("[]")
    systems = [{"name": "mt", "made_by": "column mt"}, {"name": "x", "made_by": "model m@01234567"}]
    (tmp_path / "other/evaluation.json").write_text(json.dumps({"systems": systems}))
    error = refused(main, line.format(tmp=tmp_path).split(), message)
    assert error.startswith("model_card: error: ")
    assert not (tmp_path / "new").exists()


def test_a_path_in_a_file_is_refused(tmp_path, capsys):
    tiny_seq2seq(tmp_path / "model")
    training = Training(data=Data(name=f"{tmp_path}/run"))
    write_training(tmp_path / "model", training)
    line = [str(tmp_path / "model"), "--folder", str(tmp_path / "out")]
    config = json.loads((tmp_path / "model/config.json").read_text())
    config["_name_or_path"] = str(tmp_path)
    (tmp_path / "model/config.json").write_text(json.dumps(config))
    assert main(line) == 2
    assert f"names {tmp_path}" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    write_training(tmp_path / "model", Training())
    assert main(line) == 0
    assert "_name_or_path" not in json.loads((tmp_path / "out/config.json").read_text())
