"""Trains four small networks that tell good reviews from bad ones: MLP, CNN, GRU and LSTM.

Each starts from the word vectors and trains them too; it has dropout before its last layer.
Training stops after two epochs without a lower validation loss and keeps the best epoch.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
import torch
from torch import nn

from gaixie.udfs.metrics.weem4pg import WordVectors

WIDTH, FILTERS, KERNELS, RATE, BATCH = 64, 48, (3, 4, 5), 2e-3, 64
WORDS, EPOCHS = 80, 8
"""Words of a review that are read, and the maximum number of epochs."""
PADDING, UNKNOWN = 0, 1


NETWORKS = ("MLP", "CNN", "GRU", "LSTM")


class Classifier(nn.Module):
    """Maps word ids, (reviews, words), to logits of a good review, (reviews,).

    MLP averages the words and applies one hidden layer; CNN applies convolutions of three widths
    and takes each filter's maximum (Kim 2014); GRU and LSTM take each state's maximum.
    """

    def __init__(self, name: str, matrix: np.ndarray):
        super().__init__()
        given, self.name = torch.from_numpy(matrix.copy()), name
        self.words = nn.Embedding.from_pretrained(given, freeze=False, padding_idx=PADDING)
        width, size = matrix.shape[1], WIDTH
        if name == "MLP":
            self.body: nn.Module = nn.Sequential(nn.Linear(width, WIDTH), nn.ReLU())
        elif name == "CNN":
            filters = (nn.Conv1d(width, FILTERS, k, padding=k // 2) for k in KERNELS)
            self.body, size = nn.ModuleList(filters), FILTERS * len(KERNELS)
        else:
            self.body = getattr(nn, name)(width, WIDTH, batch_first=True)
        self.head = nn.Sequential(nn.Dropout(0.3), nn.Linear(size, 1))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        ids = ids[:, : max(1, int((ids != PADDING).any(0).sum()))]
        mask = (ids != PADDING).float().unsqueeze(2)
        words, body = self.words(ids), self.body
        if self.name == "MLP":
            found = body((words * mask).sum(1) / mask.sum(1).clamp(min=1))
        elif isinstance(body, nn.ModuleList):
            turned = (words * mask).transpose(1, 2)
            found = torch.cat([torch.relu(layer(turned)).amax(2) for layer in body], dim=1)
        else:
            found = body(words)[0].masked_fill(mask == 0, -1.0).amax(1)
        return self.head(found)[:, 0]


def vocabulary(
    rows: Iterable[Sequence[str]], vectors: WordVectors
) -> tuple[dict[str, int], np.ndarray]:
    """Returns ids, from 2, of words with a vector, and the matrix: float32, (words + 2, width)."""
    words = sorted({word for word in chain.from_iterable(rows) if word in vectors.rows})
    kept = vectors.matrix[[vectors.rows[word] for word in words]]
    matrix = np.vstack([np.zeros((2, vectors.matrix.shape[1])), kept]).astype(np.float32)
    return {word: 2 + k for k, word in enumerate(words)}, matrix


def numbered(rows: Sequence[Sequence[str]], ids: dict[str, int]) -> np.ndarray:
    """Returns the ids of each review's first words, padded: int64, shape (reviews, WORDS)."""
    table = np.full((len(rows), WORDS), PADDING)
    for number, row in enumerate(rows):
        cut = [ids.get(word, UNKNOWN) for word in row[:WORDS]]
        table[number, : len(cut)] = cut
    return table


Part = tuple[np.ndarray, np.ndarray]
"""Word ids and labels of some reviews."""


def train(name: str, matrix: np.ndarray, learned: Part, validation: Part, seed: int) -> Classifier:
    """Trains a network on the part ``learned``; ``validation`` decides when to stop."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    network = Classifier(name, matrix)
    optimizer = torch.optim.Adam(network.parameters(), lr=RATE)
    ids, label = learned
    best, waited = (float("inf"), copy.deepcopy(network.state_dict())), 0
    for _ in range(EPOCHS):
        network.train()
        order = rng.permutation(len(ids))
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            logits = network(torch.from_numpy(ids[rows]))
            target = torch.from_numpy(label[rows].astype(np.float32))
            loss = nn.functional.binary_cross_entropy_with_logits(logits, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        right = np.clip(of_label(network, *validation), 1e-7, 1 - 1e-7)
        value = float(-np.log(right).mean())
        if value < best[0]:
            best, waited = (value, copy.deepcopy(network.state_dict())), 0
        elif (waited := waited + 1) > 1:
            break
    network.load_state_dict(best[1])
    return network


def of_label(network: Classifier, ids: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Returns the network's probability of each review's own label: float64, shape (reviews,)."""
    network.eval()
    with torch.inference_mode():
        blocks = [
            torch.sigmoid(network(torch.from_numpy(ids[k : k + 512]))).numpy()
            for k in range(0, len(ids), 512)
        ]
    good = np.concatenate(blocks).astype(np.float64)
    return np.where(label, good, 1 - good)
