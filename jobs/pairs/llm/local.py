"""Writes paraphrases on the executors with a causal language model of transformers.

A prompt uses the tokenizer's chat template if there is one. Otherwise the model gets the prompt and
the beginning of an answer, and its first line is taken. What is sampled depends only on the seed,
the sentence and the variant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from xxhash import xxh3_64_intdigest

from gaixie.jobs.pairs.llm.answers import BROKEN, LENGTH, STOP, Answer, judged, read
from gaixie.jobs.pairs.llm.method import LlmSettings
from gaixie.jobs.pairs.llm.prompts import Message, Prompt
from gaixie.jobs.pairs.models import TOO_MANY_TOKENS, Draw, Model
from gaixie.jobs.pairs.writing import Written

if TYPE_CHECKING:
    import torch

BEGINNING = "\n改写："
"""Text after the prompt of a model that only continues texts."""


class LocalModel(Model):
    """Writes for the method llm; load_model gives one for each process."""

    def __init__(self, model: str, settings: LlmSettings):
        super().__init__(model, True, settings.device, settings.precision)
        self.settings, self._prompt = settings, Prompt(settings)
        self._longest = getattr(self.config, "max_position_embeddings", None) or 2**31

    def write(self, sentences: Sequence[str]) -> Iterator[Written]:
        for variant in self.settings.variants:
            told = self.settings.differing(*variant)
            answers = self._answers(sentences, variant, 0)
            again = [text for text, answer in answers.items() if answer and answer.ending == BROKEN]
            if self.settings.temperature:
                answers |= self._answers(again, variant, 1)
            for sentence in sentences:
                if answer := answers[sentence]:
                    yield Written(judged(sentence, answer), sentence, answer.text, told)
                else:
                    yield Written(TOO_MANY_TOKENS, sentence, None, told)

    def _answers(
        self, sentences: Sequence[str], variant: tuple[int | None, int], attempt: int
    ) -> dict[str, Answer | None]:
        """Returns an answer for each sentence; None if the prompt leaves no room for one."""
        answers: dict[str, Answer | None] = dict.fromkeys(sentences)
        ids = {text: self._ids(self._prompt.messages([text], variant[0])) for text in sentences}
        limits = {text: self.settings.max_answer_tokens or 64 + 3 * len(text) for text in sentences}
        fit = [text for text in sentences if len(ids[text]) + limits[text] <= self._longest]
        fit.sort(key=lambda text: len(ids[text]))
        for start in range(0, len(fit), self.settings.batch):
            texts = fit[start : start + self.settings.batch]
            seeds = [self._seed(text, variant, attempt) for text in texts]
            limit = max(limits[text] for text in texts)
            made = self._generate([ids[text] for text in texts], seeds, limit)
            for text, (answer, ended) in zip(texts, made, strict=True):
                [answers[text]] = read(answer, STOP if ended else LENGTH, [text])
        return answers

    def _ids(self, messages: list[Message]) -> list[int]:
        if self.tokenizer.chat_template:
            text = self.tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True
            )
            return self.tokenizer(text, add_special_tokens=False)["input_ids"]
        text = "\n\n".join(message["content"] for message in messages) + BEGINNING
        ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        first = self.tokenizer.bos_token_id
        return ids if first is None else [first, *ids]

    def _generate(
        self, ids: list[list[int]], seeds: list[int], limit: int
    ) -> list[tuple[str, bool]]:
        """Returns (answer, whether it ended) for each prompt."""
        import torch

        temperature, top_p = self.settings.temperature, self.settings.top_p or 1.0
        width, filler = max(map(len, ids)), self.tokenizer.pad_token_id
        batch = torch.tensor([[filler] * (width - len(row)) + row for row in ids])
        mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in ids])
        output = self.generate(
            batch,
            mask,
            limit,
            num_beams=1,
            logits_processor=[Draw(seeds, temperature, top_p)] if temperature else [],
            stopping_criteria=[] if self.tokenizer.chat_template else [self._at_line_end],
            pad_token_id=filler,
        )[:, width:]
        return [self._text(row) for row in output.tolist()]

    def _at_line_end(self, ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
        """Returns whether the last token of each row, shape (rows, tokens), ends a line."""
        lines = ["\n" in text for text in self.tokenizer.batch_decode(ids[:, -1:])]
        return ids.new_tensor(lines).bool()

    def _text(self, ids: list[int]) -> tuple[str, bool]:
        ends = self.network.generation_config.eos_token_id
        ended = any(token in ids for token in (ends if isinstance(ends, list) else [ends]))
        text = self.tokenizer.decode(ids, skip_special_tokens=True).lstrip()
        if self.tokenizer.chat_template:
            return text, ended
        line, newline, _ = text.partition("\n")
        return line, ended or bool(newline)

    def _seed(self, sentence: str, variant: tuple[int | None, int], attempt: int) -> int:
        told = f"{variant} {attempt} {sentence}".encode()
        return xxh3_64_intdigest(told, (self.settings.seed or 0) % 2**64)


load_model = lru_cache(maxsize=1)(LocalModel)
