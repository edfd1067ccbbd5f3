"""Starts a new encoder-decoder from a BERT encoder instead of random weights.

BART's layers are BERT's: post-norm, GELU, learned positions. So every weight of BERT has a place:

    embeddings          row by row: the row of the token's character; of a word, the mean of its
                        characters' rows; special tokens by their roles; the rest, see _row
    positions           BERT's position and first token type added up; BART counts them from 2
    encoder layers      as they are
    decoder layers      spread over BERT's: self-attention, feed-forward and norms as they are, and
                        the attention to the encoder from the self-attention of the same layer

The encoder's hidden states equal BERT's to within 1e-3; the epsilon of the norms differs, 1e-5 here
and often 1e-12 there. Source: Rothe, Narayan and Severyn 2020, Leveraging Pre-trained Checkpoints
for Sequence Generation Tasks, BERT2BERT; there the attention to the encoder starts at random.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from transformers import (
    AutoModel,
    AutoTokenizer,
    BartConfig,
    BartForConditionalGeneration,
    BertModel,
    PreTrainedTokenizerBase,
)

from gaixie.training.modeling.model import special_ids
from gaixie.training.modeling.tokenizer import EntityAlignedTokenizer
from gaixie.training.modeling.vocabulary import BOS, EOS, MASK, PAD, UNK
from gaixie.udfs.metrics.encoder import loading

FULL_WIDTH = {mark: chr(ord(mark) + 0xFEE0) for mark in "!(),:;?"}
"""Full-width forms of ASCII punctuation: Chinese text has them before NFKC, and BERT knows them."""
SPREAD = 0.5
"""Noise of rows that no character provides, as a share of the standard deviation of BERT's rows."""


def load_bert(name: str) -> tuple[BertModel, PreTrainedTokenizerBase]:
    """Loads a BERT of transformers, by name or folder, and its tokenizer.

    Raises OSError or ValueError, in one line, if it cannot be loaded or has another architecture.
    """
    with loading(name):
        bert = AutoModel.from_pretrained(name, dtype=torch.float32)
        if not isinstance(bert, BertModel):
            raise ValueError(f"{bert.config.model_type} is not a BERT")
        activation, positions = bert.config.hidden_act, bert.embeddings.position_embeddings
        if activation not in ("gelu", "relu") or positions.num_embeddings < 3:
            raise ValueError(f"its activation is {activation}, expected gelu or relu")
        return bert, AutoTokenizer.from_pretrained(name)


def from_bert(
    bert: BertModel,
    characters: PreTrainedTokenizerBase,
    tokenizer: EntityAlignedTokenizer,
    decoder_layers: int | None = None,
    dropout: float = 0.1,
    seed: int = 13,
) -> BartForConditionalGeneration:
    """Returns the encoder-decoder, in training mode.

    characters: BERT's own tokenizer. decoder_layers: None for as many as the encoder has. seed: for
    the rows that no character provides.

    Raises ValueError if BERT's tokenizer lacks a special token.
    """
    own = bert.config
    sizes = {"attention_heads": own.num_attention_heads, "ffn_dim": own.intermediate_size}
    sides: dict[str, Any] = {
        f"{k}_{name}": n for k in ("encoder", "decoder") for name, n in sizes.items()
    }
    config = BartConfig(
        vocab_size=len(tokenizer),
        d_model=own.hidden_size,
        encoder_layers=own.num_hidden_layers,
        decoder_layers=decoder_layers or own.num_hidden_layers,
        **sides,
        max_position_embeddings=own.max_position_embeddings,
        activation_function=own.hidden_act,
        dropout=dropout,
        **special_ids(tokenizer),
    )
    model = BartForConditionalGeneration(config)
    with torch.no_grad():
        model.model.shared.weight.copy_(embedding_rows(bert, characters, tokenizer, seed))
        for part in (model.model.encoder, model.model.decoder):
            _copy_positions(part, bert)
        for layer, source in zip(model.model.encoder.layers, bert.encoder.layer, strict=True):
            _copy_layer(layer, source)
        count, depth = len(model.model.decoder.layers), len(bert.encoder.layer)
        for number, layer in enumerate(model.model.decoder.layers):
            # The last layer comes from BERT's last, the others evenly spaced before it.
            source = bert.encoder.layer[round((number + 1) * depth / count) - 1]
            _copy_layer(layer, source)
            _copy_attention(layer.encoder_attn, source.attention)
            _copy(layer.encoder_attn_layer_norm, source.attention.output.LayerNorm)
    return model


