"""Checkpoints must be whole, pruned except the best, found again, and refused if they do not
fit."""

import json
import threading
from dataclasses import replace
from pathlib import Path

import accelerate
import pytest
import torch

from gaixie.training.loop.checkpoints import COMPLETE, STATE, Checkpoints, RunState
from gaixie.training.loop.controller import State
from gaixie.udfs.storage import storage

IDENTITY = {"seed": 13, "model.config.d_model": 32}


@pytest.fixture
def accelerator():
    """Returns an accelerator with one CPU process and a model whose weights a test can read."""
    one = accelerate.Accelerator(cpu=True)
    model = torch.nn.Linear(1, 1)
    model = one.prepare(model)
    one.prepare(torch.optim.AdamW(model.parameters()))
    one.model = model
    return one


def checkpoints(accelerator, folder: Path, keep: int = 2, mirror: str | None = None, **changes):
    return Checkpoints(accelerator, str(folder), keep, IDENTITY | changes, mirror)


def state(step: int, best_step: int | None = None) -> RunState:
    loader = {"position": [0, 0, step], "pairs": 16 * step, "identity": {}}
    return RunState(step, step / 2, State(evaluation=step, step=step), loader, best_step)


def set_weight(accelerator, value: float) -> None:
    torch.nn.init.constant_(accelerator.model.weight, value)


def save(of: Checkpoints, *steps: RunState) -> None:
    """Saves checkpoints in which each step's weight is its number."""
    of.folder.parent.mkdir(exist_ok=True)
    for one in steps:
        set_weight(of.accelerator, one.step)
        of.save(one)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "checkpoints").iterdir())


def test_what_is_saved_is_found_and_loaded(accelerator, tmp_path):
    of = checkpoints(accelerator, tmp_path)
    assert of.find(True) is None
    save(of, state(1), state(2, best_step=1))
    set_weight(accelerator, 0.0)
    found = checkpoints(accelerator, tmp_path).find(True)
    assert found == state(2, best_step=1)
    of.load(found.step)
    assert accelerator.model.weight.item() == 2
    of.load(found.best_step)
    assert accelerator.model.weight.item() == 1


def test_the_newest_stay_and_the_best_that_they_refer_to(accelerator, tmp_path):
    of = checkpoints(accelerator, tmp_path)
    save(of, state(1), state(2, 2), state(3, 2), state(4, 2), state(5, 2))
    assert names(tmp_path) == ["step-00000002", "step-00000004", "step-00000005"]
    save(of, state(6, 6), state(7, 6), state(8, 6))
    assert names(tmp_path) == ["step-00000006", "step-00000007", "step-00000008"]


def test_half_a_checkpoint_is_none(accelerator, tmp_path):
    of = checkpoints(accelerator, tmp_path)
    save(of, state(1))
    part = tmp_path / "checkpoints/.part-step-00000002"
    part.mkdir()
    (part / STATE).write_text("{")
    assert of.find(True) == state(1)
    save(of, state(2))
    assert names(tmp_path) == ["step-00000001", "step-00000002"]


@pytest.mark.parametrize(
    ("changes", "saved", "message"),
    [
        ({"seed": 14}, {}, "saved with seed 13, but the settings have 14"),
        ({}, {"backend": "DEEPSPEED"}, "saved under DEEPSPEED, but this is NO"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(accelerator, tmp_path, changes, saved, message):
    save(checkpoints(accelerator, tmp_path), state(3))
    path = tmp_path / "checkpoints/step-00000003"
    values = json.loads((path / STATE).read_text("utf-8"))
    (path / STATE).write_text(json.dumps(values | saved), "utf-8")
    with pytest.raises(ValueError, match=message) as error:
        checkpoints(accelerator, tmp_path, **changes).find(True)
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)


def test_a_mirror_holds_the_same_and_gives_it_back(accelerator, tmp_path, admin):
    mirror = f"s3://{admin.BUCKET}/mirror-{tmp_path.name}"
    of = checkpoints(accelerator, tmp_path / "here", mirror=mirror)
    save(of, state(1), state(2, 1), state(3, 1), state(4, 1))
    of.close()
    kept = ["step-00000001", "step-00000003", "step-00000004"]
    keys = admin.keys(f"mirror-{tmp_path.name}/")
    assert sorted({key.split("/")[2] for key in keys}) == kept
    files = storage.children(f"{mirror}/checkpoints/step-00000004")
    assert {*files} == {
        COMPLETE,
        *(path.name for path in (tmp_path / "here/checkpoints/step-00000004").iterdir()),
    }
    other = checkpoints(accelerator, tmp_path / "there", mirror=mirror)
    (tmp_path / "there").mkdir()
    assert other.find(True) == state(4, 1)
    assert names(tmp_path / "there") == ["step-00000001", "step-00000004"]
    other.load(1)
    assert accelerator.model.weight.item() == 1

    storage.delete(f"{mirror}/checkpoints/step-00000004/{COMPLETE}")  # as if the upload broke off
    third = checkpoints(accelerator, tmp_path / "third", mirror=mirror)
    (tmp_path / "third").mkdir()
    assert third.find(True) == state(3, 1)
    with pytest.raises(ValueError, match="already has checkpoints"):
        checkpoints(accelerator, tmp_path / "fourth", mirror=mirror).find(False)


def test_a_store_that_fails_is_reported_and_training_goes_on(
    accelerator, tmp_path, store, monkeypatch, capfd
):
    for name, value in store.environment("reader").items():
        monkeypatch.setenv(name, value)
    mirror = f"s3://{store.BUCKET}/denied"
    of = checkpoints(accelerator, tmp_path, mirror=mirror)
    save(of, state(1), replace(state(2), best_step=2))
    of.close()
    assert names(tmp_path) == ["step-00000001", "step-00000002"]
    assert "mirror: s3://gaixie/denied" in capfd.readouterr().err


def test_no_step_waits_for_a_slow_mirror(accelerator, tmp_path, monkeypatch):
    """Steps must not wait for a slow mirror: two more checkpoints are written while the first is
    copied, and the end copies the rest."""
    mirror, copy = tmp_path / "mirror", storage.copy
    may_go_on, asked = threading.Event(), threading.Event()

    def slow_copy(source: str, target: str) -> None:
        asked.set()
        assert may_go_on.wait(60)
        copy(source, target)

    monkeypatch.setattr(storage, "copy", slow_copy)
    of = checkpoints(accelerator, tmp_path / "here", keep=1, mirror=str(mirror))
    assert of.find(True) is None
    save(of, state(1))
    assert asked.wait(60)
    save(of, state(2), state(3))
    assert names(tmp_path / "here") == ["step-00000001", "step-00000003"]  # the first is in use
    may_go_on.set()
    of.close()
    assert names(mirror) == ["step-00000003"]
    assert (mirror / "checkpoints/step-00000003" / COMPLETE).exists()
