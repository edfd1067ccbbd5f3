"""What reports are made of: jinja2 templates, which lie beside the code that fills them in, and plots."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from gaixie.udfs.stages import SCORE_BINS

BARS = 50
"""Of a histogram from 0 to 1."""


def render(template: Path, **values: Any) -> str:
    """The text of a template; values are escaped in .html.j2 alone."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(template.parent),
        undefined=jinja2.StrictUndefined,
        autoescape=template.name.endswith(".html.j2"),
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template.name).render(values)


def bars_of(bins: Mapping[int, int]) -> np.ndarray:
    """Pairs in BARS bars of equal width from 0 to 1, from pairs by gaixie.udfs.stages.score_bin."""
    bars = np.array([min(index * BARS // SCORE_BINS, BARS - 1) for index in bins], int)
    return np.bincount(bars, weights=[*bins.values()], minlength=BARS)


def png_of(figure: Figure) -> bytes:
    """A figure as PNG. Figures are made without pyplot: no display, no state shared by threads."""
    png = io.BytesIO()
    FigureCanvasAgg(figure).print_png(png)
    return png.getvalue()
