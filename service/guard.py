"""An ASGI middleware that checks each request before the service handles it.

It checks the bearer token, the size and arrival time of the body, and the rates of the token; it
also writes the log line and the counters. It reads the whole body, which is bounded, so that the
application never reads from a slow client.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import sys
import time
from collections.abc import Awaitable, Callable, MutableMapping
from datetime import UTC, datetime
from typing import Any

from gaixie.service import telemetry
from gaixie.service.refusals import Refused
from gaixie.service.settings import ServiceSettings

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

OPEN = ("/v1/about",)
"""Paths below /v1 that need no token: the page asks there whether a token is needed."""
DOWNLOADS = ("/v1/run/export", "/v1/run/report")
"""Paths that a browser fetches by itself, with the token in a cookie."""
COOKIE = b"gaixie-token"
READ_ON = 4
"""Reads at most this many times max_body of a body that is too large."""
CLIENTS = 10_000
"""The most clients whose rates are remembered."""


class Gone(Exception):
    """The client has left, so nobody reads the response."""


class Account:
    """One client's remaining allowance: two token buckets that refill every second."""

    def __init__(self, name: str, rates: tuple[float | None, float | None]):
        self.name = name
        self._rates = rates  # requests and items per second
        self._left = [rate and rate * 60 for rate in rates]
        self._at = time.monotonic()

    def spend(self, requests: int, items: int) -> None:
        """Takes from both buckets. Raises Refused (429) if one of them has too little."""
        now = time.monotonic()
        passed, self._at = now - self._at, now
        for k, (rate, cost) in enumerate(zip(self._rates, (requests, items), strict=True)):
            left = self._left[k]
            if rate is None or left is None:
                continue
            left = self._left[k] = min(rate * 60, left + rate * passed)
            # A cost above a whole bucket may pass when the bucket is full, and leaves it in debt.
            if cost and left < min(cost, rate * 60):
                what = ("requests", "pairs")[k]
                wait = (min(cost, rate * 60) - left) / rate
                raise Refused(429, f"too many {what} a minute", retry_after=wait)
        for k, cost in enumerate((requests, items)):
            if (own := self._left[k]) is not None:
                self._left[k] = own - cost


class Guard:
    """The middleware. app: the application that it guards."""

    def __init__(self, app: Any, settings: ServiceSettings):
        self.app, self.settings = app, settings
        self._tokens = {name: token.encode() for name, token in settings.tokens.items()}
        self._accounts: dict[str, Account] = {}
        shares = (settings.requests_per_minute, settings.pairs_per_minute)
        requests, items = (share and share / 60 / settings.workers for share in shares)
        self._rates = (requests, items)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        began, status, answered = time.perf_counter(), 500, False

        async def answer(message: Message) -> None:
            nonlocal status, answered
            if message["type"] == "http.response.start":
                status, answered = message["status"], True
            await send(message)

        try:
            scope.setdefault("state", {})["account"] = account = self._account(scope)
            if scope["path"].startswith("/v1/"):  # not probes or the page
                account.spend(1, 0)
            body = await self._body(scope, receive)
            await self.app(scope, _after(body, receive), answer)
        except Refused as refused:
            await refused.response()(scope, receive, answer)
        except Gone:
            status = 499
        except asyncio.CancelledError:  # the server is ending and will not wait longer
            status = 503
            if not answered:  # raising it again would log a traceback
                late = Refused(503, "the service has shut down", retry_after=1)
                await late.response()(scope, receive, answer)
        finally:
            self._note(scope, status, time.perf_counter() - began)

    def _account(self, scope: Message) -> Account:
        """Returns the account of the request's client. Raises Refused (401)."""
        name = (scope.get("client") or ("",))[0]
        if self._tokens and scope["path"].startswith("/v1/") and scope["path"] not in OPEN:
            given = _token(scope)
            # Compare all tokens, so that the time reveals nothing.
            known = [
                own for own, token in self._tokens.items() if hmac.compare_digest(token, given)
            ]
            if not known:
                wrong = "; this one is wrong" if given else ""
                raise Refused(401, f"a bearer token is needed{wrong}")
            name = f"token {known[0]}"
        if name not in self._accounts:
            while len(self._accounts) >= CLIENTS:
                del self._accounts[next(iter(self._accounts))]
            self._accounts[name] = Account(name, self._rates)
        return self._accounts[name]

    async def _body(self, scope: Message, receive: Receive) -> bytes:
        """Reads the whole body. Raises Refused if it is too large or too slow.

        A body that is somewhat too large is read to its end before it is refused, because a client
        that is still sending when the connection closes may never see the response.
        """
        most = self.settings.max_body
        too_large = Refused(413, f"the body has more than {most:,} bytes")
        for key, value in scope["headers"]:
            # The parser has checked that this is a number.
            if key == b"content-length" and int(value) > READ_ON * most:
                raise too_large
        parts, size = [], 0
        try:
            async with asyncio.timeout(self.settings.body_timeout):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Gone
                    piece = message.get("body", b"")
                    size += len(piece)
                    if size <= most:
                        parts.append(piece)
                    ended = not message.get("more_body")
                    if size > READ_ON * most or (ended and size > most):
                        raise too_large
                    if ended:
                        return b"".join(parts)
        except TimeoutError:
            raise Refused(408, "the body did not arrive in time") from None

    def _note(self, scope: Message, status: int, seconds: float) -> None:
        """Writes the log line and updates the counters."""
        route = scope.get("route")
        path = getattr(route, "path", None) or "other"  # never a path that a client invented
        telemetry.REQUESTS.labels(path, status).inc()
        telemetry.LATENCY.labels(path).observe(seconds)
        if status in (401, 408, 413, 429, 503):
            telemetry.REJECTED.labels(status).inc()
        if path in ("/health", "/ready", "/metrics"):
            return
        state = scope.get("state", {})
        line: dict[str, Any] = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "method": scope["method"],
            "route": path,
            "status": status,
            "ms": round(seconds * 1000, 1),
            "items": state.get("items", 0),
        }
        if name := getattr(state.get("account"), "name", ""):
            line["client"] = name
        sys.stderr.write(json.dumps(line, ensure_ascii=False) + "\n")  # one write: threads share it


def _token(scope: Message) -> bytes:
    """Returns the bearer token of a request. A browser's download sends it in a cookie, because
    it cannot send the header.
    """
    given = b""
    for key, value in scope["headers"]:
        if key == b"authorization" and value[:7].lower() == b"bearer ":
            return bytes(value[7:].strip())
        if key == b"cookie" and scope["method"] == "GET" and scope["path"] in DOWNLOADS:
            for cookie in value.split(b";"):
                name, _, own = cookie.strip().partition(b"=")
                given = own if name == COOKIE else given
    return given


def _after(body: bytes, receive: Receive) -> Receive:
    """Returns a receive that gives the body, and then what follows."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
