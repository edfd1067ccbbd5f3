"""The base classes of a service's parts, each with routes below /v1 and something to load."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Sequence
from typing import Any, TypeVar

from fastapi import APIRouter, Request, Response
from pydantic_core import to_json

from gaixie.service import telemetry
from gaixie.service.batching import Batcher
from gaixie.service.guard import Gone
from gaixie.service.settings import ServiceSettings

Result = TypeVar("Result")


class Part:
    """One subject of a service, in each of its processes."""

    name = ""
    """Its name in GET /v1/about; the page shows a tab for each part that it knows."""
    router: APIRouter
    """Routes with the prefix /v1."""

    async def start(self) -> None:
        """Loads what the part needs; uses a thread if that is slow, so that /health answers."""

    async def stop(self) -> None:
        """Finishes the requests under way, then releases what it holds."""

    def ready(self) -> bool:
        """Says whether it answers now."""
        return True

    def about(self) -> dict[str, Any]:
        """Returns facts for clients: signature, limits."""
        return {}


class QueuedPart(Part):
    """A part whose requests share batches.

    cost: how many pairs an item counts as, in rates and in the queue.
    """

    cost = 1

    def __init__(self, settings: ServiceSettings):
        self.settings = settings
        self.router = APIRouter(prefix="/v1")
        self._batcher: Batcher[Any, Any, dict[str, Any]] | None = None

    def open_queue(
        self,
        work: Callable[[Any, list[Any]], Sequence[dict[str, Any]]],
        most: int,
        wait: float = 0.002,
        size: Callable[[Any], int] | None = None,
    ) -> None:
        """Starts accepting requests; the arguments are Batcher's."""
        queue = max(1, self.settings.queue // self.cost)
        self._batcher = Batcher(work, most=most, queue=queue, wait=wait, size=size, seen=self._seen)

    async def stop(self) -> None:
        if self._batcher is not None:
            await self._batcher.close()

    async def worked_on(
        self, request: Request, key: Hashable, items: Sequence[Any]
    ) -> list[dict[str, Any]]:
        """Returns the results of a request's items, through the queue. Raises Refused."""
        assert self._batcher is not None
        request.state.items = len(items)
        request.state.account.spend(0, self.cost * len(items))
        waiting = telemetry.QUEUE.labels(self.name)
        waiting.set(self.cost * (self._batcher.length + len(items)))
        try:
            work = self._batcher.submit(key, items, self.settings.timeout)
            return await while_connected(request, work)
        finally:
            waiting.set(self.cost * self._batcher.length)

    def _seen(self, items: int, seconds: float) -> None:
        telemetry.ITEMS.labels(self.name).inc(items)
        telemetry.BATCH.labels(self.name).observe(items)
        telemetry.BATCH_SECONDS.labels(self.name).observe(seconds)


def json_response(answer: dict[str, Any]) -> Response:
    """Returns an answer as JSON; floats that are not finite are null."""
    return Response(to_json(answer, inf_nan_mode="null"), media_type="application/json")


async def while_connected(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """Returns what work returns. Cancels it and raises Gone if the client hangs up before."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise Gone
        return task.result()
    finally:
        task.cancel()
        gone.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
