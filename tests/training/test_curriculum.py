"""Curriculum training by the users' commands: real processes on the CPU, tiny models.

Losses are float32 means of about 5 over some hundred tokens. Sums in another order (two processes,
two micro-batches, DeepSpeed's flat buffers) differ by a few 1e-6 per step, so TOLERANCE is 1e-4.
Runs that are killed are forks of this process, which saves the imports; `make demo-train`, which
tests/jobs/test_demo.py runs, starts the script with accelerate.
"""

import json
import multiprocessing
import os
import resource
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
import yaml
from accelerate.state import AcceleratorState, GradientState, PartialState
from safetensors.torch import load_file
from servers import PATIENCE, free_port
from shared import ROOT
from tiny_causal import tiny_causal
from tiny_run import MODEL, settings, write_run, write_settings, write_tokenizer
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

from gaixie.training import curriculum
from gaixie.training.loop.callbacks import StageControl
from gaixie.training.loop.stage import training_arguments
from gaixie.training.modeling.generator import Generator
from gaixie.training.modeling.model import load_model
from gaixie.training.modeling.tokenizer import EntityAlignedTokenizer
from gaixie.training.settings import Decoding, Settings, load_settings
from gaixie.udfs.text.entities import load_settings as load_entities

TOLERANCE = 1e-4
READABLE = {
    "curriculum": [[1], [2]],
    "controller": {"accuracy": 0.0, "patience": 2},
    "trainer": {"max_steps": 6, "eval_steps": 3, "save_steps": 3},
}
"""Settings of two stages, where text is scored from the first evaluation on."""
FIRST = READABLE | {"curriculum": [[1]]}
"""The first stage alone, which learns the same."""
DROPOUT = {"model": {"config": MODEL | {"dropout": 0.1}}}
DEEPSPEED = {
    "DS_ACCELERATOR": "cpu",
    "ACCELERATE_USE_DEEPSPEED": "true",
    "ACCELERATE_DEEPSPEED_CONFIG_FILE": str(ROOT / "conf/deepspeed/zero2.json"),
}
"""What accelerate launch --use_deepspeed sets."""


@dataclass(frozen=True)
class Bench:
    """The inputs of all runs."""

    folder: Path
    run: str
    tokenizer: str

    def config(self, name: str, **changes) -> str:
        """Writes a settings file for an output of that name. Returns its path."""
        values = settings(self.run, self.tokenizer, self.folder / name, **changes)
        return write_settings(self.folder / f"{name}.yaml", values)


@pytest.fixture(scope="module")
def bench(tmp_path_factory) -> Bench:
    folder = tmp_path_factory.mktemp("curriculum")
    return Bench(folder, write_run(folder), write_tokenizer(folder / "tokenizer"))


def call(*arguments: str) -> int:
    """Runs the command in this process, which saves the imports. Returns its exit code."""
    with pytest.MonkeyPatch.context() as patch:
        on_cpu = "ACCELERATE_USE_DEEPSPEED" not in os.environ  # which sees no accelerator there
        patch.setenv("ACCELERATE_USE_CPU", str(on_cpu).lower())
        torch.set_num_threads(1)  # as in the other processes, so sums are equal to the last bit
        for state in (AcceleratorState, GradientState, PartialState):
            state._reset_state()
        return curriculum.main([*arguments])


def lines(output: Path, name: str = "log.jsonl") -> list[dict]:
    path = output / name
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] * path.exists()


def losses(output: Path, stage: int | None = None) -> list[float]:
    return [line["loss"] for line in lines(output) if stage in (None, line["stage"])]


def places(output: Path) -> list[tuple]:
    return [(line["stage"], line["step"], line["learning_rate"]) for line in lines(output)]


def forks(
    config: str, place: tuple = (), then: Callable | None = None, ranks: int = 1, **environment: str
) -> list[int | None]:
    """Runs the command in processes that are forks of this one; returns their exit codes.

    then: what each does with its StageControl when it has logged a place (stage, step).
    """
    given = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    running = []
    for rank in range(ranks):
        own = given | {"RANK": str(rank), "LOCAL_RANK": str(rank)} | environment
        own = own if ranks > 1 or environment else {}
        arguments = config, own, place, then
        running.append(multiprocessing.get_context("fork").Process(target=_forked, args=arguments))
        running[-1].start()
    for one in running:
        one.join(3 * PATIENCE)
        one.kill()
        one.join()
    return [one.exitcode for one in running]


