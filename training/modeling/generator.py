"""Writes candidates with a sequence-to-sequence model, in batches of sources of like length.

    generator = Generator(model, tokenizer)                 # or generate.load_generator(folder)
    generator.candidates(["…", None], Decoding(beams=8, n_best=4))
    generator.counts                                        # of all that this one was asked for

The sources of a batch share one limit of new tokens, so a paraphrase by beam search does not depend
on the other sources (except for the last bits of sums over padding). Samples do.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any, NamedTuple

import torch
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from gaixie.training.data.stage_loader import padded, with_degree
from gaixie.training.modeling.entity_constraint import EntityConstraint
from gaixie.training.modeling.model import end_tokens
from gaixie.training.modeling.tokenizer import ENTITIES, EntityAlignedTokenizer
from gaixie.training.settings import DEGREES
from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.punctuation import restore

LENGTH_STEP = 16
"""Source lengths are rounded up to a multiple of this before they set the limit of new tokens."""
SPARE_SAMPLES = 3
"""Samples drawn beyond n_best if copies are dropped."""
LOGITS = 2**25
"""Logits held at a time while candidates are scored: 128 MiB of float32."""


@dataclass(frozen=True, config=ConfigDict(use_attribute_docstrings=True))
class Decoding:
    """How candidates are made. Raises ValueError for a value that is out of its range."""

    beams: int = Field(default=4, ge=1)
    """Beams of the search."""
    sample: bool = False
    """Draw n_best candidates from the nucleus top_p (Holtzman et al. 2020) instead of searching."""
    draws: int = Field(default=0, ge=0)
    """Candidates to draw in addition to the search."""
    top_p: float = Field(default=0.95, gt=0, le=1)
    """Probability mass of the nucleus of draws."""
    temperature: float = Field(default=1.0, gt=0)
    """Temperature of draws; a lower one draws likelier candidates."""
    seed: int = 13
    """Seed of all draws of one call."""
    n_best: int = Field(default=1, ge=1)
    """Candidates of a sentence."""
    degree: int | None = Field(default=None, ge=1, le=DEGREES)
    """Degree of change, 1 to 5, if the model has learned degrees."""
    max_new_tokens: int | None = Field(default=None, ge=1)
    """Limit of a paraphrase; without it, twice its source's tokens, rounded up to a multiple of
    32."""
    drop_copies: bool = False
    """Drop candidates that equal their source; both are normalised first."""
    batch_size: int = Field(default=32, ge=1)
    """Sentences at once; each takes the memory of all its beams or samples."""

    def __post_init__(self) -> None:
        if self.n_best > self.pool:
            raise ValueError(
                f"n_best: {self.n_best} candidates need as many beams and draws, not {self.pool}"
            )

    @property
    def pool(self) -> int:
        """Candidates of a source before copies and duplicates are dropped."""
        return self.n_best if self.sample else self.beams + self.draws

    def passes(self) -> list[dict[str, Any]]:
        """Returns the arguments of each call of the model's generate()."""
        beams = {"do_sample": False, "num_beams": self.beams, "num_return_sequences": self.beams}
        drawn = self.n_best + SPARE_SAMPLES * self.drop_copies if self.sample else self.draws
        nucleus = {"top_p": self.top_p, "temperature": float(self.temperature), "top_k": 0}
        draws = {"do_sample": True, "num_beams": 1, "num_return_sequences": drawn, **nucleus}
        return [draws] if self.sample else [beams, draws] if self.draws else [beams]


class Candidate(NamedTuple):
    """A paraphrase that the model wrote."""

    text: str
    log_probability: float
    """Mean over its tokens, including the end; NaN if it was not requested."""


