"""llm: a language model is asked for paraphrases of single sentences.

Source: *Chinese Sentence Paraphrasing*, Table 2: zero-shot and few-shot prompts.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from gaixie.jobs.corpus.beside import interruptible
from gaixie.jobs.errors import JobError
from gaixie.jobs.pairs.llm.record import Record
from gaixie.jobs.pairs.llm.settings import LlmSettings
from gaixie.jobs.pairs.writing import Sentences, Writer, Written
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.progress import Progress

if TYPE_CHECKING:
    from gaixie.jobs.pairs.llm.ask import Asking
    from gaixie.jobs.pairs.pieces import Pieces
    from gaixie.jobs.pairs.settings import BuildSettings

Piece = tuple[int, list[dict[str, str]]]
"""Number and rows: source, foreign, group."""


@dataclass(frozen=True)
class Llm(Sentences):
    """The method. An endpoint is asked from the driver, so that its limits are exact; a local model runs
    on the executors."""

    model: str
    own: LlmSettings
    output: str

    @classmethod
    def of(cls, settings: BuildSettings) -> Llm:
        return cls(settings.model or "", settings.llm, str(settings.output).rstrip("/"))

    @property
    def answers(self) -> str:
        """Folder of the answers."""
        return self.own.cache or f"{self.output}/answers"

    def check(self) -> None:
        needed, extra = ("transformers", "train") if self.own.local else ("openai", "llm")
        if not find_spec(needed):
            raise JobError(f"the package {needed} is missing: pip install 'gaixie[{extra}]'")
        if self.own.local:
            from gaixie.jobs.pairs.llm.local import check_model

            check_model(self.model)

    def version(self) -> str | None:
        """Of a local model: its folder's name and a digest."""
        if not self.own.local:
            return None
        from gaixie.jobs.pairs.llm.local import version_of

        return version_of(self.model)

    def load(self) -> Writer:
        from gaixie.jobs.pairs.llm.local import LocalModel

        return LocalModel(self.model, self.own)

    def run(self, pieces: Pieces) -> dict[str, Any]:
        """Writes the pieces that are missing; what they took.

        Raises JobError where the budget ended before the sentences did, unless publish_partial.
        """
        if self.own.local:
            return super().run(pieces)
        from gaixie.jobs.pairs.llm.ask import Asking

        missing, total = pieces.missing(), sum(pieces.counts.values())
        left = sum(pieces.counts[number] for number in missing)
        record, started = Record(self.answers, self.output), time.monotonic()
        record.begin()
        try:
            with Progress("asking", total, "sentences", done=total - left) as shown:

                def show(asking: Asking[Piece]) -> None:
                    done = total - left + asking.report.answers // len(self.own.variants)
                    shown.update(done, f"{done:,} of {total:,} sentences, {self._spending(asking)}")

                asking = Asking[Piece](self.own, self.model, record, show)
                enough = asking.run(_read(pieces, missing), _keep(pieces))
            figures = self._figures(asking, record, time.monotonic() - started)
        finally:
            record.close()
        if not enough and not self.own.publish_partial:
            still = sum(pieces.counts[number] for number in pieces.missing())
            raise JobError(
                f"{self._limits()} is all but spent: {self._spending(asking)}; of {total:,} sentences at "
                f"most {still:,} are left, nothing was published; the same command with --resume and more "
                "of it goes on, --publish-partial publishes what there is"
            )
        return figures

    def _limits(self) -> str:
        if self.own.max_tokens_total:
            return f"--max-tokens-total {self.own.max_tokens_total:,}"
        return f"--max-cost {self.own.max_cost:g}"

    def _spending(self, asking: Asking[Piece]) -> str:
        budget = asking.endpoint.budget
        cost = self.own.cost(budget.tokens_in, budget.tokens_out)
        tokens = f"{budget.tokens_in + budget.tokens_out:,} tokens"
        return tokens if cost is None else f"{tokens}, cost {cost:,.2f}"

    def _figures(self, asking: Asking[Piece], record: Record, seconds: float) -> dict[str, Any]:
        """For the manifest: of the whole building; reused, asked_again and rate of this process."""
        spent, report = record.spent(), asking.report
        return spent._asdict() | {
            "cost": self.own.cost(spent.tokens_in, spent.tokens_out),
            "reused": report.reused,
            "asked_again": report.asked_again,
            "answers_per_second": round(report.answers / max(seconds, 1e-9), 2),
        }

    def preview(self, sentences: Sequence[str], total: float, cores: int) -> None:
        """Prints prompts, and what all of it takes."""
        if self.own.local:
            super().preview(sentences, total, cores)
            return
        from gaixie.jobs.pairs.llm.estimate import preview

        measured = None
        if storage.exists(self.answers):
            record = Record(self.answers, self.output)
            measured = record.measured(self.model)
            record.close()
        preview(self.own, self.model, sentences, total, measured)


def _read(pieces: Pieces, missing: Sequence[int]) -> Iterator[tuple[Piece, list[str]]]:
    for number in missing:
        rows = interruptible(pieces.sentences(number).toArrow).to_pylist()
        yield (number, rows), list(dict.fromkeys(row[pieces.reads] for row in rows))


def _keep(pieces: Pieces) -> Any:
    def keep(piece: Piece, written: Sequence[Written]) -> None:
        number, rows = piece
        pieces.keep(number, pieces.settling.settle(rows, pieces.reads, written))

    return keep
