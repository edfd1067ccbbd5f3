"""Computes token embeddings and sentence vectors of a pretrained encoder, in batches by length.

gaixie.udfs.networks loads it; ``research/make_encoder.py --output models/e5-small`` makes one
without a network.

Texts are truncated at the model's maximum. The shape of a batch changes the last bits of matrix
products, so scores of one text agree to about six digits, not exactly.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gaixie.udfs.meaning.pair_encoder import batches
from gaixie.udfs.networks import choose_device, load_network, load_tokenizer, loading, pad

if TYPE_CHECKING:
    import torch

DEFAULT_MODEL = "models/e5-small"
HOW_TO_MAKE = f"python research/make_encoder.py --output {DEFAULT_MODEL} makes it"


@dataclass(frozen=True)
class TokenEmbeddings:
    """Embeddings of the tokens of some texts, special tokens included."""

    vectors: torch.Tensor
    """(tokens, width) float32, of length 1, text after text, on the encoder's device."""
    offsets: np.ndarray
    """(texts + 1,) int64: text k has the rows from offsets[k] up to offsets[k + 1]."""
    ids: np.ndarray
    """(tokens,) int64: the tokens' numbers in the vocabulary."""

    def __getitem__(self, text: int) -> torch.Tensor:
        """Returns the rows of a text's tokens."""
        return self.vectors[self.offsets[text] : self.offsets[text + 1]]


class Encoder:
    """A pretrained encoder on one device; ``load_encoder`` gives one for each process.

    model: folder or cached name. batch_tokens: tokens in a batch, padding included; None is 1,024
    on the CPU, 16,384 on a GPU, which is used if there is one.

    Raises OSError or ValueError, in one line, if the model cannot be loaded.
    """

    def __init__(self, model: str = DEFAULT_MODEL, batch_tokens: int | None = None) -> None:
        import transformers

        self.device = choose_device("auto")
        self.batch_tokens = batch_tokens or (1024 if self.device == "cpu" else 16384)
        with loading(model, HOW_TO_MAKE):
            config = transformers.AutoConfig.from_pretrained(model, local_files_only=True)
            self.tokenizer = load_tokenizer(model)
            self.layer: int = config.num_hidden_layers
            self.network = load_network(transformers.AutoModel, model, config).to(self.device)
        positions = getattr(config, "max_position_embeddings", self.tokenizer.model_max_length)
        self.max_tokens = min(self.tokenizer.model_max_length, positions)

    def token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Returns each text's token numbers, special tokens included, at most max_tokens."""
        if not texts:
            return []
        return self.tokenizer(list(texts), truncation=True, max_length=self.max_tokens)["input_ids"]

    def token_embeddings(self, texts: Sequence[str]) -> TokenEmbeddings:
        """Returns contextual embeddings of every token."""
        import torch

        ids = self.token_ids(texts)
        offsets = np.cumsum([0, *map(len, ids)])
        width = self.network.config.hidden_size
        vectors = torch.empty((int(offsets[-1]), width), device=self.device)
        for rows, hidden, mask in self._batches(ids):
            order = np.concatenate([np.arange(offsets[row], offsets[row + 1]) for row in rows])
            unit = torch.nn.functional.normalize(hidden[mask], dim=-1)
            vectors[torch.from_numpy(order).to(self.device)] = unit
        numbers = np.array([number for row in ids for number in row], np.int64)
        return TokenEmbeddings(vectors, offsets, numbers)

    def sentence_vectors(self, texts: Sequence[str]) -> np.ndarray:
        """Returns the mean of each text's token embeddings, at length 1: (texts, width) float32."""
        import torch

        ids = self.token_ids(texts)
        vectors = np.empty((len(ids), self.network.config.hidden_size), np.float32)
        for rows, hidden, mask in self._batches(ids):
            sums = (hidden * mask.unsqueeze(-1)).sum(dim=1)  # they have the direction of the means
            vectors[rows] = torch.nn.functional.normalize(sums, dim=-1).cpu().numpy()
        return vectors

    def _batches(
        self, ids: list[list[int]]
    ) -> Iterator[tuple[list[int], torch.Tensor, torch.Tensor]]:
        """Yields (rows, hidden states (rows, tokens, width) float32, mask (rows, tokens))."""
        import torch

        for rows in batches([len(row) for row in ids], self.batch_tokens):
            batch, mask = pad([ids[row] for row in rows], self.tokenizer.pad_token_id, self.device)
            with torch.inference_mode():
                hidden = self.network(input_ids=batch, attention_mask=mask.long())
            yield rows, hidden.last_hidden_state.float(), mask


load_encoder = functools.cache(Encoder)
"""Loads an encoder, once in a process. Raises as ``Encoder`` does."""


def distinct(*columns: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """Returns the distinct texts, and the index of each text in them: int64, (columns, rows)."""
    numbers: dict[str, int] = {}
    rows = [[numbers.setdefault(text, len(numbers)) for text in column] for column in columns]
    return list(numbers), np.array(rows, np.int64)