def _forked(config: str, environment: dict[str, str], place: tuple, then: Callable) -> None:
    os.setsid()
    os.environ |= environment
    if "DS_ACCELERATOR" in environment:
        import deepspeed.ops

        deepspeed.ops.__compatible_ops__ = {}  # else it compiles its shared memory for a minute
    log = StageControl.on_log

    def on_log(self, args, state, control, **more) -> None:
        log(self, args, state, control, **more)
        if (self.stage, state.global_step) == place:
            then(self)

    StageControl.on_log = on_log
    sys.exit(call("--config", config))


def kill(control: StageControl) -> None:
    control.pool.shutdown()  # a copy to the mirror is whole
    os.kill(os.getpid(), signal.SIGKILL)


def end(control: StageControl) -> None:
    os.killpg(0, signal.SIGTERM)


@pytest.fixture(scope="module")
def whole(bench) -> Path:
    """Returns the output of one process that was never stopped; read-only."""
    assert call("--config", bench.config("whole", **READABLE, **DROPOUT)) == 0
    return bench.folder / "whole"


@pytest.fixture(scope="module")
def plain(bench) -> Path:
    """Returns the output of one process without dropout; read-only."""
    assert call("--config", bench.config("plain", **READABLE)) == 0
    return bench.folder / "plain"


# A whole run


def test_what_a_run_of_two_stages_leaves(whole, bench, capsys):
    for stage in (1, 2):
        assert losses(whole, stage)[-1] < losses(whole, stage)[0]
    found = lines(whole, "history.jsonl")
    assert [line["stage"] for line in found] == sorted(line["stage"] for line in found)
    assert found[-1]["action"] == "end stage"
    assert [line["action"] for line in found].count("end stage") == 2
    assert all(line["signature"].startswith("SPScore-zh|v:") for line in found)
    assert {len(line["samples"]) for line in found if line["score"] is not None} == {3}
    saved = yaml.safe_load((whole / "settings.yaml").read_text("utf-8"))
    assert saved["settings"]["max_length"] == 64
    # The model that is left is the best of the last stage.
    model = AutoModelForSeq2SeqLM.from_pretrained(whole / "model")
    tokenizer = AutoTokenizer.from_pretrained(whole / "model")
    assert model.get_input_embeddings().num_embeddings == len(tokenizer)
    best = load_file(whole / "stage-2/model/model.safetensors")
    assert all(torch.equal(model.state_dict()[name], tensor) for name, tensor in best.items())
    assert "| 2 | 2 |" in (whole / "model/README.md").read_text("utf-8")
    assert not [*whole.glob("stage-*/checkpoint-*")]
    # A finished run is finished.
    file = whole / "model/model.safetensors"
    before = file.read_bytes(), file.stat().st_ino, (whole / "log.jsonl").read_bytes()
    assert call("--config", str(bench.folder / "whole.yaml")) == 0
    assert "already finished" in capsys.readouterr().out
    assert (file.read_bytes(), file.stat().st_ino, (whole / "log.jsonl").read_bytes()) == before


def test_micro_batches_change_nothing(plain, bench, capsys):
    config = bench.config("micro", **FIRST, batch={"pairs": 16, "micro_pairs": 3})
    assert call("--config", config, "--dry-run") == 0
    assert "stage 1" in capsys.readouterr().out
    assert not (bench.folder / "micro").exists()
    assert call("--config", config) == 0
    assert losses(bench.folder / "micro") == pytest.approx(losses(plain)[:6], abs=TOLERANCE)


def test_a_curriculum_of_other_stages(bench):
    """Stages together, and one alone with settings of its own, must be trained on their data."""
    changes = {"curriculum": [[1, 2], [3]], "stages": {2: {"max_steps": 1, "learning_rate": 0.1}}}
    assert call("--config", bench.config("other", trainer={"max_steps": 2}, **changes)) == 0
    assert [place[:2] for place in places(bench.folder / "other")] == [(1, 1), (1, 2), (2, 1)]


