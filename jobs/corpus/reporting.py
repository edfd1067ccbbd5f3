"""What the plots of jobs share. Templates and JSON: gaixie.udfs.reports, which training uses too."""

from __future__ import annotations

import io
from collections.abc import Mapping

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from gaixie.udfs.reports import render
from gaixie.udfs.spscore.stages import SCORE_BINS

__all__ = ["BARS", "bars_of", "png_of", "render"]

BARS = 50
"""Of a histogram from 0 to 1."""


def bars_of(bins: Mapping[int, int]) -> np.ndarray:
    """Pairs in BARS bars of equal width from 0 to 1, from pairs by gaixie.udfs.spscore.stages.score_bin."""
    bars = np.array([min(index * BARS // SCORE_BINS, BARS - 1) for index in bins], int)
    return np.bincount(bars, weights=[*bins.values()], minlength=BARS)


def png_of(figure: Figure) -> bytes:
    """A figure as PNG. Figures are made without pyplot: no display, no state shared by threads."""
    png = io.BytesIO()
    FigureCanvasAgg(figure).print_png(png)
    return png.getvalue()
