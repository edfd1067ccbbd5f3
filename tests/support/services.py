"""Runs services in threads, on real ports; has a part whose work a test can hold up, and an
application with all parts."""

import http.client
import json
import shutil
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json as pj
import uvicorn
from fastapi import APIRouter, FastAPI, Request
from manifests import write_scored
from pydantic import Field
from shared import ROOT

from gaixie.service.batching import Batcher
from gaixie.service.browsing import BrowsingPart, Pairs
from gaixie.service.listening import OPTIONS, bind, make_service
from gaixie.service.part import Part, while_connected
from gaixie.service.settings import ServiceSettings
from gaixie.udfs.meaning.explain import explainer
from gaixie.udfs.spscore import OUTPUTS, SPScore
from gaixie.udfs.storage.manifest import read_run
from gaixie.udfs.storage.settings import Strict

PATIENCE = 60
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
FLAGS += ["--no-first-run", "--disable-component-update"]


class Numbers(Strict):
    numbers: list[int] = Field(examples=[[1, 2]])


class Doubling(Part):
    """Serves POST /v1/double through a Batcher whose thread works while `go` is set."""

    name = "double"

    def __init__(self, queue: int = 10, timeout: float = PATIENCE):
        self.queue, self.timeout = queue, timeout
        self.worked: list[int] = []
        self.begun, self.go = threading.Event(), threading.Event()
        self.go.set()
        self.router = APIRouter(prefix="/v1")
        self.router.post("/double")(self.double)

    async def start(self) -> None:
        self.batcher = Batcher(self.work, most=4, queue=self.queue, wait=0)

    async def stop(self) -> None:
        await self.batcher.close()

    def work(self, key: str, items: list[int]) -> list[int]:
        self.begun.set()
        assert self.go.wait(PATIENCE)
        self.worked += items
        if 0 in items:
            raise ZeroDivisionError("an error that nobody thought of")
        return [2 * item for item in items]

    async def double(self, request: Request, given: Numbers) -> dict[str, list[int]]:
        """Twice each number."""
        work = self.batcher.submit("", given.numbers, self.timeout)
        return {"doubled": await while_connected(request, work)}


class Answer:
    def __init__(self, response: http.client.HTTPResponse):
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def error(self) -> tuple[int, str, str]:
        """Returns (status, code, message) of an error; asserts that it has the service's form."""
        assert self.headers["Content-Type"] == "application/json"
        assert set(self.json) == {"error"}
        assert set(self.json["error"]) == {"code", "message"}
        assert "\n" not in self.json["error"]["message"]
        assert len(self.json["error"]["message"]) <= 300
        return self.status, self.json["error"]["code"], self.json["error"]["message"]


class Service:
    """A running service: its address, and how to send it requests."""

    def __init__(self, port: int):
        self.port = port
        self.url = f"http://127.0.0.1:{port}"

    def ask(self, path: str, body: Any = None, method: str | None = None, **headers: str) -> Answer:
        """Sends a GET, or a POST if there is a body; bytes go unchanged, all else as JSON."""
        with self.asking(path, body, method, **headers) as connection:
            return Answer(connection.getresponse())

    @contextmanager
    def asking(
        self, path: str, body: Any, method: str | None = None, **headers: str
    ) -> Iterator[http.client.HTTPConnection]:
        """Yields a connection on which the request was sent; at the end, the client goes."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            sent = {"Content-Type": "application/json"} | sent
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method or ("GET" if body is None else "POST"), path, body, sent)
            yield connection
        finally:
            connection.close()


@contextmanager
def serving(app: FastAPI, drain: int = PATIENCE) -> Iterator[Service]:
    """Yields a running service of the app, and stops it as SIGTERM would."""
    listening = bind("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(app, timeout_graceful_shutdown=drain, **OPTIONS))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        while not server.started:
            thread.join(0.05)
            assert thread.is_alive(), "the application did not start"
        yield Service(listening.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join()


def answers(url: str) -> bool:
    """Tells whether a new request is answered; one that waits in the port's queue is not."""
    try:
        return urllib.request.urlopen(f"{url}/ready", timeout=5).status == 200
    except OSError:
        return False


def scored_examples() -> pa.Table:
    """Returns the example pairs with the columns of a run."""
    table = pj.read_json(ROOT / "examples/pairs.jsonl").select(["source", "paraphrase"])
    judged = SPScore.load().judge(table["source"], table["paraphrase"])
    for name in OUTPUTS:
        table = table.append_column(name, pa.array(judged[name], pa.float32()))
    return table.append_column("pair_id", pa.array([f"{k:032x}" for k in range(len(table))]))


def whole_app(folder: Path, table: pa.Table, model: Path, **limits: Any) -> FastAPI:
    """Returns an application with all parts, of tier core. folder: an empty one for its run. model:
    of what writes."""
    uri = write_scored(folder / "runs" / "examples", {("llm", 1): table})
    manifest, settings = read_run(uri), ServiceSettings(**limits)
    why = explainer("SPScore-zh|tier:core|")
    part = BrowsingPart(Pairs(uri, manifest), manifest, why, settings)
    return make_service("core", settings, part, model=str(model))


def texts(page, selector: str) -> list[str]:
    return page.locator(selector).all_inner_texts()


def until(page, true) -> None:
    """Waits until ``true`` holds; Playwright's own wait evaluates a string, which the page's policy
    forbids."""
    for _ in range(20 * PATIENCE):
        if true():
            return
        page.wait_for_timeout(50)
    raise TimeoutError
