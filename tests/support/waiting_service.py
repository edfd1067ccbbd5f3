"""A service whose answers wait for files: python waiting_service.py FOLDER PORT WORKERS DRAIN"""

import asyncio
import os
import sys
import threading
from functools import partial
from pathlib import Path

from fastapi import APIRouter, FastAPI

from gaixie.service import telemetry
from gaixie.service.app import make_app
from gaixie.service.part import Part
from gaixie.service.processes import serve
from gaixie.service.settings import ServiceSettings
from gaixie.udfs.command_line import run_command


class Waiting(Part):
    """Serves GET /v1/wait/NAME: writes FOLDER/NAME.begun, then waits for FOLDER/NAME.go."""

    name = "wait"

    def __init__(self, folder: Path):
        self.folder = folder
        self.router = APIRouter(prefix="/v1")
        self.router.get("/wait/{name}")(self.wait)
        self.router.get("/hang")(self.hang)

    async def start(self) -> None:
        if (self.folder / "broken").exists():
            raise RuntimeError("it cannot start")

    async def hang(self) -> None:
        """Blocks the process forever."""
        (self.folder / "hang.begun").touch()
        threading.Event().wait()

    async def wait(self, name: str) -> int:
        """The process that answers."""
        telemetry.QUEUE.labels(self.name).inc()
        (self.folder / f"{name}.begun").write_text(str(os.getpid()))
        while not (self.folder / f"{name}.go").exists():
            await asyncio.sleep(0.01)
        telemetry.QUEUE.labels(self.name).dec()
        return os.getpid()


def make(folder: Path) -> FastAPI:
    return make_app([Waiting(folder)], ServiceSettings())


if __name__ == "__main__":
    codes: list[int] = []
    port, workers, drain = map(int, sys.argv[2:])
    work = partial(serve, partial(make, Path(sys.argv[1])), "127.0.0.1", port, workers, drain)
    failed = run_command("serve", lambda: codes.append(work()))
    sys.exit(failed or codes[0])
