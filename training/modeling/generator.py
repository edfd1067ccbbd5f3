"""Writes paraphrases with a sequence-to-sequence or a causal model, in batches of like length.

    generator = Generator(*load_model("runs/first/model"))
    generator.candidates(["…", None], Decoding(draws=8, code="4"))

The sources of a batch share one limit of new tokens, so a paraphrase by beam search does not depend
on the other sources (except for the last bits of sums over padding). Draws do.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

import torch

from gaixie.training.modeling.collator import causal_prompts, padded
from gaixie.training.modeling.entity_constraint import EntityConstraint
from gaixie.training.modeling.model import end_tokens
from gaixie.training.modeling.tokenizer import ENTITIES, EntityAlignedTokenizer
from gaixie.training.settings import Decoding
from gaixie.udfs.command_line import say
from gaixie.udfs.paraphrase.prompt import DEGREES
from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.punctuation import restore

LENGTH_STEP = 16
"""A source's limit of new tokens is twice its tokens, rounded up to a multiple of this before."""


class Generator:
    """A model and its tokenizer, which may be any of transformers; it writes in evaluation mode."""

    def __init__(self, model: Any, tokenizer: Any):
        self.model, self.tokenizer = model, tokenizer
        positions = getattr(model.config, "max_position_embeddings", None) or 1_000_000
        self.is_causal = not model.config.is_encoder_decoder
        longest = min(tokenizer.model_max_length, positions)
        self.longest = longest // 3 if self.is_causal else longest
        """Maximum tokens of a source; a longer one is cut."""
        self._most_new = 2 * self.longest if self.is_causal else positions - 1
        learned = self.is_causal and getattr(model.config, "degrees", False)
        self.degrees = DEGREES if learned else 0
        """Number of degrees of change that the model has learned."""
        self._codec = tokenizer.codec if isinstance(tokenizer, EntityAlignedTokenizer) else None

    def candidates(
        self,
        sources: Sequence[str | None],
        decoding: Decoding,
        progress: Callable[[int], None] = lambda sentences: None,
    ) -> list[list[str]]:
        """Returns the different candidates of each source, in the model's order; none for one
        without text.

        A candidate without text, with bytes that are no character, or equal to its source is
        dropped. progress is called with the number of sentences done since its last call.
        """
        if decoding.code and not self.degrees:
            raise ValueError(f"code {decoding.code}: the model has learned no control codes")
        answers: list[list[str]] = [[] for _ in sources]
        texts = {k: source for k, source in enumerate(sources) if source and has_text(source)}
        rows = [*texts]
        progress(len(sources) - len(rows))
        ids, tables = self._encode([*texts.values()], decoding.code)
        training = self.model.training
        self.model.eval()
        with torch.random.fork_rng(enabled=decoding.draws > 0):
            if decoding.draws:
                torch.manual_seed(decoding.seed)
            for limit, places in self._batches([*map(len, ids)], decoding):
                lines = self._write([ids[k] for k in places], limit, decoding)
                each = len(lines) // len(places)
                for number, k in enumerate(places):
                    written = lines[number * each : (number + 1) * each]
                    answers[rows[k]] = self._chosen(texts[rows[k]], tables[k], written)
                progress(len(places))
        self.model.train(training)
        return answers

    def _encode(self, sources: list[str], code: str) -> tuple[list[list[int]], list[str | None]]:
        """Returns the tokens of each source, and its entity table if the tokenizer makes one."""
        if not sources:
            return [], []
        batch = self.tokenizer(sources, add_special_tokens=not self.is_causal, verbose=False)
        if cut := sum(len(row) > self.longest for row in batch["input_ids"]):
            say(f"{cut:,} of {len(sources):,} sources are cut: longer than {self.longest:,} tokens")
        if self.is_causal:
            ids = causal_prompts(self.tokenizer, sources, [code] * len(sources), self.longest)
            return ids, [None] * len(ids)
        if cut:
            batch = self.tokenizer(sources, truncation=True, max_length=self.longest)
        return batch["input_ids"], batch[ENTITIES] if self._codec else [None] * len(sources)

    def _batches(self, lengths: list[int], decoding: Decoding) -> Iterator[tuple[int, list[int]]]:
        """Yields (limit of new tokens, sources of the batch), longest first, so that memory runs
        out early."""

        def limit(index: int) -> int:
            twice = 2 * LENGTH_STEP * -(-lengths[index] // LENGTH_STEP)
            return min(decoding.max_new_tokens or twice, self._most_new)

        order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
        for most, group in groupby(order, limit):
            places = [*group]
            for start in range(0, len(places), decoding.batch_size):
                yield most, places[start : start + decoding.batch_size]

    def _write(
        self, ids: Sequence[Sequence[int]], limit: int, decoding: Decoding
    ) -> list[list[int]]:
        """Returns the tokens of all candidates, source by source, equally many of each."""
        pad, device = self.tokenizer.pad_token_id, self.model.device
        side = "left" if self.is_causal else "right"
        inputs, mask = padded(ids, pad, side), padded([[1] * len(row) for row in ids], 0, side)
        ends = end_tokens(self.model, self.tokenizer)
        constraints = []
        if self._codec:
            constraints = [EntityConstraint(ids, self._codec.entity_ids, ends, limit)]
        how: dict[str, Any] = {"do_sample": False, "num_beams": decoding.beams}
        if decoding.draws:
            how = {"do_sample": True, "num_beams": 1, "top_k": 0}
            how |= {"top_p": decoding.top_p, "temperature": decoding.temperature}
        written = self.model.generate(
            input_ids=inputs.to(device),
            attention_mask=mask.to(device),
            max_new_tokens=limit,
            num_return_sequences=decoding.draws or decoding.beams,
            use_cache=True,
            logits_processor=constraints,
            eos_token_id=ends,
            pad_token_id=pad,
            **how,
        )
        return written[:, inputs.shape[1] if self.is_causal else 1 :].tolist()

    def _chosen(self, source: str, table: str | None, lines: Sequence[list[int]]) -> list[str]:
        """Returns the different texts of one source's candidates."""
        texts = [self._decode(source, line, table) for line in lines]
        known = normalise(source)
        return [*dict.fromkeys(t for t in texts if has_text(t) and normalise(t) != known)]

    def _decode(self, source: str, ids: list[int], table: str | None) -> str:
        if self._codec:
            return restore(self.tokenizer.decode(ids, entities=table), source)
        text = self.tokenizer.decode(ids, True, clean_up_tokenization_spaces=False).strip()
        return text if self.is_causal else SPACE_BESIDE_CHINESE.sub("", text)


SPACE_BESIDE_CHINESE = re.compile(r"(?<=[^\x00-\x7f]) +| +(?=[^\x00-\x7f])")


def has_text(text: str | None) -> bool:
    """Returns whether a sentence has characters, none of which stands for bytes that are not
    UTF-8."""
    return bool(text and not text.isspace() and "\ufffd" not in text)
