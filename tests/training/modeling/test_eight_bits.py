"""A layer of eight bits must compute nearly what the layer of floats does, there and back."""

import pytest
import torch
from torch import nn

from gaixie.training.modeling.eight_bits import EightBitLinear, quantise, quantise_linear_layers


def test_each_row_has_its_scale():
    integers, scales = quantise(torch.tensor([[0.0, -2.54, 1.26], [254.0, 1.2, -0.9]]))
    assert integers.tolist() == [[0, -127, 63], [127, 1, 0]]
    assert scales.tolist() == pytest.approx([0.02, 2.0])


@pytest.mark.parametrize("bias", [False, True])
def test_as_with_floats(bias):
    torch.manual_seed(1)
    exact = nn.Linear(96, 40, bias)
    small = EightBitLinear(exact)
    x = torch.randn(2, 7, 96)
    near, far = x.clone().requires_grad_(), x.clone().requires_grad_()
    wanted, found = exact(far), small(near)
    assert found.shape == wanted.shape
    assert (found - wanted).norm() < 0.015 * wanted.norm()
    direction = torch.randn(2, 7, 40)
    (wanted * direction).sum().backward()
    (found * direction).sum().backward()
    assert (near.grad - far.grad).norm() < 0.02 * far.grad.norm()
    assert small.weight.grad is None


def test_every_linear_layer_but_the_last():
    model = nn.ModuleDict({"a": nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8))})
    model["lm_head"] = nn.Linear(8, 3)
    quantise_linear_layers(model.to(torch.bfloat16))
    assert type(model["a"][0]) is EightBitLinear
    assert type(model["lm_head"]) is nn.Linear
    assert model["a"][0].weight.dtype == torch.int8
    assert model["lm_head"].weight.dtype == torch.float32
