"""Asks a language model to paraphrase single sentences (method llm).

Source: *Chinese Sentence Paraphrasing*, section 3.2; its Table 2 is the prompt `paper`.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, computed_field, model_validator

from gaixie.jobs.corpus.settings import Uri
from gaixie.jobs.errors import JobError
from gaixie.jobs.pairs.method import Free, Group, Option
from gaixie.jobs.pairs.models import load_vocabulary, model_folder, refused
from gaixie.jobs.pairs.writing import Sentences, Written
from gaixie.udfs.storage import storage

if TYPE_CHECKING:
    from gaixie.jobs.pairs.llm.ask import Asking
    from gaixie.jobs.pairs.pieces import WritePairs
    from gaixie.jobs.pairs.settings import BuildSettings

Piece = tuple[int, list[dict[str, str]]]
"""The number of a piece, and its rows: source, foreign and group."""

FOLDER = Path(__file__).parent / "prompts"

PROMPTS = ("zero_shot", "few_shot", "degree", "paper", "simplify", "simplify_few_shot")
"""Prompts that ship with the package, in the folder prompts beside this file."""


def _without_secret(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError("expected a URL such as http://127.0.0.1:8000/v1")
    if "@" in parts.netloc or parts.query:
        raise ValueError("expected no user, password or query: the manifest shows the URL")
    return url


Url = Annotated[str, AfterValidator(_without_secret)]


def _known_prompt(prompt: str) -> str:
    if prompt not in PROMPTS and not prompt.endswith(".j2"):
        raise ValueError(f"expected {', '.join(PROMPTS)}, or a template file NAME.j2")
    if prompt not in PROMPTS and not Path(prompt).is_file():
        raise ValueError(f"{prompt}: no such file")
    return prompt


class LlmSettings(Group):
    """llm in conf/pairs.yaml: how sentences are asked for, how fast, and for how much."""

    local: Annotated[bool, Option()] = False
    """load the model with transformers on the executors, instead of calling an endpoint"""
    base_url: Annotated[Url | None, Option(), Free()] = None
    """address of an OpenAI-compatible endpoint; default OPENAI_BASE_URL, or OpenAI's own"""
    api_key_variable: Annotated[str, Free()] = "OPENAI_API_KEY"
    """the environment variable with the API key; no setting holds it"""
    cache: Annotated[Uri | None, Option(), Free()] = None
    """folder of the answers, which other jobs can reuse; default OUTPUT/answers"""

    prompt: Annotated[str, AfterValidator(_known_prompt), Option()] = "zero_shot"
    """zero_shot (default), few_shot, degree, paper (CSPC's Table 2), simplify, simplify_few_shot,
    or a template NAME.j2"""
    system: str | None = None
    degrees: Annotated[tuple[Annotated[int, Field(ge=1, le=5)], ...], Option("degree")] = ()
    """degrees of change to ask for, from 1 (a light touch) to 5 (a rewrite)"""
    paraphrases: Annotated[int, Option()] = Field(default=1, ge=1, le=100)
    """paraphrases of each sentence and degree; default 1"""
    sentences_per_request: Annotated[int, Option()] = Field(default=1, ge=1, le=100)
    """sentences in a request; several are answered as one JSON object; default 1"""

    temperature: Annotated[float | None, Option()] = Field(default=0.9, ge=0)
    """sampling temperature; default 0.9"""
    top_p: float | None = Field(default=None, gt=0, le=1)
    seed: int | None = None
    """sent with the paraphrase's number added; a local model samples by it and the sentence"""
    max_answer_tokens: int | None = Field(default=None, ge=1)
    """by default 64, plus 3 for each character of the sentences"""
    token_parameter: Annotated[Literal["max_tokens", "max_completion_tokens"], Free()] = (
        "max_tokens"
    )
    extra_body: dict[str, Any] = Field(default_factory=dict)

    concurrency: Annotated[int, Option(), Free()] = Field(default=16, ge=1)
    """requests at a time; default 16"""
    requests_per_minute: Annotated[float | None, Option(), Free()] = Field(default=None, gt=0)
    """maximum requests sent in any minute"""
    tokens_per_minute: Annotated[float | None, Option(), Free()] = Field(default=None, gt=0)
    """maximum tokens of prompts and answers in any minute"""
    request_seconds: Annotated[float, Free()] = Field(default=120, gt=0)
    attempts: Annotated[int, Free()] = Field(default=6, ge=1)
    backoff_seconds: Annotated[float, Free()] = Field(default=1, gt=0)
    max_backoff_seconds: Annotated[float, Free()] = Field(default=60, gt=0)
    stop_after: Annotated[int, Free()] = Field(default=20, ge=1)
    """the job stops after this many requests in a row failed for good"""

    max_tokens_total: Annotated[int | None, Option(), Free()] = Field(default=None, ge=1)
    """maximum tokens of all prompts and answers; the job stops before it exceeds them"""
    max_cost: Annotated[float | None, Option(), Free()] = Field(default=None, gt=0)
    """maximum cost of all requests, in the prices' currency; the job stops before it exceeds it"""
    price_in: Annotated[float | None, Option(), Free()] = Field(default=None, ge=0)
    """price of a million tokens of prompts"""
    price_out: Annotated[float | None, Option(), Free()] = Field(default=None, ge=0)
    """price of a million tokens of answers"""
    publish_partial: Annotated[bool, Option(), Free()] = False
    """if the budget ends first, publish what is finished; the rest goes to quarantine"""

    device: Annotated[str, Free()] = "auto"
    """device of a local model; auto is the GPU if there is one"""
    precision: Literal["float32", "bfloat16"] = "float32"
    batch: Annotated[int, Free()] = Field(default=16, ge=1)
    """sentences that a local model answers at a time"""

    @model_validator(mode="after")
    def _consistent(self) -> LlmSettings:
        if self.max_cost is not None and (self.price_in is None or self.price_out is None):
            raise ValueError("max_cost needs price_in and price_out, for a million tokens each")
        if self.prompt == "degree" and not self.degrees:
            raise ValueError("the prompt degree needs degrees, such as [1, 3, 5]")
        if self.degrees and self.prompt in PROMPTS and self.prompt != "degree":
            raise ValueError(f"the prompt {self.prompt} does not use degrees")
        if self.local and self.sentences_per_request > 1:
            raise ValueError("sentences_per_request is for endpoints; for a local model, set batch")
        return self

    @computed_field  # type: ignore[prop-decorator]
    @property
    def prompt_sha256(self) -> str:
        """The digest of the template: one that changes is another prompt."""
        return hashlib.sha256(self.template.read_bytes()).hexdigest()

    @property
    def template(self) -> Path:
        return FOLDER / f"{self.prompt}.j2" if self.prompt in PROMPTS else Path(self.prompt)

    @property
    def variants(self) -> list[tuple[int | None, int]]:
        """Returns the degree and number, from 0, of every paraphrase of a sentence."""
        return [(degree, k) for degree in self.degrees or (None,) for k in range(self.paraphrases)]

    def differing(self, degree: int | None, number: int) -> dict[str, int]:
        """Returns what distinguishes a variant's pairs in the lineage."""
        told = {"degree": degree} if degree else {}
        return told | ({"number": number} if self.paraphrases > 1 else {})

    def sampling(self) -> dict[str, Any]:
        """Returns how an endpoint samples answers, except the length limit and the seed."""
        given = {"temperature": self.temperature, "top_p": self.top_p}
        return {name: value for name, value in given.items() if value is not None} | self.extra_body

    def cost(self, tokens_in: float, tokens_out: float) -> float | None:
        """Returns the cost of so many tokens; None if prices are unknown."""
        if self.price_in is None or self.price_out is None:
            return None
        return (tokens_in * self.price_in + tokens_out * self.price_out) / 1e6


