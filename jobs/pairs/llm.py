"""Asks a language model to paraphrase Chinese sentences (method llm).

The model is behind an OpenAI-compatible endpoint: a provider's, or a server of your own such as
vLLM or llama.cpp. The driver asks for one paraphrase a request, `concurrency` at a time; the openai
package retries. A prompt is a template, prompts/NAME.j2 or a file of the user's, which gets
`sentence` and `degree` (1 to 5, or none).

Sources: *Chinese Sentence Paraphrasing*, Table 2, whose three rules paper.j2 has word for word. The
other templates are this project's own, and the examples in few_shot.j2 are pairs of
examples/pairs.jsonl rated 4.6 or more.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import jinja2
import yaml
from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pyspark.sql import DataFrame

from gaixie.jobs.corpus.input import Origin
from gaixie.jobs.pairs.method import OVER_LIMIT, Candidate, FromSentences
from gaixie.jobs.pairs.pieces import write_pieces
from gaixie.udfs.command_line import UserError

if TYPE_CHECKING:
    from gaixie.jobs.pairs.build import PairsBuild

GAVE_UP = "gave_up"
"""Reason: every attempt at a request failed."""

REJECTED = "rejected"
"""Reason: the endpoint answers other requests, but does not take this one."""

OPEN_PIECES = 3
"""Pieces that are asked for at once, so that one slow answer does not hold up the others."""

STOP_AFTER = 20
"""The job stops after so many requests in a row failed."""

STOPPING = (401, 402, 403, 404)
"""HTTP statuses after which no further request can succeed."""

MALFORMED = "malformed_answer"
"""Reason: the answer is empty, or has several lines."""

REFUSED = "refused"
CUT_OFF = "cut_off"
"""Reason: the answer reached its token limit."""

WRONG_LANGUAGE = "wrong_language"
"""Reason: the share of Han characters is less than half of the sentence's."""

_THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.S)
_FENCED = re.compile(r"\A```\w*\s*\n(.*)\n```\Z", re.S)
_LABEL = re.compile(r"\A(?:改写|复述)(?:后的?)?(?:句子|结果)?[：:]\s*")
_QUOTES = {"“": "”", '"': '"', "「": "」", "『": "』"}
_REFUSAL = re.compile(
    r"(?:.{0,12}(?:我|本模型|作为|抱歉|对不起).{0,20}(?:无法|不能|不便|不会|难以).{0,12}"
    r"(?:提供|改写|完成|满足|回答|协助|帮助|处理|生成|讨论|回应|继续)"
    r"|(?:I['’]m|I am) (?:sorry|unable)|Sorry, |I (?:can(?:no|['’])t|cannot) )"
)
_HAN = re.compile(r"[\u3400-\u9fff\U00020000-\U0003ffff]")

FOLDER = Path(__file__).parent / "prompts"


def _known_prompt(prompt: str) -> str:
    known = sorted(path.stem for path in FOLDER.glob("*.j2"))
    if prompt not in known and not prompt.endswith(".j2"):
        raise ValueError(f"expected {', '.join(known)}, or a template file NAME.j2")
    if prompt not in known and not Path(prompt).is_file():
        raise ValueError(f"{prompt}: no such file")
    return prompt


def _from_text(value: Any) -> Any:
    """Returns what an option says in YAML."""
    return yaml.safe_load(value) if isinstance(value, str) else value


