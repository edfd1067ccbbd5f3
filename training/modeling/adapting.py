"""Trains a LoRA adapter of a base whose weights have eight bits, on a CPU.

The state is saved beside the adapter, and a training that was stopped goes on from it.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

STATE = "state.pt"
COPIED = ("tokenizer.json", "tokenizer_config.json")


class Pack(NamedTuple):
    """Prompts, with some texts behind each, in one sequence of tokens.

    A text sees its prompt and itself alone, so that a prompt is read once for all its texts.
    """

    ids: torch.Tensor
    """Token ids, shape (tokens,)."""
    places: torch.Tensor
    """The position of each token behind the start of its prompt, shape (tokens,)."""
    mask: torch.Tensor
    """0 where a token sees another and a huge negative number elsewhere, shape (tokens, tokens)."""
    spans: list[tuple[int, int, int]]
    """Of each text the last token of its prompt, its own first one, and the one behind its last."""

    @classmethod
    def of(cls, groups: Sequence[tuple[list[int], list[list[int]]]]) -> Pack:
        """Packs groups of the token ids of a prompt, and of each of its texts."""
        rows: list[tuple[int, int, int, int]] = []  # token, place, group, text (-1: none)
        spans: list[tuple[int, int, int]] = []
        for number, (prompt, texts) in enumerate(groups):
            rows += [(token, k, number, -1) for k, token in enumerate(prompt)]
            last = len(rows) - 1
            for text in texts:
                own, first = len(spans), len(rows)
                rows += [(token, k, number, own) for k, token in enumerate(text, len(prompt))]
                spans.append((last, first, len(rows)))
        ids, places, group, text_of = torch.tensor(rows).T
        seen = (text_of[None] == -1) | (text_of[None] == text_of[:, None])
        seen = (seen & (group[None] == group[:, None])).tril()
        mask = torch.zeros(seen.shape).masked_fill(~seen, torch.finfo(torch.float32).min)
        return cls(ids, places, mask, spans)


class Adapter:
    """An adapter on its base, and what trains it.

    base: a folder of training/bases.py. adapter: a folder of PEFT with its tokenizer. layers: how
    many of the base's blocks are kept. Raises ValueError if their tokens are not the same.
    """

    def __init__(self, base: Path, adapter: Path, layers: int | None = None):
        from peft import PeftModel
        from tokenizers import Tokenizer
        from transformers import AutoModelForCausalLM

        from gaixie.training.modeling.eight_bits import quantise_linear_layers

        self.folder = adapter
        self.tokenizer = Tokenizer.from_file(str(adapter / COPIED[0]))
        options: dict[str, Any] = {"num_hidden_layers": layers} if layers else {}
        options |= {"dtype": "auto", "attn_implementation": "eager"}
        model = AutoModelForCausalLM.from_pretrained(base, **options)
        if model.config.vocab_size != self.tokenizer.get_vocab_size():
            raise ValueError(f"{base}: its tokens are not those of {adapter}")
        quantise_linear_layers(model)
        self.model: Any = PeftModel.from_pretrained(model, str(adapter), is_trainable=True)
        self.trained({self.model: 1.0})

    def trained(self, modules: dict[torch.nn.Module, float]) -> None:
        """Names the modules whose weights are trained, and their share of the learning rate."""
        groups: list[dict[str, Any]] = [
            {"params": [own for own in module.parameters() if own.requires_grad], "share": share}
            for module, share in modules.items()
        ]
        self.weights = [own for group in groups for own in group["params"]]
        self.optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.98), weight_decay=0.0)

    def states(self, pack: Pack) -> torch.Tensor:
        """Returns the last hidden states of a pack: float32, shape (tokens, dimensions)."""
        with torch.autocast("cpu", torch.bfloat16):
            found = self.model.base_model.model.model(
                pack.ids[None],
                attention_mask=pack.mask[None, None],
                position_ids=pack.places[None],
                use_cache=False,
            )
        return found.last_hidden_state[0].float()

    def update(self, rate: float) -> None:
        """Changes the weights by their gradients."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["share"]
        torch.nn.utils.clip_grad_norm_(self.weights, 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def save(self, output: Path, step: int) -> None:
        """Writes the adapter, and the state to go on from."""
        self.model.save_pretrained(output)
        for name in COPIED:
            shutil.copy(self.folder / name, output)
        state = {"step": step, "weights": self.weights, "optimizer": self.optimizer.state_dict()}
        torch.save(state, output / "state.part")
        (output / "state.part").replace(output / STATE)

    def resume(self, output: Path) -> int:
        """Takes the state of an output, if it has one, and returns how many steps were done."""
        if not (output / STATE).is_file():
            return 0
        state = torch.load(output / STATE, weights_only=True)
        self.optimizer.load_state_dict(state["optimizer"])
        with torch.no_grad():
            for own, saved in zip(self.weights, state["weights"], strict=True):
                own.copy_(saved)
        return int(state["step"])

    def ids(self, text: str) -> list[int]:
        """Returns the numbers of a text's tokens."""
        return list(self.tokenizer.encode(text, add_special_tokens=False).ids)
