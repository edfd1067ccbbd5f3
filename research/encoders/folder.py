"""Builds a BERT from given weights and writes its folder for transformers, for both encoders."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from transformers import BertConfig, BertModel


def build_network(
    config: BertConfig, weights: Callable[[str, torch.Size], torch.Tensor]
) -> BertModel:
    """Builds the network in float32. Its pooler is zero, because the packages leave it out.

    weights: returns the values of a BertModel tensor, given its name and shape.
    """
    import torch
    from transformers import BertModel

    with torch.device("meta"):
        network = BertModel(config)
    tensors = {
        name: torch.zeros(empty.shape) if name.startswith("pooler.") else weights(name, empty.shape)
        for name, empty in network.state_dict().items()
    }
    network.load_state_dict(tensors, assign=True)
    return network


def write_network(network: BertModel, tokens: dict[str, str], folder: Path) -> None:
    """Writes the network and the tokenizer's settings. tokens: the special tokens by role."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    network.save_pretrained(folder)
    for path in folder.glob("*.safetensors"):
        path.chmod(0o644)  # safetensors makes it private
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": network.config.max_position_embeddings,
        "clean_up_tokenization_spaces": False,
        **{f"{name}_token": token for name, token in tokens.items()},
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2), encoding="utf-8")
