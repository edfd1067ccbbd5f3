"""One request to an OpenAI-compatible endpoint: when it leaves, what it may cost, how often it is tried."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from openai import (
    APIConnectionError,
    APIStatusError,
    AsyncOpenAI,
    OpenAIError,
)
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
from gaixie.jobs.pairs.llm.limits import (
    Budget,
    OverBudget,
    Pace,
    Pause,
    backoff,
    most_tokens,
    retry_after,
)
from gaixie.jobs.pairs.llm.prompts import Message
from gaixie.jobs.pairs.llm.record import Journal, Record
from gaixie.jobs.pairs.llm.settings import LlmSettings

NO_KEY = "none"
"""Sent where the environment holds no key: many servers of one's own want none."""

STOPPING = {
    401: "the endpoint refuses the key, or there is none",
    402: "the account has no money left",
    403: "the key has no right to this model",
    404: "no such model, or no such address",
}
"""Statuses after which no request would fare better."""

MAYBE_PAID = (502, 504)
"""Statuses of a gateway that lost an answer."""

FREE: dict[str, Any] = {"state": "failed", "tokens_in": 0, "tokens_out": 0}
"""What becomes of a request that was not paid."""

RETRIED = (408, 409, 425, 429)
"""These, and all from 500, may pass."""


@dataclass
class Request:
    """One paraphrase of each of some sentences."""

    messages: list[Message]
    sentences: list[str]
    keys: list[bytes]
    """Of each sentence's answer."""
    number: int
    """Of the paraphrase, from 0."""


class _Failed(Exception):
    """An attempt without an answer."""

    def __init__(self, cause: str, paid: bool, wait: float | None = None):
        super().__init__(cause)
        self.paid, self.wait = paid, wait


class _Rejected(Exception):
    """A request that the endpoint will never take. filtered: for what the sentence says."""

    def __init__(self, cause: str, filtered: bool = False):
        super().__init__(cause)
        self.filtered = filtered