class Generator:
    """A model and its tokenizer, which may be any of transformers.

    The model writes in evaluation mode, and then returns to its previous mode.
    """

    def __init__(self, model: Any, tokenizer: Any):
        self.model, self.tokenizer = model, tokenizer
        self.counts: Counter[str] = Counter()
        """Counts of sentences, no text, cut, no candidate, paraphrases, copies and unknown
        entities."""
        positions = getattr(model.config, "max_position_embeddings", None)
        self.longest = min(tokenizer.model_max_length, positions or tokenizer.model_max_length)
        """Maximum tokens of a source; a longer one is cut and counted."""
        self._most_new = positions - 1 if positions else math.inf
        self.degrees = tokenizer.degrees if getattr(model.config, "degrees", False) else 0
        """Number of degrees of change that the model has learned."""
        self._start = model.config.decoder_start_token_id
        self._aligned = isinstance(tokenizer, EntityAlignedTokenizer)
        # How the tokenizer decodes: some put spaces between pieces, or narrow punctuation.
        decoded = "" if self._aligned else _decode(tokenizer, tokenizer("今天，好")["input_ids"])
        self._spaced, self._narrow = " " in decoded, self._aligned or "," in decoded

    def candidates(
        self,
        sources: Sequence[str | None],
        decoding: Decoding,
        scored: bool = True,
        progress: Callable[[int], None] = lambda sentences: None,
    ) -> list[list[Candidate]]:
        """Returns up to n_best different candidates of each source, best first; none for one
        without text.

        A candidate without text, or with bytes that are no character, gives way to the next one.
        The search's candidates come first, in its own order; if scored, samples are sorted by
        log_probability. progress is called with the number of sentences done since its last call.
        """
        answers: list[list[Candidate]] = [[] for _ in sources]
        texts = {k: source for k, source in enumerate(sources) if source and has_text(source)}
        rows = [*texts]
        self.counts["sentences"] += len(sources)
        self.counts["no text"] += len(sources) - len(rows)
        progress(len(sources) - len(rows))
        ids, tables = self._encode([*texts.values()], decoding.degree)
        random = decoding.sample or decoding.draws > 0
        with self._evaluating(), torch.random.fork_rng(enabled=random):
            if random:
                self._seed(decoding.seed)
            for limit, places in self._batches([*map(len, ids)], decoding):
                batch = [(texts[rows[k]], ids[k], tables[k]) for k in places]
                made = self._generate(batch, limit, decoding, scored)
                for k, candidates in zip(places, made, strict=True):
                    answers[rows[k]] = candidates
                progress(len(places))
        return answers

    def _encode(
        self, sources: list[str], degree: int | None
    ) -> tuple[list[list[int]], list[str | None]]:
        """Returns the tokens of each source, and its entity table if the tokenizer makes one."""
        if not sources:
            return [], []
        batch = self.tokenizer(sources, verbose=False)
        ids = batch["input_ids"]
        for k, source in enumerate(sources):
            if len(ids[k]) > self.longest:
                cut = self.tokenizer(source, truncation=True, max_length=self.longest)
                ids[k] = cut["input_ids"]
                self.counts["cut"] += 1
        if degree is not None:
            if degree > self.degrees:
                raise ValueError(f"degree {degree}: the model has learned {self.degrees} degrees")
            ids = [with_degree(self.tokenizer, row, degree)[: self.longest] for row in ids]
        return ids, batch[ENTITIES] if self._aligned else [None] * len(ids)

    def _batches(self, lengths: list[int], decoding: Decoding) -> Iterator[tuple[int, list[int]]]:
        """Yields (limit of new tokens, sources of the batch), longest first, so that memory runs
        out early."""

        def limit(index: int) -> int:
            return int(min(decoding.max_new_tokens or most_new(lengths[index]), self._most_new))

        order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
        for most, group in groupby(order, limit):
            places = [*group]
            for start in range(0, len(places), decoding.batch_size):
                yield most, places[start : start + decoding.batch_size]

    def _generate(
        self,
        batch: Sequence[tuple[str, list[int], str | None]],
        limit: int,
        decoding: Decoding,
        scored: bool,
    ) -> list[list[Candidate]]:
        """Returns the candidates of each source of a batch. batch: text, tokens and entity table of
        each."""
        ids = [own for _, own, _ in batch]
        lines: list[list[list[int]]] = [[] for _ in batch]
        for arguments in decoding.passes():
            written, drawn = self._write(ids, limit, arguments), arguments["num_return_sequences"]
            for row, own in enumerate(lines):
                own += written[row * drawn : (row + 1) * drawn]
        # Samples stay in drawing order: choosing the likeliest would no longer be sampling.
        chosen = [
            self._chosen(source, table, own, decoding)
            for (source, _, table), own in zip(batch, lines, strict=True)
        ]
        kept = [(row, line) for row, own in enumerate(chosen) for line in own.values()]
        scores = iter([float("nan")] * len(kept))
        if scored and kept:
            scores = iter(self._score([ids[row] for row, _ in kept], [line for _, line in kept]))
        rows = []
        for (source, _, _), texts in zip(batch, chosen, strict=True):
            printed = [restore(text, source) if self._narrow else text for text in texts]
            rows.append([Candidate(text, next(scores)) for text in printed])
        if decoding.sample and scored:
            rows = [sorted(row, key=lambda candidate: -candidate.log_probability) for row in rows]
        return rows

    def _chosen(
        self, source: str, table: str | None, lines: Sequence[list[int]], decoding: Decoding
    ) -> dict[str, list[int]]:
        """Returns the texts of one source's candidates, and each one's line of tokens."""
        chosen: dict[str, list[int]] = {}
        for line in lines:
            before = getattr(self.tokenizer, "missing_entities", 0)
            text = self._decode(line, table)
            if not has_text(text) or text in chosen:
                continue
            if decoding.drop_copies and normalise(text) == normalise(source):
                self.counts["copies"] += 1
                continue
            chosen[text] = line
            unknown = getattr(self.tokenizer, "missing_entities", 0) - before
            self.counts["unknown entities"] += unknown
            if len(chosen) == decoding.n_best:
                break
        self.counts["paraphrases"] += len(chosen)
        self.counts["no candidate"] += not chosen
        return chosen

    def _decode(self, ids: list[int], table: str | None) -> str:
        if self._aligned:
            return self.tokenizer.decode(ids, entities=table)
        begin = self._start, self.model.generation_config.forced_bos_token_id  # languages, for some
        text = _decode(self.tokenizer, [index for index in ids if index not in begin])
        return SPACE_BESIDE_CHINESE.sub("", text) if self._spaced else text

    def log_probabilities(
        self, sources: Sequence[str], paraphrases: Sequence[str], batch_size: int = 32
    ) -> list[float]:
        """Returns the mean log-probability of each paraphrase's tokens and its end, given its
        source."""
        order = sorted(range(len(sources)), key=lambda k: len(sources[k]))
        scores = [float("nan")] * len(sources)
        with self._evaluating():
            for first in range(0, len(order), batch_size):
                rows = order[first : first + batch_size]
                batch = self.tokenizer(
                    [sources[k] for k in rows],
                    text_target=[paraphrases[k] for k in rows],
                    truncation=True,
                    max_length=self.longest - 1,  # the start token is one more
                )
                lines = [[self._start, *labels] for labels in batch["labels"]]
                for k, mean in zip(rows, self._score(batch["input_ids"], lines), strict=True):
                    scores[k] = mean
        return scores

    # Methods of the model itself; modeling/exported.py replaces them.

    def _seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        training = self.model.training
        self.model.eval()
        try:
            yield
        finally:
            self.model.train(training)

    def _write(
        self, ids: Sequence[Sequence[int]], limit: int, arguments: dict[str, Any]
    ) -> list[list[int]]:
        """Returns num_return_sequences lines of tokens for each source, source by source.

        Each line has the start token before its tokens, and padding after its end.
        """
        inputs, mask = padded(ids, self.tokenizer.pad_token_id)
        constraints = []
        if self._aligned:
            entities = self.tokenizer.entity_ids
            constraints = [EntityConstraint(ids, entities, end_tokens(self.model), limit)]
        return self.model.generate(
            input_ids=inputs.to(self.model.device),
            attention_mask=mask.to(self.model.device),
            max_new_tokens=limit,
            use_cache=True,
            logits_processor=constraints,
            **arguments,
        ).tolist()

    def _score(self, ids: Sequence[Sequence[int]], lines: Sequence[Sequence[int]]) -> list[float]:
        """Returns the mean log-probability of each line's tokens up to its end, given its source.

        One more pass scores all tokens at once: the search's own scores depend on length_penalty,
        the samples' on top_p and temperature.
        """
        pad, device = self.tokenizer.pad_token_id, self.model.device
        inputs, mask = (tensor.to(device) for tensor in padded(ids, pad))
        written = padded(lines, pad)[0].to(device)
        targets = written[:, 1:]
        end = torch.isin(targets, torch.tensor(end_tokens(self.model), device=device)).long()
        there = (end.cumsum(1) - end) == 0
        width = self.model.get_output_embeddings().weight.shape[0]
        step = max(1, LOGITS // (targets.shape[1] * width))
        means: list[float] = []
        for start in range(0, len(targets), step):
            part = slice(start, start + step)
            with torch.no_grad():
                output = self.model(
                    input_ids=inputs[part],
                    attention_mask=mask[part],
                    decoder_input_ids=written[part, :-1],
                    use_cache=False,
                )
            logits, own = output.logits.float(), there[part]
            chosen = logits.gather(2, targets[part].unsqueeze(2)).squeeze(2) - logits.logsumexp(2)
            means += ((chosen * own).sum(1) / own.sum(1)).tolist()
        return means


def most_new(tokens: int) -> int:
    """Returns a source's limit of new tokens: twice its tokens, first rounded up to LENGTH_STEP."""
    return 2 * LENGTH_STEP * -(-tokens // LENGTH_STEP)


SPACE_BESIDE_CHINESE = re.compile(r"(?<=[^\x00-\x7f]) +| +(?=[^\x00-\x7f])")


def _decode(tokenizer: Any, ids: list[int]) -> str:
    """Decodes ids with a transformers tokenizer."""
    text = tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    return text.strip()


def has_text(text: str | None) -> bool:
    """Returns whether a sentence has characters, none of which stands for bytes that are not
    UTF-8."""
    return bool(text and not text.isspace() and "\ufffd" not in text)
