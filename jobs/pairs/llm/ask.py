"""Asks an endpoint for paraphrases of a stream of sentences, many at a time, in one event loop.

Sentences come in pieces; a piece is written once all of it is answered, and only a few are open at a
time. What is on record is not asked for again: the key of an answer is made of the model, the prompt of
its sentence alone, and all that decides the answer beside them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from gaixie.jobs.errors import JobError
from gaixie.jobs.pairs.llm.answers import BROKEN, GAVE_UP, OVER_BUDGET, STOP, Answer, judged
from gaixie.jobs.pairs.llm.endpoint import Endpoint, Request
from gaixie.jobs.pairs.llm.prompts import Prompt
from gaixie.jobs.pairs.llm.record import Record, key
from gaixie.jobs.pairs.llm.settings import LlmSettings
from gaixie.jobs.pairs.writing import Written

OPEN_PIECES = 4
"""That are being asked for at a time: the slowest answer of one holds up none of the others."""

K = TypeVar("K")
Result = Answer | str
"""An answer, or the reason for which there is none."""


@dataclass
class Report:
    """What was asked in one process. Requests and tokens are on record."""

    answers: int = 0
    """Of a sentence and a variant, or the reason for which there is none."""
    reused: int = 0
    """Answers that were on record."""
    asked_again: int = 0
    """Sentences whose answer was malformed, or came to none among others."""
    gave_up: int = 0
    unasked: int = 0
    """Sentences of which the budget left something out."""


@dataclass
class _Piece(Generic[K]):
    name: K
    sentences: list[str]
    results: list[list[Result | None]]
    """By sentence and variant."""
    left: int = 0
    """Requests."""


@dataclass
class _Task(Generic[K]):
    piece: _Piece[K]
    variant: int
    rows: list[int]
    """Sentences of the piece."""
    attempt: int


class Asking(Generic[K]):
    """One building's questions. shown: called with this after each answer."""

    def __init__(
        self,
        settings: LlmSettings,
        model: str,
        record: Record,
        shown: Callable[[Asking[K]], None] = lambda _: None,
    ):
        self.settings, self.model, self.record = settings, model, record
        self.report = Report()
        self._prompt = Prompt(settings)
        self._shown = shown
        self.endpoint: Endpoint

    def run(self, pieces: Iterator[tuple[K, Sequence[str]]], write: Callable[..., None]) -> bool:
        """Answers all pieces, and hands each to write(name, [Written, ...]); whether the budget sufficed.

        pieces and write are called in other threads, one call at a time. Raises JobError where the
        endpoint cannot be used; what was answered until then is on record.
        """
        return asyncio.run(self._run(pieces, write))

    async def _run(
        self, pieces: Iterator[tuple[K, Sequence[str]]], write: Callable[..., None]
    ) -> bool:
        self.endpoint = Endpoint(self.settings, self.model, self.record)
        self._write, self._writing = write, asyncio.Lock()
        self._open = asyncio.Semaphore(OPEN_PIECES)
        queue: asyncio.Queue[_Task[K]] = asyncio.Queue(2 * self.settings.concurrency)
        workers = [asyncio.create_task(self._work(queue)) for _ in range(self.settings.concurrency)]
        feeding = asyncio.create_task(self._feed(pieces, queue))
        try:
            await _first(feeding, *workers)  # a worker ends only with an error
            await _first(asyncio.create_task(queue.join()), *workers)
        finally:
            for task in (feeding, *workers):
                task.cancel()
            await asyncio.gather(feeding, *workers, return_exceptions=True)
            await self.endpoint.close()
        if self.report.gave_up and self._dead:
            raise JobError(f"{self.endpoint.address}: no answer; {self.endpoint.failure}")
        return not self.endpoint.over_budget

    async def _feed(
        self, pieces: Iterator[tuple[K, Sequence[str]]], queue: asyncio.Queue[_Task[K]]
    ) -> None:
        while self.settings.publish_partial or not self.endpoint.over_budget:
            await self._open.acquire()
            if (following := await asyncio.to_thread(next, pieces, None)) is None:
                return
            name, sentences = following
            variants = self.settings.variants
            piece = _Piece(name, [*sentences], [[None] * len(variants) for _ in sentences])
            tasks = await asyncio.to_thread(self._tasks, piece)
            piece.left = len(tasks)
            if not tasks:
                await self._finish(piece)
            for task in tasks:
                await queue.put(task)

    @property
    def _dead(self) -> bool:
        """Whether the endpoint has not answered a single request."""
        return not self.endpoint.answered and not self.report.reused

    def _tasks(self, piece: _Piece[K]) -> list[_Task[K]]:
        """Takes what is on record into a piece; what is left to ask."""
        tasks = []
        for variant in range(len(self.settings.variants)):
            first = self._recorded(piece, variant, range(len(piece.sentences)), 0)
            again = [row for row, answer in first.items() if self._again(answer)]
            second = self._recorded(piece, variant, again, 1)
            for row, answer in (first | second).items():
                if row not in again or row in second:
                    piece.results[row][variant] = answer
                    self.report.answers += 1
            self.report.reused += len(first) + len(second)
            tasks += [_Task(piece, variant, [row], 1) for row in again if row not in second]
            rows = [row for row in range(len(piece.sentences)) if row not in first]
            size = self.settings.sentences_per_request
            tasks += [
                _Task(piece, variant, rows[k : k + size], 0) for k in range(0, len(rows), size)
            ]
        return tasks

    def _recorded(
        self, piece: _Piece[K], variant: int, rows: Sequence[int], attempt: int
    ) -> dict[int, Answer]:
        keys = {row: self._key(piece.sentences[row], variant, attempt) for row in rows}
        known = self.record.answers([*keys.values()])
        return {row: known[name] for row, name in keys.items() if name in known}

    def _key(self, sentence: str, variant: int, attempt: int) -> bytes:
        """Of an answer. attempt 1: the second, that of a sentence by itself."""
        settings = self.settings
        degree, number = settings.variants[variant]
        decides = settings.sampling() | {
            "seed": settings.seed,
            "max_tokens": settings.max_answer_tokens,
            "sentences": settings.sentences_per_request,
        }
        messages = self._prompt.messages([sentence], degree)
        return key(self.model, messages, decides, number, attempt)

    def _again(self, answer: Answer) -> bool:
        """Whether a first answer is asked for once more, its sentence by itself."""
        several = self.settings.sentences_per_request > 1
        return answer.ending == BROKEN or (several and answer.ending != STOP)

    async def _work(self, queue: asyncio.Queue[_Task[K]]) -> None:
        while True:
            task = await queue.get()
            await self._answer(task)
            task.piece.left -= 1
            if not task.piece.left:
                await self._finish(task.piece)
            self._shown(self)
            queue.task_done()

    async def _answer(self, task: _Task[K]) -> None:
        degree, number = self.settings.variants[task.variant]
        sentences = [task.piece.sentences[row] for row in task.rows]
        keys = [self._key(sentence, task.variant, task.attempt) for sentence in sentences]
        messages = self._prompt.messages(sentences, degree)
        outcome = await self.endpoint.ask(Request(messages, sentences, keys, number))
        results: Sequence[Result] = (
            outcome if isinstance(outcome, list) else [outcome] * len(task.rows)
        )
        for row, result in zip(task.rows, results, strict=True):
            if isinstance(result, Answer) and not task.attempt and self._again(result):
                self.report.asked_again += 1
                await self._answer(_Task(task.piece, task.variant, [row], 1))
            else:
                task.piece.results[row][task.variant] = result
                self.report.answers += 1

    async def _finish(self, piece: _Piece[K]) -> None:
        """Writes a piece, but where it is to be asked for again by the next process."""
        self._open.release()
        unasked = sum(OVER_BUDGET in results for results in piece.results)
        gave_up = sum(results.count(GAVE_UP) for results in piece.results)
        self.report.unasked += unasked
        self.report.gave_up += gave_up
        if (unasked and not self.settings.publish_partial) or (gave_up and self._dead):
            return
        rows = [
            self._written(source, variant, result)
            for source, results in zip(piece.sentences, piece.results, strict=True)
            for variant, result in zip(self.settings.variants, results, strict=True)
        ]
        async with self._writing:
            await asyncio.to_thread(self._write, piece.name, rows)

    def _written(
        self, source: str, variant: tuple[int | None, int], result: Result | None
    ) -> Written:
        assert result is not None
        differs = self.settings.differing(*variant)
        if isinstance(result, str):
            return Written(result, source, None, differs)
        return Written(judged(source, result), source, result.text, differs)


async def _first(*tasks: asyncio.Task[Any]) -> None:
    """Waits until one of the tasks ends; raises what it raised."""
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()
