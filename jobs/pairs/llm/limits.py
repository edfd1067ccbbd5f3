"""How fast requests may leave, and for how much."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from gaixie.jobs.pairs.llm.method import LlmSettings
from gaixie.jobs.pairs.llm.record import Spent


class OverBudget(Exception):
    """The next request may exceed the budget, and no request under way can leave more of it."""


class Pace:
    """Lets amounts pass, evenly spaced: at most per_minute in any minute; None sets no limit."""

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
        """Gives back what a turn took and did not use."""
        self._next -= amount * self._seconds

    def hold(self, seconds: float) -> None:
        """Lets nothing pass for so long."""
        self._next = max(self._next, asyncio.get_running_loop().time() + seconds)


class Budget:
    """Tokens and money that are left; what is under way counts at the most that it can take."""

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
        """Takes the most that a request can cost; raises OverBudget where that is not left."""
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


def most_tokens(messages: list[dict[str, str]]) -> int:
    """Returns more tokens than messages can be: one a byte, and 16 for what surrounds each."""
    return 16 + sum(16 + len(message["content"].encode()) for message in messages)


def backoff(attempt: int, settings: LlmSettings, wait: float | None) -> float:
    """Returns the seconds to wait behind a failed attempt, from 0: exponential with full jitter
    (Brooker 2015), on top of what the endpoint asked for."""
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
