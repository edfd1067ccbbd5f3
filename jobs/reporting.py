"""What reports are made of: jinja2 templates, which lie beside the code that fills them in, and plots."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import jinja2
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


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


def png_of(figure: Figure) -> bytes:
    """A figure as PNG. Figures are made without pyplot: no display, no state shared by threads."""
    png = io.BytesIO()
    FigureCanvasAgg(figure).print_png(png)
    return png.getvalue()
