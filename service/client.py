"""A client of service/serve.py that needs only the standard library.

    from gaixie.service.client import Client

    client = Client("http://127.0.0.1:8000", token="…")
    client.score([("今天天气很好，我们一起去公园吧。", "天气这么好，咱们一块儿去公园吧。")])[0]["spscore"]
    client.paraphrase(["市图书馆将于下周二举办古籍修复体验活动。"], n=3, degree=4)[0]["candidates"]

The client splits long lists into requests of the size that the service accepts, sends several at
once, and returns the answers in order. It retries broken connections, 429 and 503, which is safe:
scores are the same again, and so are paraphrases drawn with a seed. A refused connection fails at
once if the service has never answered.
"""

from __future__ import annotations

import http.client
import json
import random
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

AGAIN = (429, 502, 503, 504)
"""HTTP statuses after which the same request may succeed."""
LONGEST = 30.0
"""The most seconds between two tries if the service does not say."""


class ServiceError(Exception):
    """The service's error message, or why it cannot be reached. status: HTTP's, 0 if none."""

    def __init__(self, message: str, status: int = 0):
        super().__init__(message)
        self.status = status


class Client:
    """Sends requests to one service. Threads may share a client.

    timeout: seconds of a request. retries: how often to try again. parallel: requests at once.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        token: str | None = None,
        timeout: float = 60.0,
        retries: int = 8,
        parallel: int = 4,
    ):
        self.url, self.token = url.rstrip("/"), token
        self.timeout, self.retries, self.parallel = timeout, retries, parallel
        self._about: dict[str, Any] | None = None

    def about(self) -> dict[str, Any]:
        """Returns what the service can do and its limits; asks only once."""
        if self._about is None:
            self._about = self._ask("/v1/about")
        return self._about

    def ready(self) -> bool:
        """Tells whether the service answers now, without retries."""
        try:
            with urllib.request.urlopen(f"{self.url}/ready", timeout=self.timeout):
                return True
        except (OSError, http.client.HTTPException):
            return False

    def models(self) -> list[dict[str, Any]]:
        """Returns the models that write paraphrases; none if the service only scores."""
        return self._ask("/v1/models")["models"] if "paraphrase" in self.about()["parts"] else []

    def score(
        self, pairs: Iterable[Sequence[str]], explain: bool = False, changes: bool = False
    ) -> list[dict[str, Any]]:
        """Returns the judgements, spscore and reason of each (source, paraphrase)."""
        limits = self.about()["limits"]
        most = limits["max_explained" if explain or changes else "max_pairs"]
        given = [{"source": source, "paraphrase": paraphrase} for source, paraphrase in pairs]
        options = {"explain": explain, "changes": changes}
        bodies = [{"pairs": part, **options} for part in _parts(given, most)]
        return self._all("/v1/score", bodies, "scores")

    def paraphrase(
        self,
        texts: Iterable[str],
        n: int = 1,
        degree: int | None = None,
        seed: int | None = None,
        keep: Sequence[str] = (),
        explain: bool = False,
        changes: bool = False,
    ) -> list[dict[str, Any]]:
        """Returns source, candidates, dropped and reason of each text."""
        options = {"n": n, "degree": degree, "seed": seed, "keep": [*keep]}
        options |= {"explain": explain, "changes": changes}
        most = self.about()["limits"]["max_texts"]
        bodies = [{"texts": part, **options} for part in _parts([*texts], most)]
        return self._all("/v1/paraphrase", bodies, "results")

    def _all(self, path: str, bodies: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
        """Sends all bodies and joins the lists of that name in the answers."""
        if len(bodies) == 1:
            answers = [self._ask(path, bodies[0])]
        else:
            with ThreadPoolExecutor(self.parallel) as threads:
                answers = [*threads.map(lambda body: self._ask(path, body), bodies)]
        return [one for answer in answers for one in answer[name]]

    def _ask(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Returns the answer. Raises ServiceError, after retries if they may help."""
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}{path}", data, headers)
        wait = 0.1
        for left in range(self.retries, -1, -1):
            # Jitter: clients that failed together must not retry together.
            pause = wait * random.uniform(0.5, 1.5)
            try:
                with urllib.request.urlopen(request, timeout=self.timeout) as answer:
                    return json.loads(answer.read())
            except urllib.error.HTTPError as error:
                with error:
                    refused = ServiceError(_message(error), error.code)
                if error.code not in AGAIN:
                    raise refused from None
                if after := error.headers.get("Retry-After"):
                    pause = max(pause, float(after))
            except (OSError, http.client.HTTPException, ValueError) as error:
                nobody = isinstance(getattr(error, "reason", error), ConnectionRefusedError)
                if nobody and self._about is None:  # a service that has answered may be restarting
                    message = (
                        f"{self.url}: nothing listens there; start a service with: gaixie serve"
                    )
                    raise ServiceError(message) from None
                refused = ServiceError(f"{self.url}: {error}")
            if not left:
                raise refused from None
            time.sleep(pause)
            wait = min(2 * wait, LONGEST)
        raise AssertionError("the last try returns or raises")


def _parts(items: list[Any], most: int) -> list[list[Any]]:
    return [items[start : start + most] for start in range(0, len(items), most)]


def _message(error: urllib.error.HTTPError) -> str:
    """Returns the message of an error response."""
    try:
        return str(json.loads(error.read())["error"]["message"])
    except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
        return f"{error.code} {error.reason}"
