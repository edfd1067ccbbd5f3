"""Shared by the tests of neural LTP models; real ones would need the network."""

from typing import Any


def ltp_backbone(vocabulary: int) -> dict[str, Any]:
    """Returns the configuration of a neural LTP encoder with one layer of 16 dimensions."""
    return {
        "_ltp_target_": "ltp_core.models.utils.transformer.load_transformers",
        "config": {
            "model_type": "electra",
            "vocab_size": vocabulary,
            "hidden_size": 16,
            "embedding_size": 16,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "intermediate_size": 16,
        },
    }
