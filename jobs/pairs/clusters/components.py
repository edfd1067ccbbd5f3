"""Joins edges into connected components, on the driver."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components


def join_edges(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns (nodes, least node of each one's component), both int64, ascending by node."""
    nodes, ends = np.unique(np.concatenate([a, b]).astype(np.int64), return_inverse=True)
    size = len(nodes)
    if not size:
        return nodes, nodes
    graph = coo_array((np.ones(len(a), np.int8), (ends[: len(a)], ends[len(a) :])), (size, size))
    count, label = connected_components(graph, directed=False)
    least = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(least, label, nodes)
    return nodes, least[label]


def strongest_edges(
    component: np.ndarray, score: np.ndarray, a: np.ndarray, b: np.ndarray, most: int
) -> np.ndarray:
    """Returns the rows of the edges with the highest scores of each component, at most `most` of
    each; equal scores by their nodes."""
    order = np.lexsort((b, a, -score, component))
    sorted_component = component[order]
    starts = np.flatnonzero(np.append(True, sorted_component[1:] != sorted_component[:-1]))
    sizes = np.diff(np.append(starts, len(order)))
    rank = np.arange(len(order)) - np.repeat(starts, sizes)
    return order[rank < most]
