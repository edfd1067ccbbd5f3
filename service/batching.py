"""Batches items of many requests: one thread, a bounded queue, batches by key.

    batcher = Batcher(work, most=2_000, queue=20_000)
    await batcher.submit(key, items, timeout=10)      # the results, in the order of the items

A model is many times faster on a batch than on single rows. So requests wait some milliseconds for
others with the same key; what arrives while a batch runs becomes the next batch. A request with
more items than a batch holds is cut into slices, each of which waits for the one before, so that
one pair never waits for a whole table.
"""

import asyncio
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any

from gaixie.service.part import busy


@dataclass(eq=False)
class _Slice:
    key: Hashable
    items: Sequence[Any]
    future: asyncio.Future[Sequence[Any]]


class Batcher:
    """A queue, and one thread that works on its items.

    work(key, items) -> one result for each. most: items of a batch. queue: items that may wait.
    wait: seconds that the first request of a batch waits for others. If a batch of several requests
    fails, each is tried alone, so that none fails because of another.
    """

    def __init__(
        self,
        work: Callable[[Any, list[Any]], Sequence[Any]],
        *,
        most: int,
        queue: int,
        wait: float = 0.002,
    ):
        self.work, self.most, self.queue, self.wait = work, most, queue, wait
        self._waiting: list[_Slice] = []
        self._open = 0
        """Requests that are not answered yet."""
        self._thread = ThreadPoolExecutor(1, "batch")
        self._loop: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def length(self) -> int:
        """Returns how many items wait."""
        return sum(len(one.items) for one in self._waiting if not one.future.done())

    async def submit(self, key: Hashable, items: Sequence[Any], timeout: float) -> list[Any]:
        """Returns the results of items, in their order.

        Raises HTTPException: 429 if the queue is full, 503 if it takes longer than timeout seconds
        or the service is about to end. A request that is cancelled or too late leaves the queue.
        """
        if self._closed:
            raise busy(503, "the service is shutting down")
        length = self.length
        if length and length + len(items) > self.queue:  # a single one may exceed it
            raise busy(429, f"{length:,} items are already waiting")
        self._open += 1
        try:
            async with asyncio.timeout(timeout):
                results: list[Any] = []
                for start in range(0, len(items), self.most):
                    part = items[start : start + self.most]
                    one = _Slice(key, part, asyncio.get_running_loop().create_future())
                    self._waiting.append(one)
                    if self._loop is None or self._loop.done():
                        self._loop = asyncio.create_task(self._run())
                    results += await one.future
                return results
        except TimeoutError:
            raise busy(503, f"not done within {timeout:g} s") from None
        finally:
            self._open -= 1

    async def close(self) -> None:
        """Refuses new items, and waits for those accepted."""
        self._closed = True
        while self._open:
            await asyncio.sleep(0.01)
        self._thread.shutdown()

    async def _run(self) -> None:
        """Works until nothing waits."""
        if self.length < self.most and not self._closed:
            await asyncio.sleep(self.wait)  # for other requests
        while batch := self._next():
            await self._work_on(batch)

    def _next(self) -> list[_Slice]:
        """Takes the next batch: slices of the first one's key, in order."""
        batch: list[_Slice] = []
        left: list[_Slice] = []
        size = 0
        for one in self._waiting:
            if one.future.done():  # who asked has left
                continue
            if batch and (one.key != batch[0].key or size + len(one.items) > self.most):
                left.append(one)
            else:
                batch.append(one)
                size += len(one.items)
        self._waiting = left
        return batch

    async def _work_on(self, batch: list[_Slice]) -> None:
        items = [item for one in batch for item in one.items]
        loop = asyncio.get_running_loop()
        try:
            results = await loop.run_in_executor(self._thread, self.work, batch[0].key, items)
        except Exception as error:  # a user's text may raise anything in a model
            if len(batch) > 1:
                for one in batch:
                    await self._work_on([one])
            elif not batch[0].future.done():
                batch[0].future.set_exception(error)
            return
        rest = iter(results)
        for one in batch:
            own = [*islice(rest, len(one.items))]
            if not one.future.done():
                one.future.set_result(own)
