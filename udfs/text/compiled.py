"""Compiles the kernels of udfs/text and udfs/meaning, and prepares their arrays.

numba's reference counts (``_nrt``) are off. These kernels allocate no arrays and their callers keep
the arrays that they pass, and counting references to every view of a row took a third of the time.
"""

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

_UNWRAPPED = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
inner = njit(nogil=True, _nrt=False, **_UNWRAPPED)
"""A kernel that only kernels call, compiled without wrappers for Python."""

summing = njit(nogil=True, _nrt=False, fastmath={"reassoc"}, **_UNWRAPPED)
"""A kernel in which the compiler may add floats in any order, and so several at a time."""

Column = TypeVar("Column", bound="tuple[np.ndarray, ...]")

inlined = njit(nogil=True, _nrt=False, inline="always")
"""A kernel that is inlined into its callers."""


def read_only(array: np.ndarray, dtype: Any = None) -> np.ndarray:
    """Returns the array read-only, so that numba, which distinguishes writable arrays, compiles
    each kernel for one type only."""
    view: np.ndarray = np.ascontiguousarray(array, dtype).view()
    view.flags.writeable = False
    return view


def frozen(*columns: Column) -> list[Column]:
    """Returns named tuples of arrays, such as CodePoints and Words, with read-only arrays."""
    return [type(column)(*map(read_only, column)) for column in columns]


@inlined
def row_of(column, row):
    """Returns a row of CodePoints or of Words."""
    return column[0][column[1][row] : column[1][row + 1]]


@cache
def announce_compiling() -> None:
    """Says on standard error, once in a process, that kernels will be compiled, if those of the
    features are not cached."""
    folder = os.environ.get("NUMBA_CACHE_DIR")
    if folder and not any(Path(folder).rglob("extract._extract_rows-*.nbi")):
        print("gaixie: compiling kernels, once on this machine: about 30 s", file=sys.stderr)
