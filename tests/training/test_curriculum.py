"""Curriculum training by the users' commands: real processes on the CPU, tiny models.

Losses are float32 means of about 5 over some hundred tokens. Sums in another order (two ranks, two
micro-batches, DeepSpeed's flat buffers) differ by a few 1e-6 per step, so TOLERANCE is 1e-4.
"""

import io
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest
import tiny_hub
import torch
import yaml
from accelerate.state import AcceleratorState, GradientState, PartialState
from safetensors.torch import load_file
from servers import PATIENCE, free_port, wait_for
from tiny_models import tiny_bart, tiny_t5
from tiny_run import MODEL, settings, write_run, write_settings, write_tokenizer
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from gaixie.training import curriculum
from gaixie.training.data.corpus import Corpus
from gaixie.training.data.stage_data import StageStream
from gaixie.training.data.stage_loader import IGNORED, PairEncoder, StageLoader
from gaixie.training.loop.step import lr_at
from gaixie.training.modeling.generation import load_generator
from gaixie.training.modeling.generator import Decoding, Generator
from gaixie.training.settings import Settings, StageSettings, load_settings

ROOT = Path(__file__).parents[2]
SCRIPT = "training/curriculum.py"
BIN = Path(sys.executable).parent
TOLERANCE = 1e-4
LAUNCH = [str(BIN / "accelerate"), "launch"]
SEVERAL = [*LAUNCH, "--config_file=conf/accelerate/several_gpus.yaml"]


@dataclass(frozen=True)
class Bench:
    """The inputs of all runs."""

    folder: Path
    run: str
    tokenizer: str

    def config(self, name: str, **changes) -> str:
        """Writes a settings file for an output of that name. Returns its path."""
        values = settings(self.run, self.tokenizer, self.folder / name) | changes
        return write_settings(self.folder / f"{name}.yaml", values)


@pytest.fixture(scope="module")
def bench(tmp_path_factory) -> Bench:
    folder = tmp_path_factory.mktemp("curriculum")
    return Bench(folder, write_run(folder), write_tokenizer(folder / "tokenizer"))


def one_process(*arguments: str) -> list[str]:
    return [sys.executable, SCRIPT, *arguments]


def two_processes(*arguments: str) -> list[str]:
    given = ["--num_processes=2", f"--main_process_port={free_port()}"]
    return [*SEVERAL, *given, SCRIPT, *arguments]


def deepspeed(config: str, *arguments: str, script: str = SCRIPT) -> list[str]:
    given = ["--use_deepspeed", f"--deepspeed_config_file=conf/deepspeed/{config}.json"]
    given += ["--num_processes=1", f"--main_process_port={free_port()}"]
    return [*SEVERAL, *given, script, *arguments]


def environment() -> dict[str, str]:
    own = {"OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true", "CUDA_VISIBLE_DEVICES": ""}
    return {**os.environ, **own}


def finish(command: list[str], **changes) -> subprocess.CompletedProcess:
    given = {"env": environment(), "capture_output": True, "text": True, "timeout": PATIENCE}
    return subprocess.run(command, cwd=ROOT, **(given | changes))


def succeed(command: list[str], **changes) -> subprocess.CompletedProcess:
    done = finish(command, **changes)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def call(*arguments: str, drawn: bool = False) -> int:
    """Runs the command in this process, which saves the imports. Returns its exit code."""
    with pytest.MonkeyPatch.context() as patch:
        if not drawn:  # drawing takes longer than everything else
            patch.setattr("gaixie.training.loop.plots.draw", lambda output: None)
        patch.setenv("ACCELERATE_USE_CPU", "true")
        torch.set_num_threads(1)  # as in the other processes, so sums are equal to the last bit
        for state in (AcceleratorState, GradientState, PartialState):
            state._reset_state()
        return curriculum.main([*arguments])