class Endpoint:
    """Sends requests within the limits. One event loop uses it."""

    def __init__(self, settings: LlmSettings, model: str, record: Record):
        self.settings, self.model = settings, model
        self._record, self._journal = record, Journal(record)
        self.budget = Budget(settings, record.spent())
        self._requests = Pace(settings.requests_per_minute)
        self._tokens = Pace(settings.tokens_per_minute)
        self._pause = Pause()
        self._key = os.environ.get(settings.api_key_variable) or NO_KEY
        try:
            self._client = AsyncOpenAI(api_key=self._key, base_url=settings.base_url, max_retries=0)
        except OpenAIError as error:
            raise JobError(self._without_key(str(error))) from None
        self._surplus = 0
        """Tokens by which a prompt was more than most_tokens says: the endpoint adds its own."""
        self.answered = self._in_row = 0
        self.over_budget = False
        self.failure = ""
        """What the last failed attempt failed of."""

    async def close(self) -> None:
        await self._client.close()

    async def ask(self, request: Request) -> list[Answer] | str:
        """An answer for each sentence, written down; or the reason for which there is none.

        Raises JobError where no further request would succeed.
        """
        limit = self._limit(request.sentences)
        for attempt in range(self.settings.attempts):
            if self.over_budget:
                return OVER_BUDGET
            try:
                answers = await self._try(request, limit)
            except OverBudget:
                self.over_budget = True
                return OVER_BUDGET
            except _Rejected as error:
                return self._give_up(REJECTED, error)
            except _Failed as error:
                self.failure = str(error)
                if attempt + 1 == self.settings.attempts:
                    return self._give_up(GAVE_UP, error)
                if error.wait:
                    self._pause.extend(error.wait)
                await asyncio.sleep(backoff(attempt, self.settings, error.wait))
            else:
                self._in_row = 0
                self.answered += 1
                return answers
        raise AssertionError("attempts is 1 or more")

    def _limit(self, sentences: Sequence[str]) -> int:
        return self.settings.max_answer_tokens or 64 + 3 * sum(map(len, sentences))

    async def _try(self, request: Request, limit: int) -> list[Answer]:
        most = (most_tokens(request.messages) + self._surplus, limit)
        await self._pause.over()
        await self.budget.reserve(*most)
        number = secrets.token_hex(8)
        sent = {
            "id": number,
            "building": self._record.building,
            "model": self.model,
            "state": "sent",
            "tokens_in": most[0],
            "tokens_out": most[1],
            "characters_in": _characters(request.messages),
        }
        await self._journal.write(sent)
        used, settled = (0, 0), {"id": number, "answers": [], **FREE}
        try:
            await self._requests.turn()
            await self._tokens.turn(sum(most))
            started = asyncio.get_running_loop().time()
            used, settled = most, {"id": number, "state": "lost", "answers": []}
            completion = await self._send(request, limit)
            used = self._usage(completion, most)
            answers = _read(completion, request.sentences)
            text = completion.choices[0].message.content or ""
            settled |= {
                "state": "done",
                "tokens_in": used[0],
                "tokens_out": used[1],
                "characters_out": len(text),
                "seconds": round(asyncio.get_running_loop().time() - started, 3),
                "answers": _rows(request, answers),
            }
            return answers
        except _Rejected as error:
            used, settled = (0, 0), settled | FREE
            if not error.filtered:
                raise
            answers = [Answer(REFUSAL, None)] * len(request.sentences)
            settled["answers"] = _rows(request, answers)
            return answers
        except (_Failed, JobError) as error:
            if isinstance(error, JobError) or not error.paid:
                used, settled = (0, 0), settled | FREE
            raise
        finally:
            await self._journal.write(settled)
            await self.budget.settle(most, used)
            self._tokens.give_back(sum(most) - sum(used))

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
            self._refused(error)
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

    def _refused(self, error: APIStatusError) -> NoReturn:
        status, code = error.status_code, str(error.code or "")
        said = re.sub(r"\AError code: \d+ - ", "", self._without_key(error.message))
        said = f"{status}: {said}"
        if status in STOPPING or code == "insufficient_quota":
            why = STOPPING.get(status, STOPPING[402])
            raise JobError(f"{self.address}: {why} ({said})") from None
        if status in RETRIED or status >= 500:
            wait = retry_after(error.response.headers)
            raise _Failed(said, paid=status in MAYBE_PAID, wait=wait) from None
        if "content_filter" in code or "content_policy" in code:
            raise _Rejected(said, filtered=True) from None
        if not self.answered:
            raise JobError(f"{self.address}: refuses the request ({said})") from None
        raise _Rejected(said) from None

    def _usage(self, completion: ChatCompletion, most: tuple[int, int]) -> tuple[int, int]:
        """Tokens that were paid; where the endpoint does not say, the most."""
        if completion.usage is None:
            return most
        used = completion.usage.prompt_tokens, completion.usage.completion_tokens
        self._surplus = max(self._surplus, self._surplus + used[0] - most[0])
        return used

    def _give_up(self, reason: str, error: Exception) -> str:
        self._in_row += 1
        if self._in_row >= self.settings.stop_after:
            raise JobError(
                f"{self.address}: {self._in_row} requests in a row failed, the last with: {error}"
            )
        return reason

    @property
    def address(self) -> str:
        """The endpoint's URL."""
        return f"{self._client.base_url}".rstrip("/")

    def _without_key(self, text: str) -> str:
        text = " ".join(text.split())[:300]
        return text.replace(self._key, "***") if self._key != NO_KEY else text


def _rows(request: Request, answers: list[Answer]) -> list[tuple[str, str, str | None]]:
    return [(key.hex(), *answer) for key, answer in zip(request.keys, answers, strict=True)]


def _characters(messages: list[Message]) -> int:
    return sum(len(message["content"]) for message in messages)


def _read(completion: ChatCompletion, sentences: list[str]) -> list[Answer]:
    choice = completion.choices[0]
    if choice.message.refusal or choice.finish_reason == "content_filter":
        return read(choice.message.refusal or choice.message.content, REFUSAL, sentences)
    ending = LENGTH if choice.finish_reason == "length" else STOP
    return read(choice.message.content, ending, sentences)
