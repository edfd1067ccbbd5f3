"""llm: the pace of requests on a simulated clock, the budget, and how long to wait."""

import asyncio
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise
from typing import Any

import pytest

from gaixie.jobs.pairs.llm.endpoint import Budget, OverBudget, Pace, backoff, retry_after
from gaixie.jobs.pairs.llm.method import LlmSettings
from gaixie.jobs.pairs.llm.record import Spent


class Clock(asyncio.SelectorEventLoop):
    """An event loop whose time passes only in waits, which return at once."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self._selector.select = self._pass  # type: ignore[attr-defined, method-assign]

    def time(self) -> float:
        return self.now

    def _pass(self, seconds: float | None) -> list[Any]:
        self.now += seconds or 0.0
        return []


def run(work: Coroutine[Any, Any, Any]) -> Any:
    loop = Clock()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()


def test_no_minute_has_more_requests_than_the_limit():
    starts = []

    async def request(pace: Pace, number: int) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(number % 7 * 11.0)  # requests come in bursts
        await pace.turn()
        starts.append(loop.time())

    async def all_of_them() -> None:
        pace = Pace(10)
        await asyncio.gather(*(request(pace, number) for number in range(50)))

    run(all_of_them())
    assert len(starts) == 50
    assert all(
        later - start >= 60 - 1e-6 for start, later in zip(starts, starts[10:], strict=False)
    )
    assert min(b - a for a, b in pairwise(starts)) >= 6 - 1e-6


def test_tokens_that_were_not_used_let_the_next_request_leave_earlier():
    async def work() -> float:
        pace, loop = Pace(600), asyncio.get_running_loop()
        await pace.turn(300)
        pace.give_back(200)
        await pace.turn(1)
        return loop.time()

    assert run(work()) == pytest.approx(10)


def test_a_request_waits_for_what_another_may_leave():
    async def work() -> None:
        budget = Budget(LlmSettings(max_tokens_total=100), Spent(3, 20, 10))
        await budget.reserve(30, 30)
        second = asyncio.create_task(budget.reserve(20, 20))
        await asyncio.sleep(1)
        assert not second.done()
        await budget.settle((30, 30), (10, 5))
        await second
        assert (budget.tokens_in, budget.tokens_out) == (50, 35)
        await budget.settle((20, 20), (20, 20))
        with pytest.raises(OverBudget):
            await budget.reserve(10, 6)
        await budget.reserve(10, 5)
        prices = LlmSettings(max_cost=1.0, price_in=1.0, price_out=10.0)
        await (money := Budget(prices, Spent())).reserve(500_000, 50_000)
        await money.settle((500_000, 50_000), (500_000, 50_000))
        with pytest.raises(OverBudget):
            await money.reserve(1, 0)

    run(work())


def test_backoff_is_drawn_below_a_bound_that_doubles_and_never_below_what_was_asked():
    settings = LlmSettings(backoff_seconds=1, max_backoff_seconds=5)
    for attempt, most in enumerate((1, 2, 4, 5, 5)):
        drawn = [backoff(attempt, settings, None) for _ in range(200)]
        assert 0 <= min(drawn) < most / 4
        assert most * 3 / 4 < max(drawn) <= most
    assert min(backoff(0, settings, 30.0) for _ in range(100)) >= 30


def test_retry_after():
    assert retry_after({"retry-after": "2.5"}) == 2.5
    assert retry_after({"retry-after": "7", "retry-after-ms": "30"}) == pytest.approx(0.03)
    later = datetime.now(UTC) + timedelta(seconds=100)
    seconds = retry_after({"retry-after": format_datetime(later)})
    assert seconds == pytest.approx(100, abs=5)
    assert retry_after({"retry-after": "Fri, 31 Dec 1999 23:59:59 GMT"}) == 0
    assert retry_after({"retry-after": "soon"}) is None
    assert retry_after({}) is None
