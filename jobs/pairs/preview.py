"""What a dry run shows of a method whose pairs a model writes: examples, and what all of it takes."""

from __future__ import annotations

import time
from collections.abc import Sequence

from gaixie.jobs.pairs.writing import Sentences, Written, loaded

EXAMPLES = 5
MEASURED = 32
"""Sentences whose time is measured, behind the examples, which warm up."""


def preview(method: Sentences, sentences: Sequence[str], total: float, cores: int) -> None:
    """Prints pairs of the first sentences, and the hours that all take at the rate of the next."""
    writer = loaded(method)
    for item in writer.write(sentences[:EXAMPLES]):
        _print_example(item)
    measured = sentences[EXAMPLES : EXAMPLES + MEASURED]
    if not measured:
        print("estimate: none, from so few sentences")
        return
    started = time.monotonic()
    for _ in writer.write(measured):
        pass
    rate = len(measured) / (time.monotonic() - started)
    hours = total / rate / cores / 3600
    print(
        f"estimate: {rate:,.2f} sentences/s in one task ({len(measured)} measured here); about {total:,.0f} "
        f"sentences take {hours:,.2f} hours in {cores} tasks at once like this one"
    )


def _print_example(item: Written) -> None:
    told = [item.reason or "a pair", *(f"{k} {v}" for k, v in (item.parameters or {}).items())]
    print(f"  {item.source}\n  -> {item.paraphrase or ''} ({', '.join(told)})")
