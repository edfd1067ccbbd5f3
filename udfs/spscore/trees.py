"""The back-end ``lightgbm``: computes what ``Booster.predict`` returns, many times faster.

A saved LightGBM model is text. Each of its splits compares one feature with a threshold. Its result
is a bit set, one bit a leaf, of the leaves that a row can still reach: those on the row's side, and
all that are not under the split. The bitwise *and* over all splits of a tree leaves one leaf, even
if the row never visits some of them. No branch depends on a value, so the processor's vector
registers compare many rows at once. (Bit sets of leaves come from QuickScorer, Lucchese et al.
2015; many rows at once, from V-QuickScorer, 2016.) This module does not import LightGBM.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

_CATEGORICAL, _DEFAULT_LEFT = 1, 2  # bits of LightGBM's decision_type; bits 4 and 8: missing type
_MISSING_ZERO, _MISSING_NAN = 1, 2

_HIGHEST = np.finfo(np.float32).max
_ROWS = 256
"""Rows in a batch: enough for the vector registers, few enough for the nearer caches."""

_DE_BRUIJN = {8: 0x1D, 16: 0x09AF, 32: 0x077CB531, 64: 0x03F79D71B4CB0A89}
"""By the width of a bit set: times a single bit, the top bits are a different number for each."""


class TreeModel:
    """The mean of LightGBM regressions that differ in their random seed."""

    backend = "lightgbm"

    def __init__(self, texts: list[str]):
        """Reads LightGBM models saved as text. Raises what read_trees raises."""
        self.texts = texts
        self.tables = read_trees(texts)

    def predict(self, features: np.ndarray) -> np.ndarray:
        """Returns float64, shape (rows,), unbounded. features: (rows, columns), NaN for missing."""
        return predict_trees(np.ascontiguousarray(features.T, np.float32), self.tables)


class Tables(NamedTuple):
    """Trees as lists of splits.

    columns: int64, shape (views,): the feature of each *view*. A feature that splits use has one
        view, or two if NaN goes left at one split and right at another.
    missing: float32, shape (views,): the value that replaces NaN: the lowest or the highest.
    starts: int64, shape (trees + 1,): where the splits of each tree start.
    views: int32, thresholds: float32, shape (splits,): what each split compares.
    at_most, above: unsigned, shape (splits,): leaves that a value can reach, bit l for leaf l.
    leaves: unsigned, shape (trees,): all leaves of each tree.
    values: float64, shape (trees * bits of a set,): what each leaf adds, at its slot.
    multiplier, shift: a single bit times the multiplier, shifted down, is the leaf's slot.
    """

    columns: np.ndarray
    missing: np.ndarray
    starts: np.ndarray
    views: np.ndarray
    thresholds: np.ndarray
    at_most: np.ndarray
    above: np.ndarray
    leaves: np.ndarray
    values: np.ndarray
    multiplier: int
    shift: int


class Split(NamedTuple):
    """One comparison: a value of at most ``threshold`` goes left."""

    tree: int
    feature: int
    threshold: np.float32
    nan_left: bool
    left: int
    """Leaves under the left branch, one bit each."""
    right: int


def read_trees(models: list[str]) -> Tables:
    """Builds the tables for the mean prediction of LightGBM models saved as text.

    Reads plain regression only. Raises ValueError for anything else: several outputs, categorical
    splits, linear leaves, zero as a missing value, an objective that transforms its output, or more
    than 64 leaves.
    """
    splits: list[Split] = []
    leaf_values: list[np.ndarray] = []
    for model in models:
        header, *blocks = model.split("\nTree=")
        if "\nobjective=regression\n" not in header or "\nnum_class=1\n" not in header:
            raise ValueError("expected a LightGBM model with objective=regression and one output")
        for block in blocks:
            fields = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
            if fields["num_cat"] != "0" or fields.get("is_linear", "0") != "0":
                raise ValueError("categorical splits and linear leaves are not supported")
            splits += _splits(len(leaf_values), fields)
            leaf_values.append(np.array(fields["leaf_value"].split(), float) / len(models))
    leaves = max((len(values) for values in leaf_values), default=1)
    width = next((width for width in _DE_BRUIJN if width >= leaves), None)
    if width is None:
        raise ValueError(f"trees of {leaves} leaves, expected at most {max(_DE_BRUIJN)}")

    splits.sort(key=lambda split: split.tree)
    views = sorted({(split.feature, split.nan_left) for split in splits})
    number_of = {view: number for number, view in enumerate(views)}
    kind = np.dtype(f"u{width // 8}")
    whole = [(1 << len(values)) - 1 for values in leaf_values]
    counts = np.bincount([split.tree for split in splits], minlength=len(leaf_values))
    multiplier, shift = _DE_BRUIJN[width], width - width.bit_length() + 1
    slots = [((1 << leaf) * multiplier >> shift) % width for leaf in range(width)]
    values = np.zeros((len(leaf_values), width))
    for tree, tree_values in enumerate(leaf_values):
        values[tree, slots[: len(tree_values)]] = tree_values
    return Tables(
        np.array([feature for feature, _ in views], np.int64),
        np.array([-np.inf if nan_left else np.inf for _, nan_left in views], np.float32),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        np.array([number_of[split.feature, split.nan_left] for split in splits], np.int32),
        np.array([split.threshold for split in splits], np.float32),
        np.array([whole[split.tree] & ~split.right for split in splits], kind),
        np.array([whole[split.tree] & ~split.left for split in splits], kind),
        np.array(whole, kind),
        values.ravel(),
        multiplier,
        shift,
    )


def _splits(tree: int, fields: dict[str, str]) -> list[Split]:
    """Returns the splits of one tree, from the fields of its block."""
    names = ("left_child", "right_child", "split_feature", "decision_type")
    left, right, feature, kinds = ([*map(int, fields.get(name, "").split())] for name in names)
    exact = np.array(fields.get("threshold", "").split(), float)
    with np.errstate(over="ignore"):
        rounded = exact.astype(np.float32)
    # Features are float32: at most the threshold means at most the float32 at or below it. An
    # infinite threshold separates NaN from all else: no value is above the highest.
    lower = np.nextafter(rounded, np.float32(-np.inf))
    thresholds = np.minimum(np.where(rounded > exact, lower, rounded), _HIGHEST)
    under = [0] * len(left)
    splits = []
    # Children come after their parents; a negative child ~k is leaf k.
    for node in reversed(range(len(left))):
        kind = kinds[node]
        missing = kind >> 2 & 3
        if kind & _CATEGORICAL or missing == _MISSING_ZERO:
            raise ValueError("categorical splits and zero as a missing value are not supported")
        # Where nothing counts as missing, LightGBM reads NaN as 0.
        nan_left = bool(kind & _DEFAULT_LEFT) if missing == _MISSING_NAN else exact[node] >= 0
        sides = [under[child] if child >= 0 else 1 << ~child for child in (left[node], right[node])]
        under[node] = sides[0] | sides[1]
        splits.append(Split(tree, feature[node], thresholds[node], bool(nan_left), *sides))
    return splits


@njit(cache=True, nogil=True)
def predict_trees(features, tables):
    """Returns the sum of the leaves that each row reaches: float64, shape (rows,).

    features: float32, shape (columns, rows), in C order. tables: see Tables.
    """
    columns, missing, starts, views, thresholds, at_most, above, leaves, values = tables[:9]
    rows, trees = features.shape[1], len(leaves)
    width = len(values) // max(trees, 1)
    block = np.zeros((len(columns), _ROWS), np.float32)
    reached, slots = np.empty(_ROWS, leaves.dtype), np.empty(_ROWS, leaves.dtype)
    factor, down = leaves.dtype.type(tables.multiplier), leaves.dtype.type(tables.shift)
    total = np.empty(_ROWS)
    out = np.empty(rows)
    for start in range(0, rows, _ROWS):
        count = min(_ROWS, rows - start)
        for view in range(len(columns)):
            x = features[columns[view], start : start + count]
            for row in range(count):
                known = min(x[row], _HIGHEST)
                block[view, row] = missing[view] if np.isnan(x[row]) else known
        total[:] = 0.0
        for tree in range(trees):
            reached[:] = leaves[tree]
            for split in range(starts[tree], starts[tree + 1]):
                x = block[views[split]]
                threshold, low, high = thresholds[split], at_most[split], above[split]
                for row in range(_ROWS):
                    reached[row] &= high if x[row] > threshold else low
            # Unsigned throughout: numba checks whether a signed index counts from the end.
            for row in range(_ROWS):
                slots[row] = reached[row] * factor  # its low bits, as wide as the set
            first = np.uint64(tree * width)
            for row in range(_ROWS):
                total[row] += values[first + np.uint64(slots[row] >> down)]
        out[start : start + count] = total[:count]
    return out