def embedding_rows(
    bert: BertModel,
    characters: PreTrainedTokenizerBase,
    tokenizer: EntityAlignedTokenizer,
    seed: int = 13,
) -> torch.Tensor:
    """Returns an embedding row for each token, from BERT's: float32, shape (tokens, hidden
    size)."""
    ids = characters.get_vocab()
    rows = bert.embeddings.word_embeddings.weight.detach()
    roles = {PAD: "pad", BOS: "cls", EOS: "sep", UNK: "unk", MASK: "mask"}
    special = {own: getattr(characters, f"{role}_token_id") for own, role in roles.items()}
    for own, number in special.items():
        if number is None:
            raise ValueError(f"BERT's tokenizer has no {roles[own]} token")
    random = np.random.default_rng(seed)
    deviation, mean = rows.std(0).numpy(), rows.mean(0).numpy()
    table = [
        _row(token, rows, ids) if number not in special else rows[special[number]]
        for number, token in enumerate(tokenizer.codec.tokens)
    ]
    # Indexed entities, bytes and characters unknown to BERT get distinct rows near the others.
    made = (mean + SPREAD * random.normal(size=(len(table), len(mean))) * deviation).astype("f4")
    pairs = zip(table, torch.from_numpy(made), strict=True)
    return torch.stack([new if row is None else row for row, new in pairs])


def known_characters(
    characters: PreTrainedTokenizerBase, tokenizer: EntityAlignedTokenizer
) -> tuple[int, int]:
    """Returns (number of single-character tokens that BERT has a row for, number of such
    tokens)."""
    ids = characters.get_vocab()
    single = [token for token in tokenizer.codec.tokens if len(token) == 1]
    return sum(_bert_id(token, ids) is not None for token in single), len(single)


def _row(token: str, rows: torch.Tensor, ids: Mapping[str, int]) -> torch.Tensor | None:
    """Returns the row of a character, or the mean of a word's; None if BERT lacks one."""
    if len(token) > 1 and token.startswith("<"):  # an indexed entity or a byte
        return None
    found = [_bert_id(character, ids) for character in token]
    known = [number for number in found if number is not None]
    return rows[known].mean(0) if len(known) == len(found) else None


def _bert_id(character: str, ids: Mapping[str, int]) -> int | None:
    full_width = FULL_WIDTH.get(character, character)
    for name in (full_width, character, character.lower()):
        if name in ids:
            return ids[name]
    return None


def _copy_positions(part: Any, bert: BertModel) -> None:
    """Copies positions, with the first token type added, and the norm after them."""
    source: Any = bert.embeddings
    rows = source.position_embeddings.weight + source.token_type_embeddings.weight[0]
    part.embed_positions.weight[part.embed_positions.offset :] = rows
    _copy(part.layernorm_embedding, source.LayerNorm)


def _copy_layer(layer: Any, source: Any) -> None:
    """Copies self-attention, feed-forward and their norms."""
    _copy_attention(layer.self_attn, source.attention)
    _copy(layer.self_attn_layer_norm, source.attention.output.LayerNorm)
    _copy(layer.fc1, source.intermediate.dense)
    _copy(layer.fc2, source.output.dense)
    _copy(layer.final_layer_norm, source.output.LayerNorm)


def _copy_attention(attention: Any, source: Any) -> None:
    for name in ("query", "key", "value"):
        _copy(getattr(attention, f"{name[0]}_proj"), getattr(source.self, name))
    _copy(attention.out_proj, source.output.dense)


def _copy(module: Any, source: Any) -> None:
    """Copies weight and bias."""
    module.weight.copy_(source.weight)
    module.bias.copy_(source.bias)
