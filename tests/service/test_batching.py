"""The queue must return each result to its request, refuse what is too much, and stop cleanly."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from fastapi import HTTPException
from hypothesis import given, settings
from hypothesis import strategies as st

from gaixie.service.batching import Batcher

pytestmark = pytest.mark.anyio


class Work:
    """Doubles numbers, remembers its batches, and waits before a batch unless ``go`` is set."""

    def __init__(self):
        self.batches: list[tuple[str, list[int]]] = []
        self.threads: set[int] = set()
        self.begun, self.go = threading.Event(), threading.Event()

    def __call__(self, key: str, items: list[int]) -> list[int]:
        self.threads.add(threading.get_ident())
        self.batches.append((key, list(items)))
        self.begun.set()
        assert self.go.wait(60)
        if -1 in items:
            raise ArithmeticError("minus one")
        return [2 * item for item in items]

    @asynccontextmanager
    async def held(self, most: int = 100, queue: int = 1_000) -> AsyncIterator[Batcher]:
        """Yields a batcher that works on a request until the block ends, and then on the rest."""
        batcher = Batcher(self, most=most, queue=queue, wait=0)
        first = asyncio.create_task(batcher.submit("held", [0], 60))
        assert await asyncio.to_thread(self.begun.wait, 60)
        yield batcher
        self.go.set()
        assert await first == [0]
        await batcher.close()
        assert batcher.length == 0


async def submitted(batcher: Batcher, *requests: tuple[str, list[int]]) -> list[asyncio.Task]:
    """Returns the tasks of requests that wait in the queue."""
    tasks = [asyncio.create_task(batcher.submit(key, items, 60)) for key, items in requests]
    await asyncio.sleep(0)
    return tasks


REQUESTS = st.lists(
    st.tuples(st.sampled_from("ab"), st.lists(st.integers(0, 10_000), max_size=12)), max_size=12
)


@given(requests=REQUESTS, most=st.integers(1, 7), held=st.booleans())
@settings(max_examples=100)
def test_each_request_gets_its_own_results(requests, most, held):
    work = Work()

    async def ask() -> list[list[int]]:
        async with work.held(most) as batcher:
            if not held:  # all find the thread idle
                work.go.set()
            tasks = await submitted(batcher, *requests)
        return await asyncio.gather(*tasks)

    assert asyncio.run(ask()) == [[2 * item for item in items] for _, items in requests]
    own = [(key, items) for key, items in work.batches if key != "held"]
    for key in "ab":  # each item must come once, under its key
        given_items = [item for other, items in requests if other == key for item in items]
        worked = [item for other, items in own if other == key for item in items]
        assert sorted(worked) == sorted(given_items)
    assert all(len(items) <= most for _, items in own)
    assert len(work.threads) == 1


async def test_half_done_and_gone_is_not_worked_on_further():
    work = Work()
    batcher = Batcher(work, most=2, queue=100, wait=0)
    [gone] = await submitted(batcher, ("a", [1, 2, 3, 4, 5]))
    assert await asyncio.to_thread(work.begun.wait, 60)
    gone.cancel()
    await asyncio.wait([gone])
    work.go.set()
    assert await batcher.submit("a", [9], 60) == [18]
    await batcher.close()
    assert work.batches == [("a", [1, 2]), ("a", [9])]


@pytest.mark.parametrize(
    ("most", "requests", "batches"),
    [
        # One pair does not wait for a whole table.
        (2, [("a", [*range(6)]), ("b", [9])], [("a", [0, 1]), ("b", [9]), ("a", [2, 3])]),
        # What just fits shares a batch.
        (3, [("a", [0, 1]), ("a", [2]), ("a", [3])], [("a", [0, 1, 2]), ("a", [3])]),
        # A key is not kept waiting by another that always comes: who waits longest decides.
        (100, [(key, [k]) for k, key in enumerate("aabaa")], [("a", [0, 1, 3, 4]), ("b", [2])]),
    ],
)
async def test_whose_turn_it_is(most, requests, batches):
    work = Work()
    async with work.held(most) as batcher:
        await submitted(batcher, *requests)
    assert work.batches[1:][: len(batches)] == batches


async def test_a_request_that_fails_fails_alone():
    work = Work()
    async with work.held() as batcher:
        tasks = await submitted(batcher, ("a", [-1, 2]), ("a", [3]))
        work.go.set()
        one, two = await asyncio.gather(*tasks, return_exceptions=True)
        assert await batcher.submit("a", [4], 60) == [8]  # the thread still works
    assert isinstance(one, ArithmeticError)
    assert two == [6]


async def test_closing_answers_what_was_taken_and_takes_no_more():
    work = Work()
    async with work.held(most=1) as batcher:
        tasks = await submitted(batcher, *(("a", [k]) for k in range(5)))
        closing = asyncio.create_task(batcher.close())
        await asyncio.sleep(0)
        with pytest.raises(HTTPException) as refused:
            await batcher.submit("a", [7], 60)
        assert refused.value.status_code == 503
        assert not closing.done()
        work.go.set()
        await closing
        assert await asyncio.gather(*tasks) == [[2 * k] for k in range(5)]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("batch")]
