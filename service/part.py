"""What a service is made of: a part has routes below /v1, and something to load before it answers."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter


class Part:
    """One subject of a service, in each of its processes."""

    name = ""
    """How GET /v1/about calls it; the page shows a tab for each part that it knows."""
    router: APIRouter
    """With the prefix /v1."""

    async def start(self) -> None:
        """Loads what it needs. What takes long belongs into a thread: the process answers /health meanwhile."""

    async def stop(self) -> None:
        """Finishes what is under way, then lets go of what it holds."""

    def ready(self) -> bool:
        """Whether it answers now."""
        return True

    def about(self) -> dict[str, Any]:
        """What a client may want to know: signature, limits."""
        return {}