def start(command: list[str], **changes) -> subprocess.Popen:
    """Starts a command in its own process group."""
    given = {"env": environment(), "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    given |= {"cwd": ROOT, "text": True, "start_new_session": True}
    return subprocess.Popen(command, **(given | changes))


def lines(output: Path, name: str = "log.jsonl") -> list[dict]:
    path = output / name
    text = path.read_text("utf-8") if path.exists() else ""
    whole = text[: text.rfind("\n") + 1]  # the last line may be half written
    return [json.loads(line) for line in whole.splitlines()]


def losses(output: Path) -> list[float]:
    return [line["loss"] for line in lines(output)]


def steps(output: Path) -> list[tuple]:
    """Returns what must be equal in two equal runs, step by step, except the losses."""
    names = ("step", "stage", "learning_rate", "tokens", "pairs", "position")
    return [tuple(map(str, (line[name] for name in names))) for line in lines(output)]


def decisions(output: Path) -> list[tuple]:
    names = ("step", "stage", "action", "accuracy", "score", "best", "samples")
    return [
        tuple(map(str, (line[name] for name in names))) for line in lines(output, "history.jsonl")
    ]


def weights(checkpoint: Path) -> dict[str, torch.Tensor]:
    return load_file(checkpoint / "model.safetensors")


@pytest.fixture(scope="module")
def whole(bench) -> Path:
    """Returns the output of one process that was never stopped; read-only."""
    with redirect_stdout(io.StringIO()) as said:
        assert call("--config", bench.config("whole"), drawn=True) == 0
    assert "finished at step 24" in said.getvalue()
    return bench.folder / "whole"


READABLE = {
    "model": {"config": MODEL | {"dropout": 0.1}},
    "controller": {"accuracy": 0.0, "patience": 2, "max_steps": 12},
    "evaluation": {"steps": 3, "pairs": 8, "generate": 4, "max_new_tokens": 8},
}
"""Settings with dropout, where text is scored from the first evaluation on."""


SWITCHING = {
    "controller": {"accuracy": 0.0, "patience": 1, "min_delta": 1.0},
    "evaluation": {"steps": 3, "pairs": 8, "generate": 4, "max_new_tokens": 8},
}
"""Settings where no score exceeds the first by 1, so every stage ends at its second evaluation."""

DEEPSPEED = {"DS_ACCELERATOR": "cpu", "ACCELERATE_USE_CPU": "false"}


@pytest.fixture(scope="module")
def switching(bench) -> Path:
    assert call("--config", bench.config("switching", **SWITCHING), drawn=True) == 0
    return bench.folder / "switching"


@pytest.fixture(scope="module")
def dropping_out(bench) -> Path:
    assert call("--config", bench.config("dropping-out", **READABLE)) == 0
    return bench.folder / "dropping-out"


# A whole run


def test_three_stages(whole, bench):
    assert [line["step"] for line in lines(whole)] == [*range(1, 25)]
    assert [line["stage"] for line in lines(whole)] == [1] * 8 + [2] * 8 + [3] * 8
    found = lines(whole, "history.jsonl")
    actions = ["continue", "next stage", "continue", "next stage", "continue", "finish"]
    assert [line["action"] for line in found] == actions
    assert all(line["signature"].startswith("SPScore-zh|v:") for line in found)
    assert all(line["loss"] > 4 for line in lines(whole)[:1])
    for stage in (1, 2, 3):
        own = [line["loss"] for line in lines(whole) if line["stage"] == stage]
        assert own[-1] < own[0]
    assert (whole / "curriculum.png").stat().st_size > 10_000
    assert yaml.safe_load((whole / "settings.yaml").read_text("utf-8"))["max_length"] == 64


def test_the_data_is_that_of_the_stage(whole, bench):
    expected = tokens_of_steps(bench.folder / "whole.yaml", 8)
    assert [line["tokens"] for line in lines(whole)] == expected
    assert len({*expected[:8]} & {*expected[16:]}) == 0  # the stages differ
    assert all(0 < line["mfu"] < 2 for line in lines(whole))


def tokens_of_steps(config: Path, count: int) -> list[int]:
    """Returns the tokens of each stage's first batches, from the stage's own pairs."""
    given = load_settings(str(config), [])
    corpus = Corpus(given.data.uri, given.data.validation, given.data.test)
    encode = PairEncoder(AutoTokenizer.from_pretrained(given.tokenizer), given.max_length)
    found = []
    for stage in (1, 2, 3):
        loader = StageLoader(StageStream(corpus, stage, given.of_stream(stage)), encode)
        for batch in islice(loader, count):
            found.append(int(batch["attention_mask"].sum() + (batch["labels"] != IGNORED).sum()))
    return found


def test_the_model_that_is_left_is_that_of_the_last_checkpoint(whole):
    model = AutoModelForSeq2SeqLM.from_pretrained(whole / "model")
    tokenizer = AutoTokenizer.from_pretrained(whole / "model")
    assert model.get_input_embeddings().num_embeddings == len(tokenizer)
    saved = weights(whole / "checkpoints/step-00000024")
    assert all(torch.equal(model.state_dict()[name], tensor) for name, tensor in saved.items())
    assert "| 3 | stage 3 |" in (whole / "model/README.md").read_text("utf-8")


def test_a_finished_run_is_finished(whole, bench, capsys):
    files = [whole / "log.jsonl", whole / "model/model.safetensors"]
    before = [(file.read_bytes(), file.stat()) for file in files]
    assert call("--config", str(bench.folder / "whole.yaml")) == 0
    assert "already finished at step 24" in capsys.readouterr().out
    assert [(file.read_bytes(), file.stat().st_ino) for file in files] == [
        (text, stat.st_ino) for text, stat in before
    ]
    # If the run was killed before it wrote the model, a resumed run writes it.
    shutil.rmtree(whole / "model")
    assert call("--config", str(bench.folder / "whole.yaml")) == 0
    assert files[1].read_bytes() == before[1][0]


# Equal results on any number of processes


@pytest.mark.long
def test_two_processes_take_the_steps_of_one(whole, bench):
    config = bench.config("two", batch={"pairs": 16, "micro_pairs": 16, "block_rows": 100})
    succeed(two_processes("--config", config))
    two = bench.folder / "two"
    assert steps(two) == steps(whole)
    assert losses(two) == pytest.approx(losses(whole), abs=TOLERANCE)
    assert [line[:3] for line in decisions(two)] == [line[:3] for line in decisions(whole)]


# The controller


def test_the_controller_switches_and_the_best_weights_start_the_next_stage(switching):
    found = lines(switching, "history.jsonl")
    actions = ["save best", "next stage", "save best", "next stage", "save best", "finish"]
    assert [line["action"] for line in found] == actions
    assert [line["step"] for line in found] == [3, 6, 9, 12, 15, 18]
    assert [line["stage"] for line in lines(switching)] == [1] * 6 + [2] * 6 + [3] * 6
    assert all(0 <= line["score"] <= 1 for line in found)
    assert all(len(line["samples"]) == 3 for line in found)
    best, last = (weights(switching / f"checkpoints/step-000000{step}") for step in (15, 18))
    assert all(torch.equal(best[name], last[name]) for name in best)
    model = load_file(switching / "model/model.safetensors")
    assert all(torch.equal(model[name], tensor) for name, tensor in best.items() if name in model)


COMPILED = ["zero2_offload", "zero3_offload"]
"""Settings with which DeepSpeed compiles its optimiser for the CPU."""


@dataclass(frozen=True)
class UnderDeepSpeed:
    """Runs with the settings of conf/deepspeed; read-only."""

    outputs: dict[str, Path]
    """Outputs by the name of the settings; the run with zero2 was stopped and resumed."""
    refused: subprocess.CompletedProcess
    """A run that should resume from a checkpoint which says that two processes saved it."""


@pytest.fixture(scope="module")
def under_deepspeed(bench) -> UnderDeepSpeed:
    """Runs DeepSpeed; all runs except the stopped one share a process, to import once."""
    pytest.importorskip("deepspeed")
    names = ["zero2", "zero3", *(COMPILED if shutil.which("g++") else ())]
    outputs = {name: bench.folder / f"switching-{name}" for name in names}
    configs = {name: bench.config(path.name, **SWITCHING) for name, path in outputs.items()}
    own = environment() | DEEPSPEED
    process = start(deepspeed("zero2", "--config", configs["zero2"]), env=own)
    wait_for(lambda: len(lines(outputs["zero2"])) >= 7, "a step of stage 2", process)
    process.terminate()  # the launcher passes it on
    said, _ = process.communicate()
    assert f"stopped at step {len(lines(outputs['zero2']))}, whose checkpoint is saved" in said

    shutil.copytree(outputs["zero2"], bench.folder / "fewer")
    (*_, last) = sorted((bench.folder / "fewer/checkpoints").glob("step-*"))
    text = (last / "state.json").read_text("utf-8")
    assert '"processes": 1' in text
    (last / "state.json").write_text(text.replace('"processes": 1', '"processes": 2'), "utf-8")

    given = [f"{name}={config}" for name, config in configs.items()]
    given += [f"zero2={bench.config('fewer', **SWITCHING)}"]
    done = finish(deepspeed("zero2", *given, script="tests/training/curricula_in_turn.py"), env=own)
    assert (outputs[names[-1]] / "model").is_dir(), done.stdout + done.stderr
    return UnderDeepSpeed(outputs, done)


def test_zero2_stopped_and_resumed_takes_the_steps_of_one_process(switching, under_deepspeed):
    """A resumed run under ZeRO-2 must take the same steps; if the best weights were not restored at
    each switch, later losses would differ."""
    zero2 = under_deepspeed.outputs["zero2"]
    assert steps(zero2) == steps(switching)  # tokens of each step too: the data does switch
    assert losses(zero2) == pytest.approx(losses(switching), abs=TOLERANCE)


@pytest.mark.parametrize("name", ["zero3", *COMPILED])
def test_the_other_settings_of_deepspeed_take_the_steps_of_one_process(
    switching, under_deepspeed, name
):
    """Other DeepSpeed settings must take the same steps, generate, and leave a whole model."""
    if name not in under_deepspeed.outputs:
        pytest.skip("DeepSpeed compiles its optimiser for the CPU, and there is no g++")
    output = under_deepspeed.outputs[name]
    assert steps(output) == steps(switching)
    assert losses(output) == pytest.approx(losses(switching), abs=TOLERANCE)
    left, expected = (load_file(path / "model/model.safetensors") for path in (output, switching))
    assert left.keys() == expected.keys()
    assert all(torch.allclose(left[name], expected[name], atol=1e-3) for name in left)


def test_a_budget_of_time_ends_a_stage(bench):
    changes = {"controller": {"accuracy": 1.0, "max_seconds": 0.01}, "log_steps": 2}
    assert call("--config", bench.config("hurried", **changes)) == 0
    found = lines(bench.folder / "hurried", "history.jsonl")
    assert [(line["stage"], line["step"]) for line in found] == [(1, 2), (2, 4), (3, 6)]
    assert all("budget of 0.01 seconds" in line["reason"] for line in found)


def test_stages_have_settings_of_their_own(bench):
    changes = {
        "controller": {"accuracy": 1.0, "max_steps": 2},
        "stages": {2: {"learning_rate": 0.001, "max_steps": 3}, 3: {"mix": 0.5, "warmup_steps": 0}},
        "decay": "constant",
        "tracking": "tensorboard",
        "workers": 1,
    }
    assert call("--config", bench.config("own", **changes)) == 0
    rates = [line["learning_rate"] for line in lines(bench.folder / "own")]
    assert rates == [0.0025, 0.005, 0.0005, 0.001, 0.001, 0.005, 0.005]
    assert [*(bench.folder / "own/tensorboard").rglob("events.*")]


@pytest.mark.long
def test_a_compiled_model_takes_the_same_steps(whole, bench):
    """A compiled model must take the same steps, while learning rates equal the longer run's."""
    torch._dynamo.reset()
    changes = {"curriculum": [[1]], "controller": {"max_steps": 2}}
    config = bench.config("compiled", compile="aot_eager", **changes)
    assert call("--config", config) == 0
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] > 0
    assert losses(bench.folder / "compiled") == pytest.approx(losses(whole)[:2], abs=TOLERANCE)
    saved = weights(bench.folder / "compiled/checkpoints/step-00000002")
    assert saved.keys() == weights(whole / "checkpoints/step-00000024").keys()