class Llm(FromSentences):
    """The method llm."""

    origin: Origin = "llm"
    """parallel | back_translation | llm | human"""
    model: str
    """the model's name at the endpoint"""
    model_version: str | None = None
    """its version, to record in the lineage"""
    base_url: str | None = Field(None, exclude=True)  # it may hold a password
    """address of an OpenAI-compatible endpoint; default OPENAI_BASE_URL, or OpenAI's"""
    api_key_variable: str = "OPENAI_API_KEY"
    """the environment variable with the API key; no setting holds it"""

    prompt: Annotated[str, AfterValidator(_known_prompt)] = "zero_shot"
    """zero_shot, few_shot, degree, paper (CSPC's Table 2), simplify, simplify_few_shot, or a
    template NAME.j2"""
    system: str | None = None
    """a system message"""
    degree: tuple[Annotated[int, Field(ge=1, le=5)], ...] = ()
    """degrees of change to ask for, from 1 (a light touch) to 5 (a rewrite)"""
    paraphrases: int = Field(1, ge=1, le=100)
    """paraphrases of each sentence and degree"""
    temperature: float | None = Field(0.9, ge=0)
    """sampling temperature"""
    max_answer_tokens: int | None = Field(None, ge=1)
    """by default 64, plus 3 for each character of the sentence"""
    token_parameter: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """how the endpoint calls the limit of an answer's tokens"""
    extra_body: Annotated[dict[str, Any], BeforeValidator(_from_text)] = Field(default_factory=dict)
    """further parameters of a request, such as '{top_p: 0.9}'"""

    concurrency: int = Field(16, ge=1)
    """requests at a time"""
    request_seconds: float = Field(120, gt=0)
    """seconds after which a request has failed"""
    retries: int = Field(5, ge=0)
    """further attempts after 408, 409, 429, 5xx, and lost connections"""
    max_requests: int | None = Field(None, ge=1)
    """at most N requests of this process; sentences left are in quarantine as over_limit"""
    piece_sentences: int = Field(200, ge=1)
    """sentences of a piece: a killed job asks again for the pieces under way"""

    without_effect: ClassVar[set[str]] = {
        *("api_key_variable", "concurrency", "request_seconds", "retries", "max_requests")
    }

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.prompt == "degree") != bool(self.degree) and not self.prompt.endswith(".j2"):
            raise ValueError("the prompt degree needs degrees, and other prompts have none")
        return self

    def parameters(self) -> dict[str, Any]:
        digest = hashlib.sha256(self._template.read_bytes()).hexdigest()
        return super().parameters() | {"prompt_sha256": digest}

    def deciding(self) -> dict[str, Any]:
        return super().deciding() | {"prompt_sha256": self.parameters()["prompt_sha256"]}

    def lineage(self) -> tuple[str | None, str | None]:
        return self.model, self.model_version

    def check(self) -> None:
        mark = "这是一个标记"
        if mark not in self.messages(mark)[-1]["content"]:
            raise UserError(f"{self._template}: does not print the sentence, {{{{ sentence }}}}")
        own, variable = self.base_url or os.environ.get("OPENAI_BASE_URL"), self.api_key_variable
        if not own and not os.environ.get(variable):
            raise UserError(f"no API key: the environment variable {variable} is empty")

    def make(self, build: PairsBuild, fit: DataFrame) -> DataFrame:
        asking = Asking(self, build.figures)
        pieces = self.piece_sentences, OPEN_PIECES + self.concurrency // self.piece_sentences
        try:
            return write_pieces(build, fit, asking.write, *pieces, on_driver=True)
        finally:
            asking.threads.shutdown(wait=False, cancel_futures=True)

    def show(self, fit: DataFrame) -> None:
        rows = fit.select("group", "source").dropDuplicates(["group"]).collect()
        asked = len(rows) * self.paraphrases * max(len(self.degree), 1)
        print(f"{len(rows):,} sentences: would send {asked:,} requests; the first:")
        for row in rows[:1]:
            for message in self.messages(row.source, *self.degree[:1]):
                print(f"  {message['role']}: {message['content']}")

    @property
    def _template(self) -> Path:
        return Path(self.prompt if self.prompt.endswith(".j2") else FOLDER / f"{self.prompt}.j2")

    def messages(self, sentence: str, degree: int | None = None) -> list[dict[str, str]]:
        """Returns the messages of a request. Raises UserError if the template is invalid."""
        path = self._template
        try:
            asked = _load_template(path).render(sentence=sentence, degree=degree).strip()
        except jinja2.TemplateError as error:
            line = f", line {error.lineno}" if isinstance(error, jinja2.TemplateSyntaxError) else ""
            raise UserError(f"{path}{line}: {error}") from error
        system = [{"role": "system", "content": self.system}] if self.system else []
        return [*system, {"role": "user", "content": asked}]


@cache
def _load_template(path: Path) -> jinja2.Template:
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(path.read_text("utf-8"))


