"""The back-end ``lightgbm``: the numbers of ``Booster.predict``, many times faster.

A saved LightGBM model is text. Each of its splits compares one feature with a threshold, so all
that matters of a value is between which two thresholds of its feature it lies: its bin. For every
bin of every feature a table says, one bit a leaf, which leaves of which trees a row in that bin can
still reach. The bitwise *and* over the row's features leaves one leaf a tree, whose values are
summed up. (The idea is QuickScorer's, Lucchese et al. 2015.) LightGBM itself is not imported.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

_CATEGORICAL, _DEFAULT_LEFT = 1, 2  # bits of LightGBM's decision_type; bits 4 and 8: missing type
_MISSING_ZERO, _MISSING_NAN = 1, 2
_ZERO = float(np.float32(1e-35))  # LightGBM's kZeroThreshold: what it counts as zero


class TreeModel:
    """The mean of LightGBM regressions that differ in their random seed."""

    backend = "lightgbm"

    def __init__(self, texts: list[str]):
        """texts: LightGBM models as text. Raises ValueError for what read_trees does not read."""
        self.texts = texts
        self.tables = read_trees(texts)

    def predict(self, features: np.ndarray) -> np.ndarray:
        """float64, shape (rows,), unbounded. features: shape (rows, columns), NaN for missing."""
        return predict_trees(np.ascontiguousarray(features, np.float32), *self.tables)

    def files(self) -> dict[str, bytes]:
        """What ``from_files`` reads, by file name."""
        return {f"lightgbm-{seed}.txt": text.encode() for seed, text in enumerate(self.texts)}

    @classmethod
    def from_files(cls, files: dict[str, bytes]) -> TreeModel:
        return cls([text.decode() for _, text in sorted(files.items())])


class Tables(NamedTuple):
    """Trees as tables over the bins of the features.

    thresholds: float64: those of feature 0 in ascending order, then those of feature 1…
    starts: int64, shape (columns + 1,): where each feature's thresholds start.
    has_zero_bin: bool, shape (columns,): whether zero counts as missing somewhere.
    reachable: uint8, shape (bins, bytes, trees): bit l of byte b is leaf 8 b + l of the tree.
        A feature with k thresholds has k + 3 bins: k + 1 intervals, NaN, zero.
    values: float64, shape (trees, leaves): what each leaf adds.
    """

    thresholds: np.ndarray
    starts: np.ndarray
    has_zero_bin: np.ndarray
    reachable: np.ndarray
    values: np.ndarray


class Split(NamedTuple):
    """One comparison: a value of at most ``threshold`` goes left."""

    tree: int
    feature: int
    threshold: float
    decision_type: int
    left: int
    """Leaves under the left branch, one bit each."""
    right: int


def read_trees(models: list[str]) -> Tables:
    """The tables of LightGBM models saved as text, for the mean of their predictions.

    Plain regression only: raises ValueError for anything else (several outputs, categorical
    splits, linear leaves, an objective that transforms its output).
    """
    splits, leaf_values = [], []
    columns = 0
    for model in models:
        header, *blocks = model.split("\nTree=")
        if "\nobjective=regression\n" not in header or "\nnum_class=1\n" not in header:
            raise ValueError("expected a LightGBM model with objective=regression and one output")
        named = next(line for line in header.splitlines() if line.startswith("feature_names="))
        columns = max(columns, len(named.split()))
        for block in blocks:
            fields = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
            if fields["num_cat"] != "0" or fields.get("is_linear", "0") != "0":
                raise ValueError("categorical splits and linear leaves are not read")
            splits += _splits(len(leaf_values), fields)
            leaf_values.append(np.array(fields["leaf_value"].split(), float) / len(models))
    leaves = max((len(values) for values in leaf_values), default=1)
    values = np.zeros((len(leaf_values), leaves))
    for tree, tree_values in enumerate(leaf_values):
        values[tree, : len(tree_values)] = tree_values

    by_feature = [
        sorted({split.threshold for split in splits if split.feature == feature})
        for feature in range(columns)
    ]
    starts = np.cumsum([0] + [len(thresholds) for thresholds in by_feature])
    all_leaves = [(1 << len(tree_values)) - 1 for tree_values in leaf_values]
    width = -(-leaves // 8)
    reachable = np.empty((starts[-1] + 3 * columns, width, len(leaf_values)), np.uint8)
    reachable[:] = _as_bytes(all_leaves, width)
    has_zero_bin = np.zeros(columns, bool)
    for split in splits:
        thresholds = by_feature[split.feature]
        # Each bin stands for its values; NaN and zero have a bin each after the intervals.
        goes_right = np.arange(len(thresholds) + 3) > thresholds.index(split.threshold)
        default_right = not split.decision_type & _DEFAULT_LEFT
        zero_right = not 0.0 <= split.threshold
        missing = split.decision_type >> 2 & 3
        if missing == _MISSING_ZERO:
            has_zero_bin[split.feature] = True
            zero_right = default_right
        goes_right[-2] = default_right if missing == _MISSING_NAN else zero_right
        goes_right[-1] = zero_right
        first = starts[split.feature] + 3 * split.feature
        bins = slice(first, first + len(goes_right))
        whole = all_leaves[split.tree]
        keeps = _as_bytes([whole & ~split.right, whole & ~split.left], width)
        reachable[bins, :, split.tree] &= keeps[:, goes_right.astype(int)].T
    return Tables(
        np.array([t for thresholds in by_feature for t in thresholds], float),
        starts.astype(np.int64),
        has_zero_bin,
        reachable,
        values,
    )


def _splits(tree: int, fields: dict[str, str]) -> list[Split]:
    """The splits of one tree, from the fields of its block."""
    left, right, feature, decision_type = (
        [int(number) for number in fields.get(name, "").split()]
        for name in ("left_child", "right_child", "split_feature", "decision_type")
    )
    thresholds = [float(number) for number in fields.get("threshold", "").split()]
    if any(kind & _CATEGORICAL for kind in decision_type):
        raise ValueError("categorical splits are not read")
    under = [0] * len(left)
    splits = []
    # Children come after their parents; a negative child ~k is leaf k.
    for node in reversed(range(len(left))):
        sides = [under[child] if child >= 0 else 1 << ~child for child in (left[node], right[node])]
        under[node] = sides[0] | sides[1]
        splits.append(Split(tree, feature[node], thresholds[node], decision_type[node], *sides))
    return splits


def _as_bytes(bit_sets: list[int], width: int) -> np.ndarray:
    """uint8, shape (width, sets): byte b of every bit set."""
    content = b"".join(bits.to_bytes(width, "little") for bits in bit_sets)
    return np.frombuffer(content, np.uint8).reshape(len(bit_sets), width).T


_BIT = np.zeros(256, np.uint8)
"""Position of the bit of a byte that has one."""
for _position in range(8):
    _BIT[1 << _position] = _position


@njit(cache=True, nogil=True)
def predict_trees(features, thresholds, starts, has_zero_bin, reachable, values):
    """Sum of the leaves that each row reaches: float64, shape (rows,).

    features: float32, shape (rows, columns), in C order; the rest as in Tables.
    """
    rows, columns = features.shape
    _, width, trees = reachable.shape
    flat = reachable.reshape(reachable.shape[0], width * trees)
    left = np.empty(width * trees, np.uint8)
    out = np.empty(rows)
    for row in range(rows):
        left[:] = 0xFF
        for column in range(columns):
            first, end = starts[column], starts[column + 1]
            x = np.float64(features[row, column])
            if np.isnan(x):
                place = end - first + 1
            elif has_zero_bin[column] and abs(x) <= _ZERO:
                place = end - first + 2
            else:
                place = np.searchsorted(thresholds[first:end], x)
            mask = flat[first + 3 * column + place]
            for k in range(width * trees):
                left[k] &= mask[k]
        # Four sums: an addition need not wait for the one before it.
        total = np.zeros(4)
        for byte in range(width):
            for tree in range(trees):
                bits = left[byte * trees + tree]
                if bits:
                    total[tree & 3] += values[tree, 8 * byte + _BIT[bits]]
        out[row] = total.sum()
    return out
