"""Asks an endpoint for paraphrases of a stream of sentences, many at a time, in one event loop.

Sentences come in pieces. A piece is written once all of it is answered; only a few pieces are open
at a time. Answers on record are not asked for again: the key of an answer covers the model, the
prompt of its sentence alone, and everything else that decides the answer.
"""

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
"""Pieces open at a time, so that one slow answer does not hold up the others."""

K = TypeVar("K")
Question = tuple[str, tuple[int | None, int]]
"""A sentence, and the degree and number of its paraphrase."""


@dataclass
class Report:
    """What one process asked. Requests and tokens are in the record."""

    answers: int = 0
    """Answers, or reasons for their absence, for a sentence and a variant."""
    reused: int = 0
    """Answers that were on record."""
    asked_again: int = 0
    """Sentences whose answer was malformed, or missing in an answer about several."""
    gave_up: int = 0


class Asking(Generic[K]):
    """The questions of one building. shown is called with this object after each answer."""

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
        """Answers all pieces, and passes each to write(name, [Written, ...]).

        pieces: name and distinct sentences of each. Returns whether the budget sufficed. pieces and
        write are called in other threads, one call at a time. Raises JobError if the endpoint
        cannot be used; answers received until then are on record.
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
        threads = ThreadPoolExecutor(self.settings.concurrency + OPEN_PIECES)
        asyncio.get_running_loop().set_default_executor(threads)
        self._write, self._writing = write, asyncio.Lock()
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
        """Whether the endpoint has answered no request at all."""
        return not self.endpoint.answered and not self.report.reused

    async def _answer_piece(self, name: K, sentences: Sequence[str]) -> None:
        results: dict[Question, Answer | str] = {}
        async with asyncio.TaskGroup() as group:
            for asked, attempt in await asyncio.to_thread(self._take_recorded, sentences, results):
                group.create_task(self._answer(asked, attempt, results))
        self._open.release()
        gave_up = sum(result == GAVE_UP for result in results.values())
        self.report.gave_up += gave_up
        over_budget = OVER_BUDGET in results.values()
        if (over_budget and not self.settings.publish_partial) or (gave_up and self._dead):
            return  # the next process asks for the rest
        questions = [(text, variant) for text in sentences for variant in self.settings.variants]
        written = [self._written(question, results[question]) for question in questions]
        async with self._writing:
            await asyncio.to_thread(self._write, name, written)

    def _take_recorded(
        self, sentences: Sequence[str], results: dict[Question, Answer | str]
    ) -> list[tuple[list[Question], int]]:
        """Copies answers on record into results. Returns what is left to ask: the questions of each
        request, and its attempt."""
        left, size = [], self.settings.sentences_per_request
        for variant in self.settings.variants:
            questions = [(text, variant) for text in sentences]
            first = self._recorded(questions, 0)
            again = [question for question, answer in first.items() if self._asks_again(answer)]
            second = self._recorded(again, 1)
            missing = [question for question in again if question not in second]
            known = {q: answer for q, answer in (first | second).items() if q not in missing}
            results |= known
            self.report.answers += len(known)
            self.report.reused += len(first) + len(second)
            left += [([question], 1) for question in missing]
            new = [question for question in questions if question not in first]
            left += [(new[k : k + size], 0) for k in range(0, len(new), size)]
        return left

    def _recorded(self, questions: Sequence[Question], attempt: int) -> dict[Question, Answer]:
        keys = {question: self._key(question, attempt) for question in questions}
        known = self.record.answers([*keys.values()])
        return {question: known[name] for question, name in keys.items() if name in known}

    def _key(self, question: Question, attempt: int) -> bytes:
        """Returns the key of an answer. attempt: 1 for the second one, which has its sentence to
        itself."""
        settings, (text, (degree, number)) = self.settings, question
        decides = settings.sampling() | {
            "seed": settings.seed,
            "max_tokens": settings.max_answer_tokens,
            "sentences": settings.sentences_per_request,
        }
        messages = self._prompt.messages([text], degree)
        return key(self.model, messages, decides, number, attempt)

    def _asks_again(self, answer: Answer) -> bool:
        """Returns whether to ask again after a first answer, with its sentence by itself."""
        several = self.settings.sentences_per_request > 1
        return answer.ending == BROKEN or (several and answer.ending != STOP)

    async def _answer(
        self, asked: list[Question], attempt: int, results: dict[Question, Answer | str]
    ) -> None:
        async with self._slots:
            await self._ask(asked, attempt, results)
        self._shown(self)

    async def _ask(
        self, asked: list[Question], attempt: int, results: dict[Question, Answer | str]
    ) -> None:
        """Sends a request with questions of one variant, then asks again where necessary."""
        texts, (degree, number) = [text for text, _ in asked], asked[0][1]
        keys = [self._key(question, attempt) for question in asked]
        request = Request(self._prompt.messages(texts, degree), texts, keys, number)
        outcome = await self.endpoint.ask(request)
        answers: Sequence[Answer | str] = (
            [outcome] * len(asked) if isinstance(outcome, str) else outcome
        )
        for question, answer in zip(asked, answers, strict=True):
            if isinstance(answer, Answer) and not attempt and self._asks_again(answer):
                self.report.asked_again += 1
                await self._ask([question], 1, results)
            else:
                results[question] = answer
                self.report.answers += 1

    def _written(self, question: Question, result: Answer | str) -> Written:
        text, differs = question[0], self.settings.differing(*question[1])
        if isinstance(result, str):
            return Written(result, text, None, differs)
        return Written(judged(text, result), text, result.text, differs)