# Killed, stopped, resumed


def kill(command: list[str], output: Path, line: int) -> None:
    """Starts a run, and kills all its processes once log.jsonl has this many lines."""
    process = start(command)
    wait_for(lambda: len(lines(output)) >= line, f"line {line}", process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.long
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_to_the_whole_group(bench, number, code):
    """A signal to the whole group, as from a scheduler or Ctrl-C, must end the run cleanly, though
    it also reaches the encoding workers."""
    output = bench.folder / f"group-{code}"
    endless = {"accuracy": 0.0, "patience": 100_000, "max_steps": 100_000}
    config = bench.config(output.name, workers=2, **READABLE | {"controller": endless})
    process = start(one_process("--config", config))
    wait_for(lambda: len(lines(output)) >= 3, "line 3", process)
    os.killpg(process.pid, number)
    said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, said
    assert "Traceback" not in said
    assert call("--config", config, "--dry-run") == 0
    assert bool([*(output / "checkpoints").glob("step-*")]) == (number == signal.SIGTERM)


@pytest.mark.long
def test_a_killed_run_ends_as_one_that_was_not(dropping_out, bench, capsys):
    """A killed run must resume to the same end; while it lives, a second one in its output must be
    refused."""
    output, config = bench.folder / "killed", bench.config("killed", **READABLE)
    first = start(one_process("--config", config))
    try:
        wait_for(lambda: len(lines(output)) >= 2, "a step of the first stage", first)
        os.killpg(first.pid, signal.SIGSTOP)  # otherwise it may end before the second run looks
        line = refused(capsys, "--config", config)
        assert f"another run writes there, process {first.pid} of " in line
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.communicate()
    kill(one_process("--config", config), output, 17)  # in the second stage
    assert call("--config", config) == 0
    assert steps(output) == steps(dropping_out)
    assert losses(output) == losses(dropping_out)  # with dropout, to the last bit
    assert decisions(output) == decisions(dropping_out)


@pytest.mark.long
def test_stopped_then_resumed_by_two_of_which_one_dies_then_by_one(whole, bench):
    output = bench.folder / "stopped"
    config = bench.config("stopped", checkpoints={"steps": 1_000, "keep": 2})
    process = start(one_process("--config", config))
    wait_for(lambda: len(lines(output)) >= 5, "step 5", process)
    process.terminate()
    said, _ = process.communicate()
    assert process.returncode == 143
    stopped = len(lines(output))
    assert f"stopped at step {stopped}, whose checkpoint is saved" in said
    assert (output / f"checkpoints/step-{stopped:08}").is_dir()

    process = start(two_processes("--config", config))
    wait_for(lambda: len(lines(output)) > stopped, "one more step", process)
    ranks = psutil.Process(process.pid).children()
    ranks[-1].kill()
    process.communicate()
    assert process.returncode != 0
    _, alive = psutil.wait_procs(ranks, timeout=PATIENCE)
    assert not alive

    assert call("--config", config) == 0
    assert steps(output) == steps(whole)
    assert losses(output) == pytest.approx(losses(whole), abs=TOLERANCE)


@pytest.mark.long
def test_a_process_whose_launcher_is_gone_saves_and_ends(bench):
    output = bench.folder / "orphan"
    config = bench.config("orphan", controller={"max_steps": 100_000})
    process = start([*LAUNCH, "--config_file=conf/accelerate/cpu.yaml", SCRIPT, "--config", config])
    wait_for(lambda: len(lines(output)) >= 2, "step 2", process)
    process.terminate()
    said, _ = process.communicate()  # waits until every process that writes there has ended
    assert f"stopped at step {len(lines(output))}, whose checkpoint is saved" in said


def test_a_disk_that_is_full_leaves_the_last_checkpoint(whole, bench, capsys):
    output, config = bench.folder / "full", bench.config("full")
    shutil.copytree(whole, output)
    last = output / "checkpoints/step-00000024"
    limit = (last / "model.safetensors").stat().st_size // 2
    shutil.rmtree(last)

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        line = refused(capsys, "--config", config)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "step-00000024: cannot write the checkpoint" in line
    assert [path.name for path in (output / "checkpoints").glob("step-*")] == ["step-00000020"]
    assert call("--config", config) == 0
    assert losses(output) == losses(whole)


@pytest.mark.long
def test_a_run_goes_on_from_its_mirror(whole, bench, store, monkeypatch, capsys):
    mirror = f"s3://{store.BUCKET}/curriculum"
    output, config = bench.folder / "mirrored", bench.config("mirrored", mirror=mirror)
    own = environment() | store.environment()
    process = start(one_process("--config", config), env=own)
    done = "curriculum/checkpoints/step-00000008/COMPLETE"
    wait_for(lambda: done in store.keys("curriculum/"), "a checkpoint in the mirror", process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    shutil.rmtree(output)
    for name, value in store.environment().items():
        monkeypatch.setenv(name, value)
    assert call("--config", config) == 0
    assert "continuing from" in capsys.readouterr().out
    assert steps(output) == steps(whole)
    assert losses(output) == losses(whole)
    keys = store.keys("curriculum/")
    assert "curriculum/checkpoints/step-00000024/COMPLETE" in keys
    assert "curriculum/model/model.safetensors" in keys
    assert "curriculum/history.jsonl" in keys


# Bad input: one line, exit code 2


def refused(capsys, *arguments: str) -> str:
    """Returns the only line of standard error of a command that must fail."""
    capsys.readouterr()
    assert call(*arguments) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("curriculum: error: ")
    return line


def test_nan_stops_and_names_the_batch(bench, capsys):
    config = bench.config("diverging", learning_rate=1e36, warmup_steps=0, checkpoints={"steps": 1})
    line = refused(capsys, "--config", config)
    assert "the loss is nan, with batch" in line
    assert "of block 0 of epoch 0 of stage 1" in line
    found = lines(bench.folder / "diverging")
    assert f"step {len(found) + 1}: " in line
    assert (bench.folder / f"diverging/checkpoints/step-{len(found):08}").is_dir()
    [ids] = (bench.folder / "diverging").glob("not-finite-*.txt")
    assert f"whose pair_ids are in {ids};" in line
    given = load_settings(config, [])
    data = given.data
    stream = StageStream(Corpus(data.uri, data.validation, data.test), 1, given.of_stream(1))
    *_, batch = islice(stream.batches(), len(found) + 1)
    known = pq.read_table(Path(bench.run) / "scored").to_pylist()
    pair_of = {row["pair_id"]: (row["source"], row["paraphrase"]) for row in known}
    named = [pair_of[one] for one in ids.read_text("utf-8").split()]
    assert named == [*zip(batch.source, batch.paraphrase, strict=True)]


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("data.uri=nowhere", "nowhere/manifest.json: no such file"),
        ("tokenizer=nowhere", "tokenizer: nowhere: no vocabulary.txt in it"),
        ("batch.pairs=1024", "stage 1 has too few training pairs for one batch"),
        ("model.config.layers=2", "model.config: BART has no setting 'layers'"),
        ("max_length=128", "max_length: 128 tokens, but the model has 64 positions"),
        ("learning_rat=1", "--set learning_rat=1: learning_rat: no such setting"),
        ("stages.4.mix=0.1", "stages: there is no stage 4 in the curriculum"),
        ("curriculum=[[1], [1, 2]]", "curriculum: expected lists of stages, each of 0 to 3 at"),
        ("curriculum=[]", "curriculum: expected a stage, since there is no denoising"),
        ("data.validation=0", "stage 1 has no validation pair"),
        ("cache=s3://bucket/tokens", "cache: expected a folder on this machine, not s3://bucket/"),
    ],
)
def test_bad_settings(bench, capsys, assignment, message):
    config = bench.config("bad")
    assert message in refused(capsys, "--config", config, "--set", assignment)
    assert not (bench.folder / "bad").exists()


