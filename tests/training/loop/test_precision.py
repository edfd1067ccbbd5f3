"""What a run computes in: by the settings, and where they leave it open by the device."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("accelerate", reason="the trainer is one of accelerate")

import torch

from gaixie.training.loop.precision import Precision, lowest_capability


@pytest.mark.parametrize(
    ("capability", "expected"),
    [(None, False), ((7, 5), False), ((8, 0), True), ((8, 9), True), ((10, 0), True)],
)
def test_auto_is_what_the_device_has(capability, expected):
    assert Precision.of("auto", "auto", capability) == (expected, expected)


@pytest.mark.parametrize("capability", [None, (7, 0), (9, 0)])
@pytest.mark.parametrize("value", [True, False])
def test_what_is_given_counts(capability, value):
    assert Precision.of(value, not value, capability) == (value, not value)


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
