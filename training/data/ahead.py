"""What comes next is made in a thread while what there is is used."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TypeVar

Item = TypeVar("Item")


def ahead(items: Iterator[Item | None]) -> Generator[Item, None, None]:
    """The items that are not None, of which there is no end, each begun when the one before it is given.

    Once this is closed, the thread ends with the next item, or the next None. An error comes in the place
    of the item.
    """
    stopped = Event()

    def make() -> Item | None:
        return next(item for item in items if item is not None or stopped.is_set())

    pool = ThreadPoolExecutor(1)
    try:
        made = pool.submit(make)
        while True:
            item = made.result()
            assert item is not None
            made = pool.submit(make)
            yield item
    finally:
        stopped.set()
        pool.shutdown()
