"""The precision of a run, by its settings or the device, and the tracker of its curves."""

import sys
from types import SimpleNamespace

import pytest
import tiny_run
import torch
from accelerate.state import PartialState
from accelerate.tracking import WandBTracker

from gaixie.training.loop import backend
from gaixie.training.loop.backend import Precision, lowest_capability, tracker_of, tracker_options
from gaixie.training.settings import Settings


@pytest.mark.parametrize(
    ("capability", "expected"),
    [(None, False), ((7, 5), False), ((8, 0), True), ((8, 9), True), ((10, 0), True)],
)
def test_precision(capability, expected):
    assert Precision.of("auto", "auto", capability) == (expected, expected)
    assert Precision.of(True, False, capability) == (True, False)  # settings win


def test_the_lowest_of_several_gpus(monkeypatch):
    found = [(9, 0), (7, 5), (8, 0)]
    monkeypatch.delenv("ACCELERATE_USE_CPU", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(found))
    monkeypatch.setattr(torch.cuda, "get_device_capability", found.__getitem__)
    assert lowest_capability() == (7, 5)
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    assert lowest_capability() is None


def ranks(*rows: list[int]) -> SimpleNamespace:
    return SimpleNamespace(device="cpu", gather=lambda own: torch.tensor(rows))


def test_ranks_that_differ_are_refused(monkeypatch):
    switched = []
    monkeypatch.setattr(torch, "set_float32_matmul_precision", switched.append)
    with pytest.raises(ValueError, match="bf16, tf32: auto differs between the GPUs"):
        Precision(True, True).set_up(ranks([1, 1], [0, 0]))
    assert not switched
    Precision(True, True).set_up(ranks([1, 1], [1, 1]))
    Precision(True, False).set_up(ranks([1, 0]))
    assert switched == ["high", "highest"]


def settings(tmp_path, tracker: str | None) -> Settings:
    values = tiny_run.settings("runs/x", "tokenizer", tmp_path / "first", tracking=tracker)
    return Settings.model_validate(values)


@pytest.mark.parametrize(("given", "mode"), [(None, "offline"), ("online", "online")])
def test_wandb_stays_offline_unless_told(tmp_path, monkeypatch, given, mode):
    """wandb must stay offline unless the user says otherwise; tested through accelerate's tracker,
    with a fake package."""
    called = {}
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=called.update))
    monkeypatch.delenv("WANDB_MODE", raising=False)
    if given:
        monkeypatch.setenv("WANDB_MODE", given)
    monkeypatch.setattr(backend, "find_spec", lambda name: object())
    PartialState(cpu=True)
    asked = settings(tmp_path, "wandb")
    WandBTracker("curriculum", **tracker_options(asked, 0)[tracker_of(asked)]).start()
    assert called["mode"] == mode
    assert (called["dir"], called["group"]) == (str(tmp_path / "first"), "first")
    assert called["config"]["max_length"] == 64
