"""Trackers: what each is opened with, and what is said where its package is missing."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

pytest.importorskip("accelerate", reason="trackers are those of accelerate")

import tiny_run
from accelerate.state import PartialState
from accelerate.tracking import WandBTracker

from gaixie.training.loop import tracking
from gaixie.training.loop.tracking import options_of, tracker_of
from gaixie.training.settings import Settings


def settings(tmp_path, tracker: str | None) -> Settings:
    values = tiny_run.settings("runs/x", "tokenizer", tmp_path / "first", tracking=tracker)
    return Settings.model_validate(values)


@pytest.mark.parametrize("tracker", ["tensorboard", None])
def test_a_tracker_that_is_there(tmp_path, tracker):
    assert tracker_of(settings(tmp_path, tracker)) == tracker
    assert options_of(settings(tmp_path, tracker), 7)["tensorboard"] == {"purge_step": 8}


def test_wandb_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(tracking, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"^tracking: wandb needs the package wandb: pip install"):
        tracker_of(settings(tmp_path, "wandb"))


@pytest.mark.parametrize(("given", "mode"), [(None, "offline"), ("online", "online")])
def test_wandb_stays_offline_unless_told(tmp_path, monkeypatch, given, mode):
    """By accelerate's own tracker, over a package of which only init is looked at."""
    called = {}
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=called.update))
    monkeypatch.delenv("WANDB_MODE", raising=False)
    if given:
        monkeypatch.setenv("WANDB_MODE", given)
    monkeypatch.setattr(tracking, "find_spec", lambda name: object())
    PartialState(cpu=True)
    asked = settings(tmp_path, "wandb")
    WandBTracker("curriculum", **options_of(asked, 0)[tracker_of(asked)]).start()
    assert called["mode"] == mode
    assert (called["dir"], called["group"]) == (str(tmp_path / "first"), "first")
    assert called["config"]["max_length"] == 64
