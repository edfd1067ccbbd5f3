"""What both encoders share: a BERT of given weights, and its folder for transformers."""

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
    """The network, float32. Its pooler, which the packages leave out, is zero.

    weights: the values of a tensor of BertModel by its name and shape.
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
    """Network and settings of the tokenizer. tokens: the special ones, by their roles."""
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