def test_a_tokenizer_of_another_model(whole, bench, capsys):
    from gaixie.training.modeling.tokenizer import EntityAlignedTokenizer
    from gaixie.udfs.text.entities import load_settings as load_entities

    entities = load_entities(ROOT / "conf/entities.yaml")
    other = bench.folder / "other-tokenizer"
    EntityAlignedTokenizer.from_words(["学校"], entities, indices=2).save_pretrained(other)
    model = {"pretrained": str(whole / "model")}
    config = bench.config("unfit", model=model, tokenizer=str(other))
    line = refused(capsys, "--config", config)
    assert "tokens, but the tokenizer" in line


def test_a_run_starts_from_a_model_that_is_trained(whole, bench):
    changes = {"model": {"pretrained": str(whole / "model")}, "controller": {"max_steps": 1}}
    assert call("--config", bench.config("further", **changes)) == 0
    assert losses(bench.folder / "further")[2] < losses(whole)[16]  # both in stage 3


def test_a_run_of_one_stage_and_of_all_together(bench, capsys):
    """The baselines of the curriculum must train on one stage, and on all stages together."""
    last = bench.config("last", curriculum=[[3]], controller={"max_steps": 2})
    assert call("--config", last) == 0
    assert "stage 1 (of the data: 3): 120 pairs" in capsys.readouterr().out
    together = bench.config("together", curriculum=[[1, 2, 3]], controller={"max_steps": 2})
    assert call("--config", together) == 0
    assert "stage 1 (of the data: 1, 2, 3): 520 pairs" in capsys.readouterr().out
    for name in ("last", "together"):
        [line] = lines(bench.folder / name, "history.jsonl")
        assert (line["step"], line["action"]) == (2, "finish")


