"""The queue must return each result to its request, refuse what is too much, and stop cleanly."""

import asyncio
import threading

import pytest
from fastapi import HTTPException
from hypothesis import given, settings
from hypothesis import strategies as st

from gaixie.service.batching import Batcher


class Work:
    """Doubles numbers, remembers its batches, and waits before a batch if told to."""

    def __init__(self):
        self.batches: list[tuple[str, list[int]]] = []
        self.threads: set[int] = set()
        self.at_once, self.most_at_once = 0, 0
        self.begun, self.go = threading.Event(), threading.Event()
        self.go.set()

    def __call__(self, key: str, items: list[int]) -> list[int]:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.threads.add(threading.get_ident())
        self.batches.append((key, list(items)))
        self.begun.set()
        assert self.go.wait(60)
        self.at_once -= 1
        if -1 in items:
            raise ArithmeticError("minus one")
        return [2 * item for item in items]

    async def hold(self, batcher: Batcher) -> asyncio.Task:
        """Keeps the thread working until ``go`` is set. Returns the request it works on."""
        self.go.clear()
        self.begun.clear()
        task = asyncio.create_task(batcher.submit("held", [0], 60))
        assert await asyncio.to_thread(self.begun.wait, 60)
        return task


REQUESTS = st.lists(
    st.tuples(st.sampled_from("ab"), st.lists(st.integers(0, 10_000), max_size=12)), max_size=12
)


@given(requests=REQUESTS, most=st.integers(1, 7), held=st.booleans())
@settings(max_examples=150)
def test_each_request_gets_its_own_results(requests, most, held):
    work = Work()

    async def ask() -> list[list[int]]:
        batcher = Batcher(work, most=most, queue=1_000, wait=0)
        first = await work.hold(batcher) if held else None  # otherwise all find the thread idle
        tasks = [asyncio.create_task(batcher.submit(key, items, 60)) for key, items in requests]
        await asyncio.sleep(0)
        work.go.set()
        answers = await asyncio.gather(*tasks)
        if first:
            assert await first == [0]
        assert batcher.length == 0
        await batcher.close()
        return answers

    answers = asyncio.run(ask())
    assert answers == [[2 * item for item in items] for _, items in requests]
    own = [(key, items) for key, items in work.batches if key != "held"]
    for key in "ab":  # each item must come once, under its key
        given_items = [item for other, items in requests if other == key for item in items]
        worked = [item for other, items in own if other == key for item in items]
        assert sorted(worked) == sorted(given_items)
    assert all(len(items) <= most for _, items in own)
    assert len(work.threads) <= 1
    assert work.most_at_once <= 1


def test_a_full_queue_refuses_and_says_when_to_come_again():
    work = Work()

    async def ask() -> HTTPException:
        batcher = Batcher(work, most=10, queue=5, wait=0)
        first = await work.hold(batcher)
        second = asyncio.create_task(batcher.submit("a", [1, 2, 3, 4], 60))
        await asyncio.sleep(0)
        assert batcher.length == 4
        with pytest.raises(HTTPException) as refused:
            await batcher.submit("a", [5, 6], 60)
        third = asyncio.create_task(batcher.submit("a", [7], 60))  # one more still fits
        await asyncio.sleep(0)
        work.go.set()
        assert await asyncio.gather(first, second, third) == [[0], [2, 4, 6, 8], [14]]
        await batcher.close()
        return refused.value

    refused = asyncio.run(ask())
    assert refused.status_code == 429
    assert refused.headers["Retry-After"] == "1"
    assert 5 not in [item for _, items in work.batches for item in items]


