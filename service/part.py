"""A part of a service, and what the parts share."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from fastapi import APIRouter, HTTPException, Request, Response
from pydantic_core import to_json

Result = TypeVar("Result")


class Part:
    """One subject of a service, in each of its processes."""

    name = ""
    """Its name in GET /v1/about; the page shows a tab for each part that it knows."""
    router: APIRouter
    """Routes with the prefix /v1."""

    async def start(self) -> None:
        """Loads what the part needs."""

    async def stop(self) -> None:
        """Finishes the requests under way, then releases what it holds."""

    def about(self) -> dict[str, Any]:
        """Returns facts for clients: signature, limits."""
        return {}


def busy(status: int, message: str) -> HTTPException:
    """Returns the error of a request that may succeed a second later."""
    return HTTPException(status, message, {"Retry-After": "1"})


def json_response(answer: dict[str, Any]) -> Response:
    """Returns an answer as JSON; floats that are not finite are null."""
    return Response(to_json(answer, inf_nan_mode="null"), media_type="application/json")


async def while_connected(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """Returns what work returns; cancels it if the client hangs up before."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise busy(503, "the client has left")
        return task.result()
    finally:
        task.cancel()
        gone.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