@dataclass(frozen=True)
class Llm(Sentences):
    """The method llm. The driver asks an endpoint, so that its limits hold exactly; a local model
    runs on the executors."""

    origin = "llm"
    groups = ("llm",)
    decides = ("seed", "llm")

    model: str
    own: LlmSettings
    output: str

    @classmethod
    def of(cls, settings: BuildSettings) -> Llm:
        from gaixie.jobs.pairs.llm.prompts import Prompt
        from gaixie.jobs.pairs.llm.record import check_place

        method = cls(settings.model or "", settings.llm, settings.folder)
        if not method.model:
            raise JobError("--model is missing: its name at the endpoint, or with --local a folder")
        Prompt(method.own)  # raises if the template is invalid
        if not method.own.local:
            check_place(method.answers)
        return method

    @property
    def answers(self) -> str:
        """The folder of the answers."""
        return self.own.cache or f"{self.output}/answers"

    def check(self, dry_run: bool = False) -> None:
        own, variable = self.own, self.own.api_key_variable
        needed, extra = ("transformers", "train") if own.local else ("openai", "llm")
        if not find_spec(needed):
            raise JobError(f"the package {needed} is missing: pip install 'gaixie[{extra}]'")
        if own.local:
            with refused():
                load_vocabulary(self.model, causal=True)  # loads no weights
        elif not any([own.base_url, dry_run, *map(os.environ.get, ("OPENAI_BASE_URL", variable))]):
            raise JobError(f"no API key: the environment variable {variable} is empty or missing")

    def version(self) -> str | None:
        """Returns the name of a local model's folder and a digest."""
        if not self.own.local:
            return None
        from gaixie.udfs.metrics.encoder import model_signature

        return model_signature(model_folder(self.model))

    def models(self) -> list[str]:
        return [self.model] if self.own.local else []

    def write(self, sentences: Sequence[str]) -> Iterator[Written]:
        from gaixie.jobs.pairs.llm.local import load_model

        return load_model(self.model, self.own).write(sentences)

    def run(self, job: WritePairs) -> dict[str, Any]:
        """Writes the missing pieces. Returns what they took.

        Raises JobError if the budget ends before the sentences do, unless publish_partial is set.
        """
        if self.own.local:
            return super().run(job)
        from gaixie.jobs.pairs.llm.ask import Asking
        from gaixie.jobs.pairs.llm.record import Record

        total, left, variants = sum(job.sizes.values()), job.left(), len(self.own.variants)
        record, started = Record(self.answers, self.output), time.monotonic()
        record.begin()
        try:
            with job.progress("asking") as shown:

                def show(asking: Asking[Piece]) -> None:
                    done = total - left + asking.report.answers // variants
                    spent = asking.endpoint.budget.told()
                    shown.update(done, f"{done:,} of {total:,} sentences, {spent}")

                asking = Asking[Piece](self.own, self.model, record, show)
                enough = asking.run(job.open_pieces(), job.keep)
            spent, report = record.spent(), asking.report
        finally:
            record.close()
        if not enough and not self.own.publish_partial:
            limit = f"--max-cost {self.own.max_cost:g}" if self.own.max_cost else ""
            if self.own.max_tokens_total:
                limit = f"--max-tokens-total {self.own.max_tokens_total:,}"
            raise JobError(
                f"{limit} is almost used up: {asking.endpoint.budget.told()}; at most "
                f"{job.left():,} of {total:,} sentences are left, nothing was published; raise it "
                "and give --resume to continue, or --publish-partial to publish what is finished"
            )
        # These cover the whole building; reused, asked_again and the rate cover this process.
        return spent._asdict() | {
            "cost": self.own.cost(spent.tokens_in, spent.tokens_out),
            "reused": report.reused,
            "asked_again": report.asked_again,
            "answers_per_second": round(report.answers / max(time.monotonic() - started, 1e-9), 2),
        }

    def preview(self, sentences: Sequence[str], total: float, cores: int) -> None:
        """Prints prompts, and an estimate for all of them."""
        if self.own.local:
            super().preview(sentences, total, cores)
            return
        from gaixie.jobs.pairs.llm.estimate import preview
        from gaixie.jobs.pairs.llm.record import Record

        measured = None
        if storage.exists(self.answers):
            record = Record(self.answers, self.output)
            measured = record.measured(self.model)
            record.close()
        preview(self.own, self.model, sentences, total, measured)