@pytest.mark.parametrize("how", ["cancelled", "too late"])
def test_who_goes_leaves_the_queue(how):
    work = Work()

    async def ask() -> None:
        batcher = Batcher(work, most=10, queue=100, wait=0)
        first = await work.hold(batcher)
        timeout = 0.01 if how == "too late" else 60
        gone = asyncio.create_task(batcher.submit("a", [1, 2], timeout))
        stays = asyncio.create_task(batcher.submit("a", [3], 60))
        await asyncio.sleep(0)
        if how == "cancelled":
            gone.cancel()
            with pytest.raises(asyncio.CancelledError):
                await gone
        else:
            with pytest.raises(HTTPException) as refused:
                await gone
            assert refused.value.status_code == 503
            assert refused.value.headers["Retry-After"] == "1"
        work.go.set()
        assert await stays == [6]
        assert batcher.length == 0
        assert await first == [0]
        await batcher.close()

    asyncio.run(ask())
    assert work.batches == [("held", [0]), ("a", [3])]


def test_half_done_and_gone_is_not_worked_on_further():
    work = Work()

    async def ask() -> None:
        batcher = Batcher(work, most=2, queue=100, wait=0)
        work.go.clear()
        gone = asyncio.create_task(batcher.submit("a", [1, 2, 3, 4, 5], 60))
        assert await asyncio.to_thread(work.begun.wait, 60)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        work.go.set()
        assert await batcher.submit("a", [9], 60) == [18]
        await batcher.close()

    asyncio.run(ask())
    assert work.batches == [("a", [1, 2]), ("a", [9])]


def test_one_pair_does_not_wait_for_a_whole_table():
    work = Work()

    async def ask() -> None:
        batcher = Batcher(work, most=2, queue=100, wait=0)
        first = await work.hold(batcher)
        table = asyncio.create_task(batcher.submit("a", [*range(6)], 60))
        await asyncio.sleep(0)
        pair = asyncio.create_task(batcher.submit("b", [9], 60))
        await asyncio.sleep(0)
        work.go.set()
        await asyncio.gather(first, table, pair)
        await batcher.close()

    asyncio.run(ask())
    assert work.batches[1:] == [("a", [0, 1]), ("b", [9]), ("a", [2, 3]), ("a", [4, 5])]


def test_a_request_that_fails_fails_alone():
    work = Work()

    async def ask() -> list:
        batcher = Batcher(work, most=10, queue=100, wait=0)
        first = await work.hold(batcher)
        tasks = [asyncio.create_task(batcher.submit("a", own, 60)) for own in ([1], [-1, 2], [3])]
        await asyncio.sleep(0)
        work.go.set()
        await first
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert await batcher.submit("a", [4], 60) == [8]  # the thread still works
        await batcher.close()
        return answers

    one, two, three = asyncio.run(ask())
    assert (one, three) == ([2], [6])
    assert isinstance(two, ArithmeticError)


def test_closing_answers_what_was_taken_and_takes_no_more():
    work = Work()

    async def ask() -> None:
        batcher = Batcher(work, most=1, queue=100, wait=0)
        first = await work.hold(batcher)
        tasks = [asyncio.create_task(batcher.submit("a", [k], 60)) for k in range(5)]
        await asyncio.sleep(0)
        closing = asyncio.create_task(batcher.close())
        await asyncio.sleep(0)
        with pytest.raises(HTTPException) as refused:
            await batcher.submit("a", [7], 60)
        assert refused.value.status_code == 503
        assert not closing.done()
        work.go.set()
        await closing
        assert all(task.done() for task in [first, *tasks])
        assert await asyncio.gather(*tasks) == [[2 * k] for k in range(5)]

    asyncio.run(ask())
    assert [*threading.enumerate()] == [
        thread for thread in threading.enumerate() if not thread.name.startswith("batch")
    ]


def test_a_key_is_not_kept_waiting_by_another_that_always_comes():
    """The longest-waiting request must decide the next batch's key, or a busy key starves it."""
    work = Work()

    async def ask() -> None:
        batcher = Batcher(work, most=100, queue=1_000, wait=0)
        first = await work.hold(batcher)
        keys = "aabaaab"
        tasks = [asyncio.create_task(batcher.submit(k, [i], 60)) for i, k in enumerate(keys)]
        await asyncio.sleep(0)
        work.go.set()
        await asyncio.gather(first, *tasks)
        await batcher.close()

    asyncio.run(ask())
    assert work.batches[1:] == [("a", [0, 1, 3, 4, 5]), ("b", [2, 6])]