def test_a_causal_model_learns_by_lora(bench, tmp_path):
    """The base's weights must stay, and the model that is left must be whole, with the changes."""
    base = tiny_causal(tmp_path / "base", False)
    lora = {"lora": {"r": 4, "target_modules": "all-linear"}, "eight_bits": True}
    data = {"uri": bench.run, "validation": 0.1, "test": 0.05, "codes": "degree"}
    changes = {"tokenizer": None, "model": {"pretrained": base} | lora, "data": data}
    assert call("--config", bench.config("lora", **FIRST, **changes)) == 0
    output = bench.folder / "lora"
    assert losses(output)[-1] < losses(output)[0]
    adapter = load_file(output / "stage-1/model/adapter_model.safetensors")
    assert all("lora" in name for name in adapter)
    old = AutoModelForCausalLM.from_pretrained(base).state_dict()
    new = AutoModelForCausalLM.from_pretrained(output / "model").state_dict()
    changed = [name for name in new if not torch.equal(new[name], old[name])]
    assert changed
    assert all("proj" in name for name in changed)
    generator = Generator(*load_model(str(output / "model")))
    assert generator.is_causal
    generator.candidates(["仓库的货物"], Decoding(beams=1, code="4", max_new_tokens=4))


# Killed, stopped, resumed; other numbers of processes


@pytest.mark.long
def test_a_killed_run_ends_as_one_that_was_not(whole, bench, admin):
    """With dropout, to the last bit: losses, decisions, weights. It is killed before the first
    checkpoint of its second stage, and again behind it; then only its mirror is left."""
    output, mirror = bench.folder / "killed", f"s3://{admin.BUCKET}/curriculum"
    config = bench.config("killed", mirror=mirror, **READABLE, **DROPOUT)
    assert forks(config, (2, 2), kill) == [-signal.SIGKILL]
    assert forks(config, (2, 4), kill) == [-signal.SIGKILL]
    done = len(losses(output))
    assert done > len(losses(whole)) // 2
    assert places(output) == places(whole)[:done]
    assert losses(output) == losses(whole)[:done]
    decided = lines(whole, "history.jsonl")
    assert lines(output, "history.jsonl") == decided[:-1]
    assert "curriculum/stage-2/checkpoint-3/COMPLETE" in admin.keys("curriculum/")
    shutil.rmtree(output)
    assert call("--config", config) == 0
    assert places(output)[-3:] == places(whole)[-3:]
    assert losses(output)[-3:] == losses(whole)[-3:]
    assert lines(output, "history.jsonl")[-1] == decided[-1]
    ours, theirs = (load_file(at / "model/model.safetensors") for at in (output, whole))
    assert [name for name in theirs if not torch.equal(ours[name], theirs[name])] == []
    keys = {*admin.keys("curriculum/")}
    assert {"curriculum/model/model.safetensors", "curriculum/history.jsonl"} <= keys


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "ranks", "environment"), [("two", 2, {}), ("zero2", 1, DEEPSPEED)]
)
def test_killed_in_another_way_a_run_ends_as_in_one_process(plain, bench, name, ranks, environment):
    """Two processes, and DeepSpeed's ZeRO-2, must give the losses of one process without."""
    output, config = bench.folder / name, bench.config(name, **READABLE)
    assert forks(config, (2, 4), kill, ranks, **environment) == [-signal.SIGKILL] * ranks
    assert forks(config, ranks=ranks, **environment) == [0] * ranks
    assert places(output) == places(plain)
    assert losses(output) == pytest.approx(losses(plain), abs=TOLERANCE)


@pytest.mark.long
def test_sigterm_saves_and_the_same_command_continues(plain, bench, capfd):
    """A signal to the whole group also reaches the encoding workers."""
    output, changes = bench.folder / "stopped", FIRST | {}
    changes["trainer"] = READABLE["trainer"] | {"save_steps": 1_000, "dataloader_num_workers": 1}
    config = bench.config("stopped", **changes)
    capfd.readouterr()
    assert forks(config, (1, 2), end) == [143]
    assert "Traceback" not in capfd.readouterr().err
    assert [*output.glob("stage-*/checkpoint-*/COMPLETE")]
    assert call("--config", config) == 0
    assert places(output) == places(plain)[:6]
    assert losses(output) == pytest.approx(losses(plain)[:6], abs=TOLERANCE)


