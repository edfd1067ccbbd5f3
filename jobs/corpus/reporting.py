"""Prints tables on the console."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table


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
