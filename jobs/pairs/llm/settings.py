"""Settings of the method llm: the part llm of conf/pairs.yaml."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, computed_field, model_validator

from gaixie.jobs.corpus.settings import Uri
from gaixie.jobs.pairs.writer_settings import WriterSettings

FOLDER = Path(__file__).parent / "prompts"

PROMPTS = ("zero_shot", "few_shot", "degree")
"""Prompts that ship, in the folder prompts beside this file."""


def _without_secret(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError("expected a URL such as http://127.0.0.1:8000/v1")
    if "@" in parts.netloc or parts.query:
        raise ValueError("expected no user, password or query: the manifest shows the URL")
    return url


def _known_prompt(prompt: str) -> str:
    if prompt not in PROMPTS and not prompt.endswith(".j2"):
        raise ValueError(f"expected {', '.join(PROMPTS)}, or a template file NAME.j2")
    if prompt.endswith(".j2") and not Path(prompt).is_file():
        raise ValueError(f"{prompt}: no such file")
    return prompt


class LlmSettings(WriterSettings):
    """How sentences are asked for, how fast, and for how much."""

    FREE: ClassVar[frozenset[str]] = frozenset(
        [
            "base_url",
            "api_key_variable",
            "cache",
            "token_parameter",
            "concurrency",
            "requests_per_minute",
            "tokens_per_minute",
            "request_seconds",
            "attempts",
            "backoff_seconds",
            "max_backoff_seconds",
            "stop_after",
            "max_tokens_total",
            "max_cost",
            "price_in",
            "price_out",
            "publish_partial",
            "batch",
            "device",
        ]
    )

    local: bool = False
    """load the model with transformers, on Spark's executors, in place of an endpoint"""
    base_url: Annotated[str, AfterValidator(_without_secret)] | None = None
    """of an OpenAI-compatible endpoint; by default openai's own, or OPENAI_BASE_URL"""
    api_key_variable: str = "OPENAI_API_KEY"
    """Environment variable that holds the key: it stands in no setting."""
    cache: Uri | None = None
    """folder of answers, to be used again; by default OUTPUT/answers"""

    prompt: Annotated[str, AfterValidator(_known_prompt)] = "zero_shot"
    """zero_shot (default) | few_shot | degree | a template NAME.j2"""
    system: str | None = None
    degrees: tuple[Annotated[int, Field(ge=1, le=5)], ...] = ()
    """of change, 1 (a light touch) to 5 (a rewrite): each is asked for"""
    paraphrases: int = Field(default=1, ge=1, le=100)
    """of a sentence and degree"""
    sentences_per_request: int = Field(default=1, ge=1, le=100)
    """by default 1"""

    temperature: float | None = Field(default=0.9, ge=0)
    """by default 0.9"""
    top_p: float | None = Field(default=None, gt=0, le=1)
    seed: int | None = None
    """Sent plus the paraphrase's number; a local model draws by it and the sentence."""
    max_answer_tokens: int | None = Field(default=None, ge=1)
    """Null: 64 + three for each character of the sentences."""
    token_parameter: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    extra_body: dict[str, Any] = Field(default_factory=dict)

    concurrency: int = Field(default=16, ge=1)
    """requests at a time; by default 16"""
    requests_per_minute: float | None = Field(default=None, gt=0)
    """at most"""
    tokens_per_minute: float | None = Field(default=None, gt=0)
    """at most"""
    request_seconds: float = Field(default=120, gt=0)
    attempts: int = Field(default=6, ge=1)
    backoff_seconds: float = Field(default=1, gt=0)
    max_backoff_seconds: float = Field(default=60, gt=0)
    stop_after: int = Field(default=20, ge=1)
    """Requests in a row that failed for good: the run stops."""

    max_tokens_total: int | None = Field(default=None, ge=1)
    """of prompts and answers: the run stops before it would exceed them"""
    max_cost: float | None = Field(default=None, gt=0)
    """the same, by price-in and price-out"""
    price_in: float | None = Field(default=None, ge=0)
    """of a million tokens of prompts, in any currency"""
    price_out: float | None = Field(default=None, ge=0)
    """of a million tokens of answers"""
    publish_partial: bool = False
    """where the budget ends early: publish, with the rest in quarantine"""

    device: str = "auto"
    """Of a local model; auto: the GPU where there is one."""
    precision: Literal["float32", "bfloat16"] = "float32"
    batch: int = Field(default=16, ge=1)
    """Sentences that a local model writes at a time."""

    @model_validator(mode="after")
    def _consistent(self) -> LlmSettings:
        if self.max_cost is not None and (self.price_in is None or self.price_out is None):
            raise ValueError("max_cost needs price_in and price_out, of a million tokens each")
        if self.prompt == "degree" and not self.degrees:
            raise ValueError("the prompt degree needs degrees, such as [1, 3, 5]")
        if self.degrees and self.prompt in ("zero_shot", "few_shot"):
            raise ValueError(f"degrees mean nothing to the prompt {self.prompt}")
        if self.local and self.sentences_per_request > 1:
            raise ValueError("sentences_per_request is for endpoints; a local model has batch")
        return self

    @computed_field  # type: ignore[prop-decorator]
    @property
    def prompt_sha256(self) -> str:
        """Of the template: a prompt that changes is another."""
        return hashlib.sha256(self.template.read_bytes()).hexdigest()

    @property
    def template(self) -> Path:
        return FOLDER / f"{self.prompt}.j2" if self.prompt in PROMPTS else Path(self.prompt)

    @property
    def variants(self) -> list[tuple[int | None, int]]:
        """(degree, number from 0) of every paraphrase of a sentence."""
        return [(degree, k) for degree in self.degrees or (None,) for k in range(self.paraphrases)]

    def differing(self, degree: int | None, number: int) -> dict[str, int]:
        """What the lineage of a variant's pairs says of it."""
        told = {"degree": degree} if degree else {}
        return told | ({"number": number} if self.paraphrases > 1 else {})

    def sampling(self) -> dict[str, Any]:
        """What the endpoint takes to draw an answer, without the limit of its length and the seed."""
        names = ("temperature", "top_p")
        given = {name: value for name in names if (value := getattr(self, name)) is not None}
        return given | self.extra_body

    def cost(self, tokens_in: float, tokens_out: float) -> float | None:
        """Of so many tokens; None without prices."""
        if self.price_in is None or self.price_out is None:
            return None
        return (tokens_in * self.price_in + tokens_out * self.price_out) / 1e6
