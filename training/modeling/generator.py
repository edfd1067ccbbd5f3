"""Candidates of a sequence-to-sequence model, in batches of sources of like length.

    generator = Generator(model, tokenizer)                 # or generate.load_generator(folder)
    generator.candidates(["…", None], Decoding(beams=8, n_best=4))
    generator.counts                                        # of all that this one was asked for

A batch holds sources of one limit of new tokens alone, so that a paraphrase by beam search does not
depend on what else is asked for (but for the last bits of sums over padding). Samples do.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import torch

from gaixie.training.data.stage_loader import padded, with_degree
from gaixie.training.modeling.encode_plus import ENTITIES
from gaixie.training.modeling.entity_constraint import EntityConstraint
from gaixie.training.modeling.punctuation import restore
from gaixie.training.modeling.tokenizer import EntityAlignedTokenizer
from gaixie.udfs.text.normalise import normalise

LENGTH_STEP = 16
"""Tokens by which a source's length is rounded up where the limit of new tokens follows it."""
SPARE_SAMPLES = 3
"""Drawn beyond n_best where copies are passed over."""
LOGITS = 2**25
"""Held at a time when candidates are scored: 128 MiB of float32."""


@dataclass(frozen=True)
class Decoding:
    """How candidates are made. Raises ValueError, in one line, for a value out of its range."""

    beams: int = 4
    sample: bool = False
    """Draw n_best from the nucleus of probability top_p (Holtzman et al. 2020) instead of searching."""
    draws: int = 0
    """Drawn likewise, beside the search."""
    top_p: float = 0.95
    temperature: float = 1.0
    seed: int = 13
    """Seed of the samples of one call."""
    n_best: int = 1
    degree: int | None = None
    """Of change, 1 to 5; None asks for none. Needs a tokenizer and a model that have learned them."""
    max_new_tokens: int | None = None
    """None: twice the source's tokens, these rounded up to LENGTH_STEP."""
    drop_copies: bool = False
    """Pass over a candidate that equals its source, both normalised."""
    batch_size: int = 32
    """Sources; each takes the memory of all its beams or samples."""

    def __post_init__(self):
        longest = 1 if self.max_new_tokens is None else self.max_new_tokens
        for name, fits, expected in (
            ("beams", self.beams >= 1, "1 or more"),
            ("draws", self.draws >= 0, "0 or more"),
            ("top_p", 0 < self.top_p <= 1, "above 0, at most 1"),
            ("temperature", self.temperature > 0, "above 0"),
            ("n_best", self.n_best >= 1, "1 or more"),
            ("max_new_tokens", longest >= 1, "1 or more"),
            ("batch_size", self.batch_size >= 1, "1 or more"),
        ):
            if not fits:
                raise ValueError(f"{name}: expected {expected}, not {getattr(self, name)}")
        if self.n_best > self.pool:
            raise ValueError(
                f"n_best: {self.n_best} candidates need as many beams and draws, not {self.pool}"
            )

    @property
    def pool(self) -> int:
        """Candidates of a source, before copies and those that are equal are passed over."""
        return self.n_best if self.sample else self.beams + self.draws

    def passes(self) -> list[dict[str, Any]]:
        """The arguments of the model's generate(), for each time that it is called."""
        beams = {"do_sample": False, "num_beams": self.beams, "num_return_sequences": self.beams}
        drawn = self.n_best + SPARE_SAMPLES * self.drop_copies if self.sample else self.draws
        nucleus = {"top_p": self.top_p, "temperature": float(self.temperature), "top_k": 0}
        draws = {"do_sample": True, "num_beams": 1, "num_return_sequences": drawn, **nucleus}
        return [draws] if self.sample else [beams, draws] if self.draws else [beams]


class Candidate(NamedTuple):
    """A paraphrase that the model wrote."""

    text: str
    log_probability: float
    """Mean over its tokens, the last one's end among them; NaN where it was not asked for."""