HUB = [tiny_hub.bert_bart, tiny_hub.mt5, tiny_hub.m2m100, tiny_hub.mbart, tiny_hub.mbart50]


@pytest.mark.parametrize("make", [tiny_t5, tiny_bart, *HUB])
def test_any_sequence_to_sequence_model_with_its_own_tokenizer(bench, capsys, make):
    name = f"own-{make.__name__}"
    folder = make(bench.folder / make.__name__)
    controller = {"accuracy": 0.0, "patience": 1, "max_steps": 2}
    config = bench.config(
        name, model={"pretrained": folder}, tokenizer=None, max_length=24, controller=controller
    )
    assert call("--config", config) == 0, capsys.readouterr().err
    written = bench.folder / name / "model"
    assert type(AutoModelForSeq2SeqLM.from_pretrained(written)) is type(
        AutoModelForSeq2SeqLM.from_pretrained(folder)
    )
    generator = load_generator(str(written))
    assert generator.candidates(["今天天气很好"], Decoding(max_new_tokens=4)) != [[]]
    for line in lines(bench.folder / name, "history.jsonl"):
        assert line["score"] is not None or not line["accuracy"]  # weights are random
    if make in HUB:
        _writes_what_it_is_told(generator)


def _writes_what_it_is_told(generator: Generator) -> None:
    """Asserts that it writes no language token, no spaces between pieces, and print punctuation."""
    [labels] = generator.tokenizer(text_target=[tiny_hub.TEXTS[0]])["input_ids"]
    generator._write = lambda ids, limit, arguments: [[generator._start, *labels]]
    [[one]] = generator.candidates(tiny_hub.TEXTS[:1], Decoding(1))
    assert one.text == tiny_hub.TEXTS[0]
    assert one.log_probability < 0


