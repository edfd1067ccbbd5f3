"""Sends requests to an OpenAI-compatible endpoint: when they leave, what they may cost, and
retries.

Each attempt is paced, reserved in the budget and put on record by itself, because each may be paid;
so the retries are here, and those of the openai package are off.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from openai import APIConnectionError, APIStatusError, AsyncOpenAI, OpenAIError
from openai.types.chat import ChatCompletion

from gaixie.jobs.errors import JobError
from gaixie.jobs.pairs.llm.answers import (
    GAVE_UP,
    LENGTH,
    OVER_BUDGET,
    REFUSAL,
    REJECTED,
    STOP,
    Answer,
    read,
)
from gaixie.jobs.pairs.llm.limits import Budget, OverBudget, Pace, backoff, most_tokens, retry_after
from gaixie.jobs.pairs.llm.method import LlmSettings
from gaixie.jobs.pairs.llm.prompts import Message
from gaixie.jobs.pairs.llm.record import Record

NO_KEY = "none"
"""Sent where the environment holds no key: many local servers want none."""

STOPPING = {
    401: "the endpoint refuses the key, or there is none",
    402: "the account has no money left",
    403: "the key has no right to this model",
    404: "no such model, or no such address",
}
"""Statuses after which no request would fare better."""

MAYBE_PAID = (502, 504)
"""Statuses of a gateway that lost an answer."""

RETRIED = (408, 409, 425, 429)
"""Statuses that may pass, as all from 500 may."""

FREE: dict[str, Any] = {"state": "failed", "tokens_in": 0, "tokens_out": 0}
"""What becomes of a request that was not paid."""


@dataclass
class Request:
    """Asks for one paraphrase of each of some sentences."""

    messages: list[Message]
    sentences: list[str]
    keys: list[bytes]
    """The key of each sentence's answer."""
    number: int
    """The number of the paraphrase, from 0."""

    def rows(self, answers: list[Answer]) -> list[tuple[str, str, str | None]]:
        """Returns the answers as they are put on record."""
        return [(key.hex(), *answer) for key, answer in zip(self.keys, answers, strict=True)]


class _Failed(Exception):
    """An attempt without an answer.

    paid: it may have been paid. wait: seconds that the endpoint asked for. final: the endpoint will
    never take this request. filtered: for what the sentence says.
    """

    def __init__(
        self,
        cause: str,
        paid: bool = False,
        wait: float | None = None,
        final: bool = False,
        filtered: bool = False,
    ):
        super().__init__(cause)
        self.paid, self.wait, self.final, self.filtered = paid, wait, final, filtered


class Endpoint:
    """Sends requests within the limits. One event loop uses it."""

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
        """Tokens by which a prompt was more than most_tokens says: the endpoint adds its own."""
        self.answered = self._in_row = 0
        self.over_budget = False
        self.failure = ""
        """The cause of the last failed attempt."""

    async def ask(self, request: Request) -> list[Answer] | str:
        """Returns an answer for each sentence, put on record, or the reason for which there is
        none.

        Raises JobError where no further request would succeed.
        """
        for attempt in range(self.settings.attempts):
            if self.over_budget:
                break
            try:
                answers = await self._try(request)
            except OverBudget:
                self.over_budget = True
            except _Failed as error:
                self.failure = str(error)
                if error.final or attempt + 1 == self.settings.attempts:
                    return self._give_up(REJECTED if error.final else GAVE_UP)
                self._requests.hold(error.wait or 0)
                await asyncio.sleep(backoff(attempt, self.settings, error.wait))
            else:
                self._in_row = 0
                self.answered += 1
                return answers
        return OVER_BUDGET

    async def _try(self, request: Request) -> list[Answer]:
        limit = self.settings.max_answer_tokens or 64 + 3 * sum(map(len, request.sentences))
        most = (most_tokens(request.messages) + self._surplus, limit)
        await self.budget.reserve(*most)
        told: dict[str, Any] = {"id": secrets.token_hex(8)}
        reserved = {"tokens_in": most[0], "tokens_out": most[1]}
        characters = sum(len(message["content"]) for message in request.messages)
        sent = {"building": self._record.building, "model": self.model, "state": "sent"}
        await self._put(told | sent | reserved | {"characters_in": characters})
        told |= {"answers": [], **FREE}
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
        except (_Failed, JobError) as error:
            if not getattr(error, "paid", False):
                told |= FREE
            if not getattr(error, "filtered", False):
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
            raise _Failed(cause, paid=not refused) from None
        except TimeoutError:
            raise _Failed(f"no answer within {settings.request_seconds:g} s", paid=True) from None
        except (OpenAIError, ValueError):
            raise _Failed("an answer that is not JSON", paid=True) from None
        if not isinstance(completion, ChatCompletion) or not completion.choices:
            raise _Failed("an answer that is no chat completion", paid=True)
        return completion

    def _refusal(self, error: APIStatusError) -> JobError | _Failed:
        status, code = error.status_code, str(error.code or "")
        said = re.sub(r"\AError code: \d+ - ", "", self._without_key(error.message))
        said = f"{status}: {said}"
        if status in STOPPING or code == "insufficient_quota":
            why = STOPPING.get(status, STOPPING[402])
            return JobError(f"{self.address}: {why} ({said})")
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
            raise JobError(
                f"{self.address}: {self._in_row} requests in a row failed, the last with: "
                f"{self.failure}"
            )
        return reason

    @property
    def address(self) -> str:
        """The endpoint's URL."""
        return f"{self._client.base_url}".rstrip("/")

    def _without_key(self, text: str) -> str:
        text = " ".join(text.split())[:300]
        return text.replace(self._key, "***") if self._key != NO_KEY else text


def _read(completion: ChatCompletion, sentences: Sequence[str]) -> list[Answer]:
    choice = completion.choices[0]
    if choice.message.refusal or choice.finish_reason == "content_filter":
        return read(choice.message.refusal or choice.message.content, REFUSAL, [*sentences])
    ending = LENGTH if choice.finish_reason == "length" else STOP
    return read(choice.message.content, ending, [*sentences])
