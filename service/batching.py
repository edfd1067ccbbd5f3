"""Batches items of many requests: one thread, a bounded queue, batches by key and length.

    batcher = Batcher(work, most=2_000, queue=20_000)
    await batcher.submit(key, items, timeout=10)      # the results, in the order of the items

A model is many times faster on a batch than on single rows. So requests wait some milliseconds for
others with the same key; what arrives while a batch runs becomes the next batch.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from gaixie.service.refusals import Refused

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")
Result = TypeVar("Result")

FORGET = 0.8
"""The weight of the earlier rate when a finished batch updates it."""


@dataclass(eq=False)
class _Request(Generic[Key, Item, Result]):
    key: Key
    items: Sequence[Item]
    future: asyncio.Future[list[Result]]
    begun: int = 0
    """Items that are or were in a batch."""
    results: dict[int, Result] = field(default_factory=dict)


class Batcher(Generic[Key, Item, Result]):
    """A queue, and one thread that works on its items.

    work(key, items) -> one result for each. most: items of a batch. queue: items that may wait.
    wait: seconds that the first request of a batch waits for others. size: sort key of a batch. If
    a batch of several requests fails, each is tried alone, so that none fails because of another.
    """

    def __init__(
        self,
        work: Callable[[Key, list[Item]], Sequence[Result]],
        *,
        most: int,
        queue: int,
        wait: float = 0.002,
        size: Callable[[Item], int] | None = None,
        seen: Callable[[int, float], None] = lambda items, seconds: None,
    ):
        self.work, self.most, self.queue, self.wait = work, most, queue, wait
        self.size, self.seen = size, seen
        self.rate = 0.0
        """Recent items per second of work; 0 before the first batch."""
        self._waiting: dict[_Request[Key, Item, Result], None] = {}  # in order of arrival
        self._items = 0
        self._under_way = 0
        self._arrived, self._idle = asyncio.Event(), asyncio.Event()
        self._idle.set()
        self._thread = ThreadPoolExecutor(1, "batch")
        self._loop: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def length(self) -> int:
        """Returns how many items wait."""
        return self._items

    async def submit(self, key: Key, items: Sequence[Item], timeout: float) -> list[Result]:
        """Returns the results of items, in their order.

        Raises Refused: 429 if the queue is full, 503 if it takes longer than timeout seconds or the
        service is about to end. A request that is cancelled or too late leaves the queue.
        """
        if self._closed:
            raise Refused(503, "the service is shutting down", retry_after=1)
        if not items:
            return []
        waiting = self.length
        if waiting and waiting + len(items) > self.queue:  # a single request may exceed the queue
            busy = f"{waiting:,} items are already waiting"
            raise Refused(429, busy, retry_after=self.seconds(waiting))
        if self._loop is None:
            self._loop = asyncio.create_task(self._run())
        future: asyncio.Future[list[Result]] = asyncio.get_running_loop().create_future()
        request = _Request(key, items, future)
        self._waiting[request] = None
        self._items += len(items)
        self._arrived.set()
        try:
            async with asyncio.timeout(timeout):
                return await future
        except TimeoutError:
            message = f"not done within {timeout:g} s"
            raise Refused(503, message, retry_after=self.seconds(self.length)) from None
        finally:
            self._leave(request)

    def _leave(self, request: _Request[Key, Item, Result]) -> None:
        if request in self._waiting:
            del self._waiting[request]
            self._items -= len(request.items) - request.begun

    def seconds(self, items: int) -> float:
        """Estimates the seconds for so many items from the recent rate; at least 1."""
        return max(1.0, items / self.rate) if self.rate else 1.0

    async def close(self) -> None:
        """Refuses new items, and waits for those accepted."""
        self._closed = True
        if self._loop is not None:
            while self._waiting or self._under_way:
                self._idle.clear()
                self._arrived.set()
                await self._idle.wait()
            self._loop.cancel()
        self._thread.shutdown()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._arrived.wait()
            if self._waiting and self.length < self.most and not self._closed:
                await asyncio.sleep(self.wait)  # for other requests
            while batch := self._next():
                self._under_way = len(batch)
                items = [request.items[k] for request, k in batch]
                began = time.perf_counter()
                try:
                    results = await loop.run_in_executor(
                        self._thread, self.work, batch[0][0].key, items
                    )
                    self._done(batch, results)
                except Exception as error:  # a user's text may raise anything in a model
                    await self._alone(batch, error)
                finally:
                    self._under_way = 0
                seconds = time.perf_counter() - began
                now = len(items) / max(seconds, 1e-9)
                self.rate = FORGET * self.rate + (1 - FORGET) * now if self.rate else now
                self.seen(len(items), seconds)
            self._arrived.clear()
            self._idle.set()

    def _next(self) -> list[tuple[_Request[Key, Item, Result], int]]:
        """Returns (request, index of the item) of the next batch: the first key's, in order."""
        batch: list[tuple[_Request[Key, Item, Result], int]] = []
        begun = []
        for request in self._waiting:
            if not batch or request.key == batch[0][0].key:
                end = min(len(request.items), request.begun + self.most - len(batch))
                batch += [(request, k) for k in range(request.begun, end)]
                self._items -= end - request.begun
                request.begun = end
                if end == len(request.items):
                    begun.append(request)
            if len(batch) == self.most:
                break
        for request in begun:
            del self._waiting[request]
        if size := self.size:
            batch.sort(key=lambda one: size(one[0].items[one[1]]))
        return batch

    def _done(
        self, batch: Sequence[tuple[_Request[Key, Item, Result], int]], results: Sequence[Result]
    ) -> None:
        for (request, k), result in zip(batch, results, strict=True):
            request.results[k] = result
            if len(request.results) == len(request.items) and not request.future.done():
                request.future.set_result([request.results[k] for k in range(len(request.items))])

    async def _alone(self, batch: list[tuple[Any, int]], error: Exception) -> None:
        """Retries each request of a failed batch alone; a single request gets the error."""
        requests = dict.fromkeys(request for request, _ in batch)
        for request in requests:
            own = [one for one in batch if one[0] is request]
            if len(requests) > 1:
                try:
                    items = [request.items[k] for _, k in own]
                    loop = asyncio.get_running_loop()
                    self._done(
                        own, await loop.run_in_executor(self._thread, self.work, request.key, items)
                    )
                    continue
                except Exception as own_error:
                    error = own_error
            if not request.future.done():
                request.future.set_exception(error)
            self._leave(request)
