"""Gets drafts from an OpenAI-compatible service, such as vLLM or llama.cpp.

The key comes only from the environment variable OPENAI_API_KEY; many self-hosted servers need none.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from gaixie.udfs.paraphrase.prompt import TONES
from gaixie.udfs.paraphrase.writer import Draft

REQUESTS = 8
"""Requests in parallel."""
TRIES, TIMEOUT, TOKENS = 4, 60.0, 512
SAME = "意思、语气、人名、地名和数字都不变。只输出改写后的句子。"
ASKED = {
    "1": f"请轻微改写下面的句子：只替换少数词语，{SAME}",
    "3": f"请改写下面的句子：换用别的词语，并适当调整句式，{SAME}",
    "5": f"请彻底改写下面的句子：换一种句式，凡能换的词语都换掉，{SAME}",
}
"""Instructions by the lowest degree that they serve."""
TONED = "请把下面的句子改写得更{}，意思、人名、地名和数字都不变。只输出改写后的句子。"


class EndpointWriter:
    """A service and its model. Raises ImportError without the package openai."""

    def __init__(self, url: str, model: str, seed: int = 0):
        from openai import OpenAI

        key = os.environ.get("OPENAI_API_KEY", "none")
        self.name, self.seed = model, seed
        self._client = OpenAI(base_url=url, api_key=key, max_retries=TRIES, timeout=TIMEOUT)

    def draw(
        self, sources: Sequence[str], code: str, draws: int, temperature: float
    ) -> list[list[Draft]]:
        """Returns the different drafts of each source, fewer if answers are empty or cut off.

        Raises ValueError, in one line without the key, if the service cannot be reached.
        """
        degree = max(least for least in ASKED if least <= code)
        instruction = TONED.format(code) if code in TONES else ASKED[degree]
        asked = [(text, self.seed + k) for text in sources for k in range(draws)]

        def ask(one: tuple[str, int]) -> str:
            return self._ask(f"{instruction}\n\n{one[0]}", temperature, one[1])

        with ThreadPoolExecutor(REQUESTS) as pool:
            answers = list(pool.map(ask, asked))
        own = [answers[k : k + draws] for k in range(0, len(answers), draws)]
        return [[Draft(text) for text in dict.fromkeys(some) if text] for some in own]

    def _ask(self, prompt: str, temperature: float, seed: int) -> str:
        from openai import APIConnectionError, APIStatusError, OpenAIError

        try:
            answer = self._client.chat.completions.create(
                model=self.name,
                messages=[{"role": "user", "content": prompt}],
                max_tokens=TOKENS,
                temperature=temperature,
                seed=seed,
            )
        except APIStatusError as error:
            if error.code == "content_filter":  # fails only this sentence
                return ""
            said = f"answered {error.status_code}, {error.message}"
            raise ValueError(f"{self._client.base_url}: {said}") from None
        except APIConnectionError:
            raise ValueError(f"{self._client.base_url}: cannot be reached") from None
        except OpenAIError as error:
            raise ValueError(f"{self._client.base_url}: {type(error).__name__}") from None
        whole = [one for one in answer.choices or () if one.finish_reason == "stop"]
        text = (whole[0].message.content or "").strip() if whole else ""
        return "" if "\n" in text else text
