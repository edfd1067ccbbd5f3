"""Sends requests to an OpenAI-compatible endpoint, within limits of rate and cost, and retries
them.

Each attempt may be paid, so each is paced, reserved in the budget and recorded by itself. That is
why the retries are here and those of the openai package are off.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import secrets
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from openai import APIConnectionError, APIStatusError, AsyncOpenAI, OpenAIError
from openai.types.chat import ChatCompletion

from gaixie.jobs.errors import JobError
from gaixie.jobs.pairs.llm import answers as reasons
from gaixie.jobs.pairs.llm.answers import LENGTH, REFUSAL, STOP, Answer, read
from gaixie.jobs.pairs.llm.method import LlmSettings
from gaixie.jobs.pairs.llm.prompts import Message
from gaixie.jobs.pairs.llm.record import Record, Spent

NO_KEY = "none"
"""The key that is sent if the environment has none: many local servers need none."""

STOPPING = {
    401: "the key is missing, or the endpoint refuses it",
    402: "the account has no money left",
    403: "the key has no access to this model",
    404: "no such model, or no such address",
}
"""Statuses after which no further request can succeed."""

MAYBE_PAID = (502, 504)
"""Statuses of a gateway that lost an answer, which may have been paid."""

RETRIED = (408, 409, 425, 429)
"""Statuses that may be temporary, as are all from 500 up."""

FREE: dict[str, Any] = {"state": "failed", "tokens_in": 0, "tokens_out": 0}
"""Recorded for a request that was not paid."""


@dataclass
class Request:
    """Asks for one paraphrase of each sentence."""

    messages: list[Message]
    sentences: list[str]
    keys: list[bytes]
    """The key of each sentence's answer."""
    number: int
    """The number of the paraphrase, from 0."""

    def rows(self, answers: list[Answer]) -> list[tuple[str, str, str | None]]:
        """Returns the answers in the form of the record."""
        return [(key.hex(), *answer) for key, answer in zip(self.keys, answers, strict=True)]


@dataclass(eq=False)
class _Failed(Exception):
    """An attempt without an answer."""

    cause: str
    paid: bool = False
    """Whether the attempt may have been paid."""
    wait: float | None = None
    """Seconds that the endpoint asked for."""
    final: bool = False
    """Whether the endpoint will never take this request."""
    filtered: bool = False
    """Whether the endpoint refuses the sentence's content."""


