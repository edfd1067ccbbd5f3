"""How the kernels of udfs/text and udfs/meaning are compiled, and what arrays they take.

Without numba's reference counts (``_nrt``): these kernels make no arrays, their callers keep the
ones that they hand over, and counting every view of a row took a third of the time.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np

njit: Any = numba.njit  # whose type hints do not know _nrt and the wrappers

entry = njit(cache=True, nogil=True, _nrt=False)
"""A kernel that Python calls."""

inner = njit(nogil=True, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""A kernel that only kernels call: without the code that Python would call it by."""

summing = njit(
    nogil=True, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True, fastmath={"reassoc"}
)
"""A kernel of which the compiler may add floats up in any order, so many at a time."""

Column = TypeVar("Column", bound="tuple[np.ndarray, ...]")

inlined = njit(nogil=True, _nrt=False, inline="always")
"""A kernel that is copied into those that call it."""


def read_only(array: np.ndarray, dtype: Any = None) -> np.ndarray:
    """The array as the one type that the kernels are compiled for: numba tells writable ones."""
    view: np.ndarray = np.ascontiguousarray(array, dtype).view()
    view.flags.writeable = False
    return view


def frozen(*columns: Column) -> list[Column]:
    """Named tuples of arrays, such as CodePoints and Words, with their arrays read-only."""
    return [type(column)(*map(read_only, column)) for column in columns]


@inlined
def row_of(column, row):
    """A row of CodePoints, or of Words."""
    return column[0][column[1][row] : column[1][row + 1]]


@cache
def announce_compiling() -> None:
    """Says on standard error, once in a process, that kernels are compiled where none are kept."""
    folder = os.environ.get("NUMBA_CACHE_DIR")
    if folder and not any(Path(folder).rglob("*.nbi")):
        print("gaixie: compiling kernels, once on this machine: about 30 s", file=sys.stderr)
