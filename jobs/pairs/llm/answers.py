"""Splits a model's answer into paraphrases, strictly; what is not a paraphrase gets a reason."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

MALFORMED = "malformed_answer"
"""Reason: twice, the answer did not have the requested form."""

REFUSED = "refused"
CUT_OFF = "cut_off"
"""Reason: the answer reached its token limit."""

WRONG_LANGUAGE = "wrong_language"
"""Reason: the share of Han characters is less than half of the sentence's."""

GAVE_UP = "gave_up"
"""Reason: every attempt at a request failed."""

OVER_BUDGET = "over_budget"
REJECTED = "rejected"
"""Reason: the endpoint accepts other requests, but not this one."""

STOP, LENGTH, REFUSAL, BROKEN = "stop", "length", "refusal", "broken"
"""How an answer ended: normally, at its limit, in a refusal, or in another form than requested."""

ENDINGS = {LENGTH: CUT_OFF, REFUSAL: REFUSED, BROKEN: MALFORMED}
"""Reasons for answers that did not end normally."""


class Answer(NamedTuple):
    """The answer about one sentence."""

    ending: str
    text: str | None


_THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.S)
_FENCED = re.compile(r"\A```(?:json)?\s*\n(.*)\n```\Z", re.S)
_LABEL = re.compile(r"\A(?:改写|复述)(?:后的?)?(?:句子|结果)?[：:]\s*")
_QUOTES = {"“": "”", '"': '"', "「": "」", "『": "』"}
_LINE = re.compile(r"\s*(\d+)\s*[.、．:：]\s*(\S.*)")
_REFUSAL = re.compile(
    r"(?:.{0,12}(?:我|本模型|作为|抱歉|对不起).{0,20}(?:无法|不能|不便|不会|难以).{0,12}"
    r"(?:提供|改写|完成|满足|回答|协助|帮助|处理|生成|讨论|回应|继续)"
    r"|(?:I['’]m|I am) (?:sorry|unable)|Sorry, |I (?:can(?:no|['’])t|cannot) )"
)
_HAN = re.compile(r"[\u3400-\u9fff\U00020000-\U0003ffff]")


def parse(text: str | None, sources: list[str]) -> list[str] | None:
    """Returns a paraphrase of each source, in order; None if the answer does not contain exactly
    that.

    The answer for one source is one line. For several, it is a JSON object with the keys "1" to
    their number, or as many numbered lines in order. A leading thought (<think>), a fence, a label
    and quotes are removed.
    """
    text = _THOUGHT.sub("", text or "").strip()
    if fenced := _FENCED.match(text):
        text = fenced[1].strip()
    answers = [text] if len(sources) == 1 else _several(text, len(sources))
    if answers is None:
        return None
    cleaned = [_clean(*pair) for pair in zip(answers, sources, strict=True)]
    return None if any(not line or "\n" in line for line in cleaned) else cleaned


def read(text: str | None, ending: str, sources: list[str]) -> list[Answer]:
    """Returns an answer for each source, from one model answer about all of them."""
    paraphrases = parse(text, sources) if ending == STOP else None
    if paraphrases is None:
        return [Answer(BROKEN if ending == STOP else ending, text)] * len(sources)
    return [Answer(STOP, paraphrase) for paraphrase in paraphrases]


def judged(source: str, answer: Answer) -> str | None:
    """Returns the reason why an answer makes no pair, among the reasons specific to models'
    answers."""
    text = answer.text or ""
    if refuses(text, source):
        return REFUSED
    if answer.ending != STOP:
        return ENDINGS[answer.ending]
    share = han_share(text)
    return WRONG_LANGUAGE if 0 < share < han_share(source) / 2 else None  # 0: no_han


def _several(text: str, count: int) -> list[str] | None:
    expected = [str(n) for n in range(1, count + 1)]
    if text.startswith("{"):
        try:
            pairs = json.loads(text, object_pairs_hook=list)
        except (ValueError, RecursionError):
            return None
        if sorted(key for key, _ in pairs) != sorted(expected):
            return None
        values = dict(pairs)
        answers = [values[key] for key in expected]
        return answers if all(isinstance(answer, str) for answer in answers) else None
    lines = [_LINE.fullmatch(line) for line in text.splitlines() if line.strip()]
    if [line[1] if line else None for line in lines] != expected:
        return None
    return [line[2] for line in lines if line]


def _clean(answer: str, source: str) -> str:
    answer = _LABEL.sub("", answer.strip())
    closing = _QUOTES.get(answer[:1])
    if closing and answer.endswith(closing) and not source.startswith(answer[0]):
        inner = answer[1:-1]
        if closing not in inner:
            return inner.strip()
    return answer


def refuses(text: str, source: str = "") -> bool:
    """Returns whether an answer declines to paraphrase and the source does not read like a
    refusal."""
    return bool(_REFUSAL.match(text.strip())) and not _REFUSAL.match(source.strip())


def han_share(text: str) -> float:
    """Returns the share of Han characters among the letters of a text; 0 without letters."""
    letters = sum(map(str.isalpha, text))
    return len(_HAN.findall(text)) / letters if letters else 0.0
