"""Linear layers with weights of eight bits, through which LoRA is trained on a CPU.

    y = x Wᵀ + b,   W ≈ diag(s) Q,   x ≈ diag(t) X       Q, X: integers from -127 to 127

Each row of W and of x has its scale, so the product is one of integers, which processors with VNNI
compute faster than one of floats. The gradient passes back through a product with Q; the weights
get none.

Source: Dettmers et al. 2022, LLM.int8(), section 3.1, vector-wise quantisation.
"""

from typing import Any

import numpy as np
import torch
from numba import njit
from torch import nn

LARGEST = 127
kernel = njit(cache=True, nogil=True, fastmath=True)


def quantise_linear_layers(model: nn.Module) -> None:
    """Replaces every linear layer of a model in place, but for the one that gives the logits.

    The rest of the model becomes float32, which is what the new layers compute with.
    """
    for parent in [*model.modules()]:
        for name, layer in [*parent.named_children()]:
            if type(layer) is nn.Linear and name != "lm_head":
                setattr(parent, name, EightBitLinear(layer))
    model.float()


class EightBitLinear(nn.Linear):
    """A linear layer of fixed weights of eight bits; PEFT wraps it like any other."""

    def __init__(self, layer: nn.Linear):
        super().__init__(layer.in_features, layer.out_features, bias=False, device="meta")
        quantised, scale = quantise(layer.weight.detach().float())
        self.weight = nn.Parameter(quantised, requires_grad=False)
        self.register_buffer("scale", scale, persistent=False)
        bias = torch.zeros(layer.out_features) if layer.bias is None else layer.bias.detach()
        self.register_buffer("shift", bias.float(), persistent=False)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Maps float32 of shape (…, in_features) to float32 of shape (…, out_features)."""
        return _Product.apply(input, self.weight, self.scale, self.shift)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor, shift: torch.Tensor
    ) -> torch.Tensor:
        ctx.save_for_backward(weight, scale)
        integers, scales = quantise(x.detach().reshape(-1, x.shape[-1]).float())
        product = torch._int_mm(integers, weight.T)
        out = torch.empty(product.shape)
        _rescale(*(t.numpy() for t in (product, scales, scale, shift, out)))
        return out.view(*x.shape[:-1], -1)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        weight, scale = ctx.saved_tensors
        integers, scales = quantise(gradient.reshape(-1, gradient.shape[-1]).float() * scale)
        back = torch._int_mm(integers, weight).float() * scales[:, None]
        return back.view(*gradient.shape[:-1], -1), None, None, None


def quantise(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns int8 of the shape of rows, (n, m) float32, and the scale of each row, (n,)."""
    rows = rows.contiguous()
    integers, scales = torch.empty(rows.shape, dtype=torch.int8), torch.empty(len(rows))
    _quantise(rows.numpy(), integers.numpy(), scales.numpy())
    return integers, scales


@kernel
def _quantise(rows: np.ndarray, integers: np.ndarray, scales: np.ndarray) -> None:
    for i in range(rows.shape[0]):
        most = np.float32(1e-12)
        for j in range(rows.shape[1]):
            most = max(most, abs(rows[i, j]))
        scales[i] = most / np.float32(LARGEST)
        factor = np.float32(LARGEST) / most
        for j in range(rows.shape[1]):
            integers[i, j] = np.int8(np.rint(rows[i, j] * factor))


@kernel
def _rescale(
    product: np.ndarray, scales: np.ndarray, scale: np.ndarray, shift: np.ndarray, out: np.ndarray
) -> None:
    for i in range(product.shape[0]):
        row = scales[i]
        for j in range(product.shape[1]):
            out[i, j] = product[i, j] * row * scale[j] + shift[j]