class Generator:
    """A model and its tokenizer, which may be any of transformers.

    The model is asked in the mode of evaluation, and left in the mode that it was in.
    """

    def __init__(self, model: Any, tokenizer: Any):
        self.model, self.tokenizer = model, tokenizer
        self.counts: Counter[str] = Counter()
        """Of sentences, no text, cut, no candidate, paraphrases, copies and unknown entities."""
        positions = getattr(model.config, "max_position_embeddings", None)
        self.longest = min(tokenizer.model_max_length, positions or tokenizer.model_max_length)
        """Tokens of a source; what is longer is cut and counted."""
        self._most_new = positions - 1 if positions else None
        self._start = model.config.decoder_start_token_id
        self._aligned = isinstance(tokenizer, EntityAlignedTokenizer)
        # Tokenizers of characters and pieces of words may put a space between all that they decode.
        self._spaced = not self._aligned and " " in _decode(
            tokenizer, tokenizer("今天")["input_ids"]
        )

    def candidates(
        self,
        sources: Sequence[str | None],
        decoding: Decoding,
        scored: bool = True,
        progress: Callable[[int], None] = lambda sentences: None,
    ) -> list[list[Candidate]]:
        """At most n_best different candidates of each source, the best first; none where it is empty.

        A candidate without text, or with bytes that are no character, gives way to the next one.
        Best is by the search's own score; samples stand in the order of log_probability if scored, and
        behind what the search has found.
        progress is called with the number of sentences done since it was called last.
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
            for limit, places in self._batches(list(map(len, ids)), decoding):
                made = self._generate(
                    [texts[rows[k]] for k in places],
                    [ids[k] for k in places],
                    [tables[k] for k in places],
                    limit,
                    decoding,
                    scored,
                )
                for k, candidates in zip(places, made, strict=True):
                    answers[rows[k]] = candidates
                progress(len(places))
        return answers

    def _encode(
        self, sources: list[str], degree: int | None
    ) -> tuple[list[list[int]], list[str | None]]:
        """Tokens of each source, and its entity table if the tokenizer makes one."""
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
            if not self._aligned:
                raise ValueError("degree: the model's tokenizer has no degrees")
            ids = [with_degree(self.tokenizer, row, degree)[: self.longest] for row in ids]
        return ids, batch[ENTITIES] if self._aligned else [None] * len(ids)

    def _batches(self, lengths: list[int], decoding: Decoding) -> Iterator[tuple[int, list[int]]]:
        """(limit of new tokens, sources of the batch), the longest first: memory runs out early."""

        def limit(index: int) -> int:
            most = decoding.max_new_tokens or most_new(lengths[index])
            return min(most, self._most_new) if self._most_new else most

        order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
        for most, group in groupby(order, limit):
            places = list(group)
            for start in range(0, len(places), decoding.batch_size):
                yield most, places[start : start + decoding.batch_size]

    def _generate(
        self,
        sources: list[str],
        ids: list[list[int]],
        tables: list[str | None],
        limit: int,
        decoding: Decoding,
        scored: bool,
    ) -> list[list[Candidate]]:
        """The candidates of each source of a batch."""
        lines: list[list[int]] = []
        of_source: list[list[int]] = [[] for _ in sources]  # its lines
        for arguments in decoding.passes():
            drawn, before = arguments["num_return_sequences"], len(lines)
            for row, own in enumerate(of_source):
                own += range(before + row * drawn, before + (row + 1) * drawn)
            lines += self._write(ids, limit, arguments)
        kept: list[tuple[int, int]] = []  # (source, line)
        texts: list[str] = []
        # Samples are kept in the order they were drawn in: to take the likeliest would not be to sample.
        for row, (source, table) in enumerate(zip(sources, tables, strict=True)):
            for line, text in self._chosen(source, table, lines, of_source[row], decoding):
                kept.append((row, line))
                texts.append(text)
        scores = [float("nan")] * len(kept)
        if scored and kept:
            scores = self._score([ids[row] for row, _ in kept], [lines[line] for _, line in kept])
        rows: list[list[Candidate]] = [[] for _ in sources]
        for (row, _), text, score in zip(kept, texts, scores, strict=True):
            printed = restore(text, sources[row]) if self._aligned else text
            rows[row].append(Candidate(printed, score))
        if decoding.sample and scored:
            rows = [sorted(row, key=lambda candidate: -candidate.log_probability) for row in rows]
        return rows

    def _chosen(
        self,
        source: str,
        table: str | None,
        lines: list[list[int]],
        own_lines: Sequence[int],
        decoding: Decoding,
    ) -> list[tuple[int, str]]:
        """(line, text) of the candidates of one source that are kept, from its lines."""
        chosen: dict[str, int] = {}
        own = normalise(source)
        for line in own_lines:
            unknown = self.tokenizer.missing_entities if self._aligned else 0
            text = self._decode(lines[line], table)
            unknown = self.tokenizer.missing_entities - unknown if self._aligned else 0
            if not has_text(text) or text in chosen:
                continue
            if decoding.drop_copies and normalise(text) == own:
                self.counts["copies"] += 1
                continue
            chosen[text] = line
            self.counts["unknown entities"] += unknown
            if len(chosen) == decoding.n_best:
                break
        self.counts["paraphrases"] += len(chosen)
        self.counts["no candidate"] += not chosen
        return [(line, text) for text, line in chosen.items()]

    def _decode(self, ids: list[int], table: str | None = None) -> str:
        if self._aligned:
            return self.tokenizer.decode(ids, entities=table)
        text = _decode(self.tokenizer, ids)
        return SPACE_BESIDE_CHINESE.sub("", text) if self._spaced else text

    def log_probabilities(
        self, sources: Sequence[str], paraphrases: Sequence[str], batch_size: int = 32
    ) -> list[float]:
        """Mean log-probability of each paraphrase's tokens, its end among them, given its source."""
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

    def _seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    # What the model itself does; modeling/exported.py has these for an exported one.

    def _write(
        self, ids: Sequence[Sequence[int]], limit: int, arguments: dict[str, Any]
    ) -> list[list[int]]:
        """num_return_sequences lines of tokens of each source, one source after the other, each line
        with the start token before and padding behind its end."""
        inputs, mask = padded(ids, self.tokenizer.pad_token_id)
        return self.model.generate(
            input_ids=inputs.to(self.model.device),
            attention_mask=mask.to(self.model.device),
            max_new_tokens=limit,
            use_cache=True,
            logits_processor=self._constraints(ids, limit),
            **arguments,
        ).tolist()

    def _constraints(self, ids: Sequence[Sequence[int]], limit: int) -> list[EntityConstraint]:
        if not self._aligned:
            return []
        entities = self.tokenizer.entity_ids
        return [EntityConstraint(ids, entities, self._end_tokens(), limit)]

    def _score(self, ids: Sequence[Sequence[int]], lines: Sequence[Sequence[int]]) -> list[float]:
        """Mean log-probability of the tokens of each line, given the tokens of its source."""
        pad, device = self.tokenizer.pad_token_id, self.model.device
        inputs, mask = padded(ids, pad)
        written, _ = padded(lines, pad)
        return self._log_probabilities(inputs.to(device), mask.to(device), written.to(device))

    def _log_probabilities(
        self, inputs: torch.Tensor, mask: torch.Tensor, written: torch.Tensor
    ) -> list[float]:
        """Mean log-probability of the tokens of each line of written up to its end.

        inputs, mask: (lines, tokens) of the sources. written: (lines, 1 + tokens), the start token first.
        One more pass, with all tokens at once: the search's own scores depend on length_penalty, the
        samples' on top_p and temperature.
        """
        ends = torch.tensor(self._end_tokens(), device=written.device)
        targets = written[:, 1:]
        end = torch.isin(targets, ends).long()
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
            logits = output.logits.float()
            chosen = logits.gather(2, targets[part].unsqueeze(2)).squeeze(2) - logits.logsumexp(2)
            own = there[part]
            means += ((chosen * own).sum(1) / own.sum(1)).tolist()
        return means

    def _end_tokens(self) -> list[int]:
        ends = self.model.generation_config.eos_token_id
        return ends if isinstance(ends, list) else [ends]

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        training = self.model.training
        self.model.eval()
        try:
            yield
        finally:
            self.model.train(training)


def most_new(tokens: int) -> int:
    """The limit of new tokens that follows from a source's: twice these, rounded up to LENGTH_STEP."""
    return 2 * LENGTH_STEP * -(-tokens // LENGTH_STEP)


SPACE_BESIDE_CHINESE = re.compile(r"(?<=[^\x00-\x7f]) +| +(?=[^\x00-\x7f])")


def _decode(tokenizer: Any, ids: list[int]) -> str:
    """The text of ids by a tokenizer of transformers."""
    text = tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    return text.strip()


def has_text(text: str | None) -> bool:
    """Whether a sentence has characters, and none that a reader of bytes that are not UTF-8 left."""
    return bool(text and not text.isspace() and "\ufffd" not in text)