class Asking:
    """The requests of one process. figures: counts requests and tokens, for the manifest."""

    def __init__(self, settings: Llm, figures: dict[str, int]):
        import openai  # of an extra

        self.settings, self.figures = settings, figures
        self.threads = ThreadPoolExecutor(settings.concurrency)
        self._lock = threading.Lock()
        self._failed_in_a_row = 0
        self._end: UserError | None = None
        """Why no further request is sent."""
        self._errors = openai
        self._client = openai.OpenAI(
            api_key=os.environ.get(settings.api_key_variable) or "none",  # local servers need none
            base_url=settings.base_url,
            timeout=settings.request_seconds,
            max_retries=settings.retries,
        )

    def write(self, sentences: Sequence[str]) -> Iterable[Candidate]:
        """Yields a candidate for each sentence, degree and number."""
        settings = self.settings
        questions = product(sentences, settings.degree or (None,), range(settings.paraphrases))
        return self.threads.map(self._ask, *zip(*questions, strict=True))

    def _ask(self, sentence: str, degree: int | None, number: int) -> Candidate:
        differs = {"degree": degree} if degree else {}
        differs |= {"number": number} if self.settings.paraphrases > 1 else {}
        if self._end:
            raise self._end
        if not self._may_ask():
            return Candidate(OVER_LIMIT, sentence, None, differs)
        try:
            reason, text = self._send(sentence, degree)
        except self._errors.APIStatusError as error:
            reason, text = self._reason(error), None
        except (self._errors.OpenAIError, ValueError) as error:  # also an answer that is no JSON
            reason, text = self._failed(GAVE_UP, str(error.__cause__ or error)), None
        return Candidate(reason, sentence, text, differs)

    def _may_ask(self) -> bool:
        """Counts a request, unless there were as many as there may be."""
        with self._lock:
            sent = self.figures.get("requests", 0)
            if self.settings.max_requests is not None and sent >= self.settings.max_requests:
                return False
            self.figures["requests"] = sent + 1
            return True

    def _send(self, sentence: str, degree: int | None) -> tuple[str | None, str | None]:
        """Returns (reason, paraphrase) of an answer."""
        settings = self.settings
        given: dict[str, Any] = {}
        if settings.temperature is not None:
            given["temperature"] = settings.temperature
        given[settings.token_parameter] = settings.max_answer_tokens or 64 + 3 * len(sentence)
        answer = self._client.chat.completions.create(
            model=settings.model,
            messages=settings.messages(sentence, degree),  # type: ignore[arg-type]
            extra_body=given | settings.extra_body,
        )
        if not getattr(answer, "choices", None):
            raise ValueError("an answer that is no chat completion")
        self._failed_in_a_row = 0
        if answer.usage:
            with self._lock:
                for name in ("prompt_tokens", "completion_tokens"):
                    self.figures[name] = self.figures.get(name, 0) + getattr(answer.usage, name)
        choice = answer.choices[0]
        if choice.message.refusal:
            return REFUSED, choice.message.refusal
        return checked(sentence, choice.message.content, choice.finish_reason)

    def _reason(self, error: Any) -> str:
        """Returns why a request got no answer. Raises UserError if none will get one."""
        code = str(error.code or "")
        if error.status_code in STOPPING or code == "insufficient_quota":
            raise self._stopped(error.message)
        if "content_filter" in code or "content_policy" in code:
            return REFUSED
        retried = error.status_code in (408, 409, 429) or error.status_code >= 500
        return self._failed(GAVE_UP if retried else REJECTED, error.message)

    def _failed(self, reason: str, said: str) -> str:
        """Returns the reason. Raises UserError if too many requests in a row failed."""
        self._failed_in_a_row += 1
        if self._failed_in_a_row >= STOP_AFTER:
            raise self._stopped(f"{STOP_AFTER} requests in a row failed, the last with: {said}")
        return reason

    def _stopped(self, said: str) -> UserError:
        key = os.environ.get(self.settings.api_key_variable)
        said = " ".join((said.replace(key, "***") if key else said).split())[:300]
        self._end = UserError(f"{self._client.base_url}: {said}; --resume continues")
        return self._end


# What an answer holds


def parse(answer: str, source: str) -> str | None:
    """Returns the paraphrase in an answer, which must be one line; None if there is none.

    A leading thought (<think>), a fence, a label and quotes are removed.
    """
    text = _THOUGHT.sub("", answer).strip()
    if fenced := _FENCED.match(text):
        text = fenced[1].strip()
    text = _LABEL.sub("", text)
    closing = _QUOTES.get(text[:1])
    if closing and text.endswith(closing) and not source.startswith(text[0]):
        if closing not in text[1:-1]:
            text = text[1:-1].strip()
    return text if text and "\n" not in text else None


def checked(source: str, answer: str | None, ending: str | None) -> tuple[str | None, str | None]:
    """Returns (reason, paraphrase) of an answer; no reason means a pair, as far as can be told
    here.

    ending: the endpoint's finish_reason, such as stop, length or content_filter.
    """
    answer = answer or ""
    if ending == "content_filter" or refuses(answer, source):
        return REFUSED, answer
    if ending == "length":
        return CUT_OFF, answer
    text = parse(answer, source)
    if text is None:
        return MALFORMED, answer
    share = han_share(text)
    return WRONG_LANGUAGE if 0 < share < han_share(source) / 2 else None, text  # 0: no_han


def refuses(text: str, source: str = "") -> bool:
    """Returns whether an answer declines to paraphrase and the source does not read like a
    refusal."""
    return bool(_REFUSAL.match(text.strip())) and not _REFUSAL.match(source.strip())


def han_share(text: str) -> float:
    """Returns the share of Han characters among the letters of a text; 0 without letters."""
    letters = sum(map(str.isalpha, text))
    return len(_HAN.findall(text)) / letters if letters else 0.0
