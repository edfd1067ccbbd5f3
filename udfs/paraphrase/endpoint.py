"""Gets candidates from an OpenAI-compatible service; our judges and gates check them as usual.

The key comes only from the environment variable OPENAI_API_KEY; many self-hosted servers need none.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

REQUESTS = 8
"""Requests in parallel."""
TRIES, TIMEOUT, TOKENS = 4, 60.0, 512
PROMPTS = {
    1: "请轻微改写下面的句子：只替换少数词语，意思、语气、人名、地名和数字都不变。只输出改写后的句子。",
    3: "请改写下面的句子：换用别的词语，并适当调整句式，意思、语气、人名、地名和数字都不变。只输出改写后的句子。",
    5: "请彻底改写下面的句子：换一种句式，凡能换的词语都换掉，意思、语气、人名、地名和数字都不变。只输出改写后的句子。",
}
"""Instructions by the lowest degree that they serve."""


class Endpoint:
    """A service and its model. Raises ImportError without the package openai."""

    def __init__(self, url: str, model: str):
        from openai import OpenAI

        key = os.environ.get("OPENAI_API_KEY", "none")
        self.model = model
        self._client = OpenAI(base_url=url, api_key=key, max_retries=TRIES, timeout=TIMEOUT)

    def candidates(self, texts: Sequence[str], degree: int, count: int) -> list[list[str]]:
        """Returns candidates for each text, fewer if answers are empty or cut off.

        Raises ValueError, in one line without the key, if the service cannot be reached.
        """
        prompt = PROMPTS[max(least for least in PROMPTS if least <= degree)]
        asked = [text for text in texts for _ in range(count)]
        with ThreadPoolExecutor(REQUESTS) as pool:
            answers = list(pool.map(lambda text: self._ask(f"{prompt}\n\n{text}"), asked))
        own = [answers[k : k + count] for k in range(0, len(answers), count)]
        return [list(dict.fromkeys(one for one in some if one)) for some in own]

    def _ask(self, prompt: str) -> str:
        from openai import APIConnectionError, APIStatusError, OpenAIError

        try:
            answer = self._client.chat.completions.create(
                model=self.model,
                messages=[{"role": "user", "content": prompt}],
                max_tokens=TOKENS,
                temperature=0.9,
            )
        except APIStatusError as error:
            if error.status_code == 400:  # a content filter: fails only this sentence
                return ""
            raise ValueError(f"{self._client.base_url}: answered {error.status_code}") from None
        except APIConnectionError:
            raise ValueError(f"{self._client.base_url}: cannot be reached") from None
        except OpenAIError as error:
            raise ValueError(f"{self._client.base_url}: {type(error).__name__}") from None
        choice = answer.choices[0]
        text = (choice.message.content or "").strip()
        return text if choice.finish_reason == "stop" and "\n" not in text else ""