class Endpoint:
    """Sends requests within the limits. Only one event loop may use it."""

    def __init__(self, settings: LlmSettings, model: str, record: Record):
        self.settings, self.model, self._record = settings, model, record
        self.budget = Budget(settings, record.spent())
        self._requests = Pace(settings.requests_per_minute)
        self._tokens = Pace(settings.tokens_per_minute)
        self._key = os.environ.get(settings.api_key_variable) or NO_KEY
        try:
            self._client = AsyncOpenAI(api_key=self._key, base_url=settings.base_url, max_retries=0)
        except OpenAIError as error:
            raise JobError(self._without_key(str(error))) from None
        self.close = self._client.close
        self._surplus = 0
        """Tokens by which a prompt exceeded most_tokens: the endpoint adds its own."""
        self.answered = self._in_row = 0
        self.over_budget = False
        self.failure = ""
        """The cause of the last failed attempt."""

    async def ask(self, request: Request) -> list[Answer] | str:
        """Records and returns an answer for each sentence, or returns the reason why there is none.

        Raises JobError if no further request can succeed.
        """
        for attempt in range(self.settings.attempts):
            if self.over_budget:
                break
            try:
                answers = await self._try(request)
            except OverBudget:
                self.over_budget = True
            except _Failed as error:
                self.failure = error.cause
                if error.final or attempt + 1 == self.settings.attempts:
                    return self._give_up(reasons.REJECTED if error.final else reasons.GAVE_UP)
                self._requests.hold(error.wait or 0)
                await asyncio.sleep(backoff(attempt, self.settings, error.wait))
            else:
                self._in_row = 0
                self.answered += 1
                return answers
        return reasons.OVER_BUDGET

    async def _try(self, request: Request) -> list[Answer]:
        limit = self.settings.max_answer_tokens or 64 + 3 * sum(map(len, request.sentences))
        most = (most_tokens(request.messages) + self._surplus, limit)
        await self.budget.reserve(*most)
        reserved = {"tokens_in": most[0], "tokens_out": most[1]}
        told: dict[str, Any] = {"id": secrets.token_hex(8), **FREE}
        characters = sum(len(message["content"]) for message in request.messages)
        sent = {"building": self._record.building, "model": self.model, "characters_in": characters}
        await self._put(told | sent | reserved | {"state": "sent"})
        try:
            await self._requests.turn()
            await self._tokens.turn(sum(most))
            told |= {"state": "lost", **reserved}
            started = time.monotonic()
            completion = await self._send(request, limit)
            answers = _read(completion, request.sentences)
            if completion.usage:
                told["tokens_in"] = completion.usage.prompt_tokens
                told["tokens_out"] = completion.usage.completion_tokens
                self._surplus += max(told["tokens_in"] - most[0], 0)
            told |= {
                "state": "done",
                "characters_out": len(completion.choices[0].message.content or ""),
                "seconds": round(time.monotonic() - started, 3),
                "answers": request.rows(answers),
            }
            return answers
        except JobError:
            told |= FREE
            raise
        except _Failed as error:
            told |= {} if error.paid else FREE
            if not error.filtered:
                raise
            answers = [Answer(REFUSAL, None)] * len(request.sentences)
            told["answers"] = request.rows(answers)
            return answers
        finally:
            await self._put(told)
            used = told["tokens_in"], told["tokens_out"]
            await self.budget.settle(most, used)
            self._tokens.give_back(sum(most) - sum(used))

    async def _put(self, event: dict[str, Any]) -> None:
        """Returns once the event is on record."""
        await asyncio.to_thread(self._record.write, event)

    async def _send(self, request: Request, limit: int) -> ChatCompletion:
        settings = self.settings
        body: dict[str, Any] = {settings.token_parameter: limit} | settings.sampling()
        if settings.seed is not None:
            body["seed"] = settings.seed + request.number
        try:
            async with asyncio.timeout(settings.request_seconds):
                completion = await self._client.chat.completions.create(
                    model=self.model,
                    messages=request.messages,  # type: ignore[arg-type]
                    extra_body=body,
                    timeout=settings.request_seconds,
                )
        except APIStatusError as error:
            raise self._refusal(error) from None
        except APIConnectionError as error:
            refused = type(error.__cause__).__name__ in ("ConnectError", "ConnectTimeout")
            cause = self._without_key(str(error.__cause__ or error)) or str(error)
            if not self.answered and _no_such_host(error):
                raise JobError(f"{self.address}: {cause}") from None
            raise _Failed(cause, paid=not refused) from None
        except TimeoutError:
            raise _Failed(f"no answer within {settings.request_seconds:g} s", paid=True) from None
        except (OpenAIError, ValueError):
            raise _Failed("an answer that is not JSON", paid=True) from None
        if not isinstance(completion, ChatCompletion) or not completion.choices:
            raise _Failed("an answer that is not a chat completion", paid=True)
        return completion

    def _refusal(self, error: APIStatusError) -> JobError | _Failed:
        status, code = error.status_code, str(error.code or "")
        said = re.sub(r"\AError code: \d+ - ", "", self._without_key(error.message))
        said = f"{status}: {said}"
        if status in STOPPING or code == "insufficient_quota":
            return JobError(f"{self.address}: {STOPPING.get(status, STOPPING[402])} ({said})")
        if status in RETRIED or status >= 500:
            return _Failed(said, status in MAYBE_PAID, retry_after(error.response.headers))
        if "content_filter" in code or "content_policy" in code:
            return _Failed(said, filtered=True)
        if not self.answered:
            return JobError(f"{self.address}: refuses the request ({said})")
        return _Failed(said, final=True)

    def _give_up(self, reason: str) -> str:
        self._in_row += 1
        if self._in_row >= self.settings.stop_after:
            said = f"{self._in_row} requests in a row failed, the last with: {self.failure}"
            raise JobError(f"{self.address}: {said}")
        return reason

    @property
    def address(self) -> str:
        """The endpoint's URL."""
        return f"{self._client.base_url}".rstrip("/")

    def _without_key(self, text: str) -> str:
        text = " ".join(text.split())[:300]
        return text.replace(self._key, "***") if self._key != NO_KEY else text


def _no_such_host(error: BaseException | None) -> bool:
    """Returns whether an error means that the endpoint's host name has no address; a retry would
    not help."""
    while error is not None:
        if isinstance(error, socket.gaierror) and error.errno == socket.EAI_NONAME:
            return True
        error = error.__cause__ or error.__context__
    return False