def test_deepspeed_refuses_another_number_of_processes(under_deepspeed):
    done = under_deepspeed.refused
    assert done.returncode == 1  # accelerate's code, for the process's 2
    assert "saved by 2 processes, but there are 1; DeepSpeed needs the same number" in (done.stderr)


def test_an_output_of_other_settings(whole, bench, capsys):
    config = str(bench.folder / "whole.yaml")
    for assignment, name in (
        ("learning_rate=0.1", "learning_rate"),
        ("batch.pairs=8", "batch.pairs"),
    ):
        line = refused(capsys, "--config", config, "--set", assignment)
        assert f"saved with {name} " in line
        assert "step-00000024: " in line
    line = refused(capsys, "--config", config, "--resume", "never")
    assert "already has checkpoints" in line


def test_denoising_alone(bench):
    """A run must be able to learn only to restore sentences, with no stage after it."""
    changes = {"curriculum": [], "denoising": {"pairs": True}, "controller": {"max_steps": 2}}
    assert call("--config", bench.config("restore", **changes)) == 0
    [line] = lines(bench.folder / "restore", "history.jsonl")
    assert (line["stage"], line["step"], line["action"]) == (0, 2, "finish")
    assert (bench.folder / "restore/model/README.md").is_file()


def test_a_dry_run_writes_nothing(bench, capsys):
    assert call("--config", bench.config("dry"), "--dry-run") == 0
    said = capsys.readouterr().out
    assert "stage 2: 160 pairs" in said
    assert "42,560 weights" in said
    assert not (bench.folder / "dry").exists()


def test_the_settings_that_ship_are_the_defaults():
    shipped = load_settings(str(ROOT / "conf/curriculum.yaml"), [])
    given = {
        "data": {"uri": shipped.data.uri},
        "tokenizer": "",
        "output": "",
        "model": shipped.model,
    }
    defaults = Settings.model_validate(given).model_dump(exclude={"tokenizer", "output"})
    found = shipped.model_dump(exclude={"tokenizer", "output"})
    assert found.pop("controller") == defaults.pop("controller") | {"max_steps": 100_000}
    assert found == defaults


def test_learning_rate():
    stage = StageSettings(learning_rate=1.0, warmup_steps=4, max_steps=12)
    rates = [lr_at(step, stage, "linear", 0.5) for step in range(1, 15)]
    assert rates[:4] == [0.25, 0.5, 0.75, 1.0]
    assert rates[7] == 0.75  # half-way from 1 to 0.5
    assert rates[11:] == [0.5, 0.5, 0.5]
    cosine = [lr_at(step, stage, "cosine", 0.0) for step in (4, 8, 12)]
    assert cosine == pytest.approx([1.0, 0.5, 0.0])
    assert lr_at(1_000, stage.model_copy(update={"max_steps": None}), "cosine", 0.0) == 1.0