def test_a_full_disk_leaves_the_last_checkpoint(plain, bench, capsys):
    output, config = bench.folder / "full", bench.config("full", **FIRST)
    size = (plain / "model/model.safetensors").stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, before[1]))
    try:
        assert call("--config", config) in (1, 2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not [*output.glob("stage-1/checkpoint-*/COMPLETE")]
    assert call("--config", config) == 0
    assert losses(output) == losses(plain)[:6]
    capsys.readouterr()


# Bad input


def refused(capsys, *arguments: str) -> str:
    """Returns the only line of standard error of a command that must fail."""
    capsys.readouterr()
    assert call(*arguments) == 2
    [line] = [line for line in capsys.readouterr().err.splitlines() if "error" in line]
    assert line.startswith("curriculum: error: ")
    return line


@pytest.mark.parametrize(
    ("assignment", "named"),
    [
        *[("data.uri=nowhere", "nowhere/manifest.json"), ("tokenizer=nowhere", "no such folder")],
        *[("trainer.max_steps=-5", "trainer.max_steps"), ("trainer.eval_steps=0", "eval_steps")],
        *[("data.weights={robot: 2}", "'robot', it has"), ("trainer.learning_rate=a", "rate: ")],
        *[("batch.pairs=1024", "stage 1"), ("model.config.layers=2", "model.config")],
        *[("trainer.learning_rat=1", "learning_rat"), ("stages.4.mix=0.1", "stages")],
        *[("trainer.lr_scheduler_type=steep", "trainer"), ("model.lora={r: 4}", "lora")],
    ],
)
def test_bad_settings(bench, capsys, assignment, named):
    config = bench.config("bad")
    assert named in refused(capsys, "--config", config, "--dry-run", "--set", assignment)
    assert not (bench.folder / "bad").exists()


def test_a_loss_that_is_no_number(bench, capsys):
    config = bench.config("diverging", trainer={"learning_rate": 1e36, "warmup_steps": 0})
    line = refused(capsys, "--config", config)
    assert "stage 1, step" in line
    assert "the loss is nan" in line
    small = {"max_steps": 1, "learning_rate": 0.1}  # nothing is there that it would lose
    assert call("--config", bench.config("diverging", curriculum=[[1]], trainer=small)) == 0


def test_an_output_or_a_tokenizer_that_does_not_fit(whole, bench, capsys):
    config = str(bench.folder / "whole.yaml")
    for assignment, name in (("trainer.learning_rate=0.1", "stages.1"), ("seed=1", "s: seed;")):
        assert name in refused(capsys, "--config", config, "--set", assignment)
    assert call("--config", config, "--set", "trainer.save_steps=7") == 0
    other, entities = bench.folder / "other", load_entities(ROOT / "conf/entities.yaml")
    EntityAlignedTokenizer.from_words(["学校"], entities, indices=2).save_pretrained(other)
    config = bench.config("unfit", model={"pretrained": str(whole / "model")}, tokenizer=str(other))
    assert "do not belong together" in refused(capsys, "--config", config)


def test_the_settings_that_ship_are_the_defaults():
    shipped = load_settings(str(ROOT / "conf/curriculum.yaml"), [])
    given = {"data": {"uri": shipped.data.uri}, "output": "", "model": shipped.model}
    defaults = Settings.model_validate(given | {"tokenizer": ""})
    apart = {"tokenizer", "output", "trainer"}
    assert shipped.model_dump(exclude=apart) == defaults.model_dump(exclude=apart)
    assert shipped.arguments(1) == defaults.arguments(1)
    for path in ("conf/paraphraser.yaml", "examples/demo-train.yaml"):
        found = load_settings(str(ROOT / path), [])
        assert {*found.arguments(1)} >= {"max_steps", "eval_steps", "learning_rate"}
        training_arguments(found, 1)