def _read(completion: ChatCompletion, sentences: list[str]) -> list[Answer]:
    choice = completion.choices[0]
    if choice.message.refusal or choice.finish_reason == "content_filter":
        return read(choice.message.refusal or choice.message.content, REFUSAL, sentences)
    ending = LENGTH if choice.finish_reason == "length" else STOP
    return read(choice.message.content, ending, sentences)


# How fast requests may leave, and at what cost


class OverBudget(Exception):
    """The next request may exceed the budget, and no request under way can free any of it."""


class Pace:
    """Spaces amounts evenly: at most per_minute in any minute; None sets no limit."""

    def __init__(self, per_minute: float | None):
        self._seconds = 60 / per_minute if per_minute else 0.0
        self._next = 0.0
        self._lock = asyncio.Lock()

    async def turn(self, amount: float = 1) -> None:
        """Waits until this amount may leave."""
        loop = asyncio.get_running_loop()
        async with self._lock:
            while (wait := self._next - loop.time()) > 0:
                await asyncio.sleep(wait)
            self._next = loop.time() + amount * self._seconds

    def give_back(self, amount: float) -> None:
        """Returns the part of a turn that was not used."""
        self._next -= amount * self._seconds

    def hold(self, seconds: float) -> None:
        """Holds everything back for so many seconds."""
        self._next = max(self._next, asyncio.get_running_loop().time() + seconds)


class Budget:
    """The tokens and money that are left; a request under way counts at its maximum."""

    def __init__(self, settings: LlmSettings, spent: Spent):
        self._settings = settings
        self.tokens_in, self.tokens_out = spent.tokens_in, spent.tokens_out
        self._under_way = 0
        self._changed = asyncio.Condition()

    def _fits(self, tokens_in: int, tokens_out: int) -> bool:
        settings = self._settings
        total_in, total_out = self.tokens_in + tokens_in, self.tokens_out + tokens_out
        if settings.max_tokens_total and total_in + total_out > settings.max_tokens_total:
            return False
        cost = settings.cost(total_in, total_out)
        return settings.max_cost is None or cost is None or cost <= settings.max_cost

    async def reserve(self, tokens_in: int, tokens_out: int) -> None:
        """Reserves a request's maximum cost; raises OverBudget if less is left."""
        async with self._changed:
            while not self._fits(tokens_in, tokens_out):
                if not self._under_way:
                    raise OverBudget
                await self._changed.wait()
            self._under_way += 1
            self.tokens_in += tokens_in
            self.tokens_out += tokens_out

    async def settle(self, reserved: tuple[int, int], used: tuple[int, int]) -> None:
        """Gives back what a request did not use."""
        async with self._changed:
            self._under_way -= 1
            self.tokens_in += used[0] - reserved[0]
            self.tokens_out += used[1] - reserved[1]
            self._changed.notify_all()

    def told(self) -> str:
        """Returns what was spent, in words."""
        cost = self._settings.cost(self.tokens_in, self.tokens_out)
        tokens = f"{self.tokens_in + self.tokens_out:,} tokens"
        return tokens if cost is None else f"{tokens}, cost {cost:,.2f}"


def most_tokens(messages: list[dict[str, str]]) -> int:
    """Returns an upper bound of the messages' tokens: one a byte, and 16 for what surrounds
    each."""
    return 16 + sum(16 + len(message["content"].encode()) for message in messages)


def backoff(attempt: int, settings: LlmSettings, wait: float | None) -> float:
    """Returns the seconds to wait after a failed attempt, counted from 0: exponential with full
    jitter (Brooker 2015), plus what the endpoint asked for."""
    longest = min(settings.max_backoff_seconds, settings.backoff_seconds * 2**attempt)
    return (wait or 0.0) + random.uniform(0, longest)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Returns the seconds that an answer asks to wait: Retry-After as a number or date, or
    retry-after-ms."""
    given = headers.get("retry-after", "")
    try:
        if milliseconds := headers.get("retry-after-ms"):
            return max(float(milliseconds) / 1000, 0.0)
        if given[:1].isalpha():
            return max((parsedate_to_datetime(given) - datetime.now(UTC)).total_seconds(), 0.0)
        return max(float(given), 0.0)
    except (ValueError, TypeError):
        return None
