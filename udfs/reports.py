"""Writes reports: jinja2 templates, stored beside the code that fills them in, JSON, and tables on
the console."""

import io
import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import jinja2
from pydantic_core import to_json
from rich import box
from rich.console import Console
from rich.table import Table

HUB_LICENSES = {
    *("apache-2.0", "mit", "bsd-3-clause", "cc0-1.0", "odbl", "odc-by", "unlicense"),
    *("cc-by-3.0", "cc-by-sa-3.0", "cc-by-4.0", "cc-by-sa-4.0", "cc-by-nd-4.0"),
    *("cc-by-nc-4.0", "cc-by-nc-sa-4.0", "cc-by-nc-nd-4.0"),
}
"""Licences that the Hugging Face hub knows by name; any other is 'other', with a name beside."""


def render(template: Path, **values: Any) -> str:
    """Fills in a template; escapes values only in .html.j2 files.

    Adds three filters to jinja2's: number (a float, see below), thousands (1,234) and cell (text in
    a Markdown table).
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(template.parent),
        undefined=jinja2.StrictUndefined,
        autoescape=template.name.endswith(".html.j2"),
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number, "thousands": "{:,}".format}
    environment.filters["cell"] = lambda text: str(text).replace("|", "\\|")
    return environment.get_template(template.name).render(values)


def license_head(name: str) -> dict[str, Any]:
    """Returns the keys of a card's header that state a licence, given its name in any case."""
    name = name.lower()
    if name in HUB_LICENSES:
        return {"license": name}
    return {"license": "other", "license_name": re.sub(r"[^a-z0-9.]+", "-", name).strip("-")}


def number(value: float | None, digits: int = 3) -> str:
    """Formats a float with the given decimals; a missing one is a dash."""
    return "–" if value is None or not math.isfinite(value) else f"{value:.{digits}f}"


def print_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], total: Sequence[str] | None = None
) -> None:
    """Prints a table of texts on stdout; the first column is aligned to the left, others to the
    right. Nothing is shortened, however narrow the terminal is."""
    table = Table(box=box.SIMPLE, show_edge=False, pad_edge=False, show_footer=total is not None)
    for number, (name, footer) in enumerate(zip(head, total or [""] * len(head), strict=True)):
        table.add_column(name, footer, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    with io.StringIO() as text:  # rich would end the process if nobody reads its output
        Console(file=text, width=1_000, highlight=False, markup=False).print(table)
        print(text.getvalue(), end="")


def write_report(template: Path, folder: Path, result: dict[str, Any], **values: Any) -> str:
    """Writes NAME.json, and NAME.md by the template NAME.md.j2, into a folder. Returns the latter's
    text.

    result: what both hold. values: what only the template takes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    name = template.name.removesuffix(".md.j2")
    write_json(folder / f"{name}.json", result)
    text = render(template, **result, **values)
    (folder / f"{name}.md").write_text(text, "utf-8")
    return text


def write_json(path: Path, value: Any) -> None:
    """Writes a report as JSON, with floats that are not finite as null."""
    path.write_bytes(to_json(value, indent=1, inf_nan_mode="null") + b"\n")
