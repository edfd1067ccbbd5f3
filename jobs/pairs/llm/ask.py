"""Asks an endpoint for paraphrases of a stream of sentences, many at a time, in one event loop.

Sentences come in pieces. A piece is written once all of it is answered, and only a few are open at
a time. What is on record is not asked for again: the key of an answer is made of the model, the
prompt of its sentence alone, and everything else that decides the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

from gaixie.jobs.errors import JobError
from gaixie.jobs.pairs.llm.answers import BROKEN, GAVE_UP, OVER_BUDGET, STOP, Answer, judged
from gaixie.jobs.pairs.llm.endpoint import Endpoint, Request
from gaixie.jobs.pairs.llm.method import LlmSettings
from gaixie.jobs.pairs.llm.prompts import Prompt
from gaixie.jobs.pairs.llm.record import Record, key
from gaixie.jobs.pairs.writing import Written

OPEN_PIECES = 4
"""Pieces that are asked about at a time, so that one slow answer does not hold up the others."""

K = TypeVar("K")
Results = list[list[Answer | str]]
"""By sentence and variant: an answer, or the reason for which there is none."""


@dataclass
class Report:
    """What one process asked. Requests and tokens are on record."""

    answers: int = 0
    """Answers, or reasons for which there is none, of a sentence and a variant."""
    reused: int = 0
    """Answers that were on record."""
    asked_again: int = 0
    """Sentences whose answer was malformed, or missing among several."""
    gave_up: int = 0


class Asking(Generic[K]):
    """The questions of one building. shown is called with this after each answer."""

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
        """Answers all pieces, and hands each to write(name, [Written, ...]).

        Returns whether the budget sufficed. pieces and write are called in other threads, one call
        at a time. Raises JobError where the endpoint cannot be used; what was answered until then
        is on record.
        """
        try:
            return asyncio.run(self._run(pieces, write))
        except ExceptionGroup as group:
            error: Exception = group
            while isinstance(error, ExceptionGroup):
                error = error.exceptions[0]
            raise error from None

    async def _run(
        self, pieces: Iterator[tuple[K, Sequence[str]]], write: Callable[..., None]
    ) -> bool:
        self.endpoint = Endpoint(self.settings, self.model, self.record)
        self._write, self._writing, self._feeding = write, asyncio.Lock(), asyncio.Lock()
        threads = ThreadPoolExecutor(self.settings.concurrency + OPEN_PIECES)
        asyncio.get_running_loop().set_default_executor(threads)
        self._open = asyncio.Semaphore(OPEN_PIECES)
        self._slots = asyncio.Semaphore(self.settings.concurrency)
        try:
            async with asyncio.TaskGroup() as group:
                while self.settings.publish_partial or not self.endpoint.over_budget:
                    await self._open.acquire()
                    following = await asyncio.to_thread(next, pieces, None)
                    if following is None:
                        break
                    group.create_task(self._answer_piece(*following))
        finally:
            await self.endpoint.close()
        if self.report.gave_up and self._dead:
            raise JobError(f"{self.endpoint.address}: no answer; {self.endpoint.failure}")
        return not self.endpoint.over_budget

    @property
    def _dead(self) -> bool:
        """Whether the endpoint has not answered a single request."""
        return not self.endpoint.answered and not self.report.reused

    async def _answer_piece(self, name: K, sentences: Sequence[str]) -> None:
        results: Results = [[""] * len(self.settings.variants) for _ in sentences]
        async with asyncio.TaskGroup() as group, self._feeding:  # one piece after the other
            asked = await asyncio.to_thread(self._take_recorded, sentences, results)
            for request in asked:
                await self._slots.acquire()
                group.create_task(self._answer(sentences, results, *request))
        self._open.release()
        gave_up = sum(row.count(GAVE_UP) for row in results)
        self.report.gave_up += gave_up
        over_budget = any(OVER_BUDGET in row for row in results)
        if (over_budget and not self.settings.publish_partial) or (gave_up and self._dead):
            return  # the next process asks for the rest
        written = [
            self._written(source, variant, result)
            for source, row in zip(sentences, results, strict=True)
            for variant, result in zip(self.settings.variants, row, strict=True)
        ]
        async with self._writing:
            await asyncio.to_thread(self._write, name, written)

    def _take_recorded(
        self, sentences: Sequence[str], results: Results
    ) -> list[tuple[int, list[int], int]]:
        """Puts answers on record into results. Returns what is left to ask: variant, rows,
        attempt."""
        asked, size = [], self.settings.sentences_per_request
        for variant in range(len(self.settings.variants)):
            first = self._recorded(sentences, variant, range(len(sentences)), 0)
            again = [row for row, answer in first.items() if self._asks_again(answer)]
            second = self._recorded(sentences, variant, again, 1)
            for row, answer in (first | second).items():
                if row not in again or row in second:
                    results[row][variant] = answer
                    self.report.answers += 1
            self.report.reused += len(first) + len(second)
            asked += [(variant, [row], 1) for row in again if row not in second]
            rows = [row for row in range(len(sentences)) if row not in first]
            asked += [(variant, rows[k : k + size], 0) for k in range(0, len(rows), size)]
        return asked

    def _recorded(
        self, sentences: Sequence[str], variant: int, rows: Sequence[int], attempt: int
    ) -> dict[int, Answer]:
        keys = {row: self._key(sentences[row], variant, attempt) for row in rows}
        known = self.record.answers([*keys.values()])
        return {row: known[name] for row, name in keys.items() if name in known}

    def _key(self, sentence: str, variant: int, attempt: int) -> bytes:
        """Returns the key of an answer. attempt 1: the second, about a sentence by itself."""
        settings = self.settings
        degree, number = settings.variants[variant]
        decides = settings.sampling() | {
            "seed": settings.seed,
            "max_tokens": settings.max_answer_tokens,
            "sentences": settings.sentences_per_request,
        }
        messages = self._prompt.messages([sentence], degree)
        return key(self.model, messages, decides, number, attempt)

    def _asks_again(self, answer: Answer) -> bool:
        """Whether a first answer is asked for once more, its sentence by itself."""
        several = self.settings.sentences_per_request > 1
        return answer.ending == BROKEN or (several and answer.ending != STOP)

    async def _answer(
        self,
        sentences: Sequence[str],
        results: Results,
        variant: int,
        rows: list[int],
        attempt: int,
    ) -> None:
        try:
            await self._ask(sentences, results, variant, rows, attempt)
        finally:
            self._slots.release()
        self._shown(self)

    async def _ask(
        self,
        sentences: Sequence[str],
        results: Results,
        variant: int,
        rows: list[int],
        attempt: int,
    ) -> None:
        degree, number = self.settings.variants[variant]
        asked = [sentences[row] for row in rows]
        keys = [self._key(sentence, variant, attempt) for sentence in asked]
        request = Request(self._prompt.messages(asked, degree), asked, keys, number)
        outcome = await self.endpoint.ask(request)
        answers: Sequence[Answer | str]
        answers = [outcome] * len(rows) if isinstance(outcome, str) else outcome
        for row, answer in zip(rows, answers, strict=True):
            if isinstance(answer, Answer) and not attempt and self._asks_again(answer):
                self.report.asked_again += 1
                await self._ask(sentences, results, variant, [row], 1)
            else:
                results[row][variant] = answer
                self.report.answers += 1

    def _written(
        self, source: str, variant: tuple[int | None, int], result: Answer | str
    ) -> Written:
        differs = self.settings.differing(*variant)
        if isinstance(result, str):
            return Written(result, source, None, differs)
        return Written(judged(source, result), source, result.text, differs)
