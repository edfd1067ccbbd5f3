"""Reads a paraphrase out of a language model's answer; what holds none gets a reason."""

from __future__ import annotations

import re

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


def judged(source: str, answer: str | None, ending: str | None) -> tuple[str | None, str | None]:
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
