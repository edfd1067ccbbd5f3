"""Paraphrases a sentence by edits, and checks the results.

    paraphraser = Paraphraser.load()
    paraphraser(["…"], Wanted(degree=4))     # for each text its paraphrases, best first

Rules change the structure first; then the lexicon and the wordings change the result. A language
model removes edits that read oddly, draws combine the others, and the pair encoder judges each draw
against the source. Among the draws that pass the gates, the best by the encoder's judgement and the
amount of change wins. If none passes, fewer edits are tried, and then single ones. If these fail
too, there is no paraphrase.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np
import rjieba

from gaixie.udfs.meaning.language_model import LanguageModel
from gaixie.udfs.meaning.pair_encoder import TASKS, PairEncoder, load_pair_encoder
from gaixie.udfs.paraphrase import lexicon as words_of
from gaixie.udfs.paraphrase.edits import Edit, apply, doubts_of, fits
from gaixie.udfs.paraphrase.endpoint import Endpoint
from gaixie.udfs.paraphrase.rules import structural_edits
from gaixie.udfs.paraphrase.rules.tables import words as rule_words
from gaixie.udfs.paraphrase.rules.view import View
from gaixie.udfs.paraphrase.rules.wordings import wording_edits
from gaixie.udfs.text.entities import EntityFinder, EntitySettings
from gaixie.udfs.text.normalise import normalise

DEGREES = 5
SHARES = {1: 0.25, 2: 0.45, 3: 0.65, 4: 0.85, 5: 1.0}
"""The share of good edits without overlaps that a draw takes, by degree."""
DRAWS = 6
"""Combinations of a text's edits that the encoder reads at once."""
MOST_WORDS = 20
"""The most edits of the lexicon to draw from."""
BASES = 2
"""Restructured sentences whose words are edited, beside the source."""
SMALL = rule_words("small")
"""Rules that change a few characters; any number of them may combine with edits of words."""
LOSSES = {True: 2.5, False: 0.5}
"""The most nats that the mean log probability around an edit may fall, by whether it is sure."""
LAST_LOSSES = {True: 3.5, False: 1.0}
"""The same limits if nothing else was found and single edits are tried."""
DOUBT = 0.5
"""Nats subtracted from the gain of an edit that is not sure, to rank it later."""
LAYERS = 3
"""Texts, each with edits that do not overlap, in which the encoder looks for wrong edits."""
CHANGE = 1.5
"""The weight of change against the encoder's judgement."""


READ = [TASKS.index(name) for name in ("same", "fluent", "good")]


class Reading(NamedTuple):
    """The pair encoder's probabilities for a pair."""

    same: float
    """Both sentences mean the same."""
    fluent: float
    """The paraphrase is good Chinese."""
    good: float
    """Both: an editor would print it."""


@dataclass(frozen=True)
class Gates:
    """The pair encoder's probabilities that a paraphrase must reach."""

    same: float = 0.4
    fluent_loss: float = 0.25
    """How far ``fluent`` may fall below that of the source itself."""
    doubt: float = 0.45
    """The highest probability that a single edit is wrong."""


@dataclass(frozen=True)
class Wanted:
    """The request for paraphrases. Raises ValueError for a value out of range."""

    degree: int = 5
    """1 is a light touch, 5 as much as passes the gates."""
    n: int = 1
    keep: tuple[str, ...] = ()
    """Terms that must not change."""
    seed: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.degree <= DEGREES:
            raise ValueError(f"degree: expected 1 to {DEGREES}, not {self.degree}")
        if self.n < 1:
            raise ValueError(f"n: expected 1 or more, not {self.n}")


@dataclass(frozen=True)
class Paraphrase:
    """A paraphrase that passed the gates, and the pair encoder's reading of it."""

    text: str
    same: float
    fluent: float
    good: float
    edits: tuple[Edit, ...] = field(repr=False)
    """Edits of structure, at their places in the source, then edits of the resulting text."""


@dataclass
class _Draft:
    """The state of a text while it is paraphrased."""

    text: str
    rules: list[Edit]
    """Edits of its structure."""
    fixed: tuple[str, ...]
    """Entities and kept terms."""
    fluent: float = 0.0
    doubts: dict[tuple[str, str], float] = field(default_factory=dict)
    """How likely an edit is wrong, by the text that it replaces and the text that it writes."""
    drawn: dict[str, tuple[Edit, ...]] = field(default_factory=dict)
    found: list[Paraphrase] = field(default_factory=list)


class Paraphraser:
    """Finds, reads and combines edits."""

    def __init__(
        self,
        encoder: PairEncoder,
        lexicon: words_of.Lexicon,
        language_model: LanguageModel,
        gates: Gates | None = None,
        endpoint: Endpoint | None = None,
    ):
        self.encoder, self.lexicon, self.language_model = encoder, lexicon, language_model
        self.gates, self.endpoint = gates or Gates(), endpoint
        self._entities = EntityFinder(EntitySettings())

    @classmethod
    def load(cls, gates: Gates | None = None, endpoint: Endpoint | None = None) -> Paraphraser:
        """Loads what ships with the package. endpoint: a service to ask before trying edits."""
        return cls(load_pair_encoder(), words_of.load(), LanguageModel.load(), gates, endpoint)

    def __call__(
        self, texts: Sequence[str], wanted: Wanted | None = None
    ) -> list[list[Paraphrase]]:
        """Returns at most ``wanted.n`` paraphrases of each text, best first; none if none is good
        enough."""
        wanted = wanted or Wanted()
        drafts = [self._draft(text, wanted.keep) for text in texts]
        for draft, reading in zip(drafts, self._read([(t, t) for t in texts]), strict=True):
            draft.fluent = reading.fluent
        if self.endpoint:
            self._ask(drafts, wanted)
        self._doubt([own for own in drafts if len(own.found) < wanted.n])
        for attempt, share in enumerate((SHARES[wanted.degree], 0.4, 0.0)):
            short = [own for own in drafts if len(own.found) < wanted.n]
            if not share:
                self._doubt(short, LAST_LOSSES)
            for draft in short:
                place = random.Random(f"{wanted.seed} {attempt} {draft.text}")
                draft.drawn = self._draw(draft, share, place)
            self._read_drawn(short)
        return [draft.found[: wanted.n] for draft in drafts]

    def _ask(self, drafts: Sequence[_Draft], wanted: Wanted) -> None:
        """Gets candidates from the endpoint and checks them."""
        assert self.endpoint is not None
        texts = [draft.text for draft in drafts]
        found = self.endpoint.candidates(texts, wanted.degree, 2 * wanted.n)
        for draft, own in zip(drafts, found, strict=True):
            draft.drawn = dict.fromkeys(own, ())
        self._read_drawn(drafts)

    def _draft(self, text: str, keep: Sequence[str]) -> _Draft:
        names = [text[own.start : own.end] for own in self._entities.find(text)]
        fixed = (*keep, *names)
        rules = [Edit(*own) for own in structural_edits(text, rjieba.tag(text))]
        rules = [own for own in rules if own.kind not in SMALL]
        rules = [own for own in rules if _keeps(text, apply(text, [own]), fixed)]
        return _Draft(text, rules, fixed)

    def _doubt(self, drafts: Sequence[_Draft], losses: Mapping[bool, float] = LOSSES) -> None:
        """Asks the encoder how likely each edit of the sources is wrong."""
        layers = []
        for draft in drafts:
            words = self._words(draft.text, draft, losses, doubtful=True)
            left = [*draft.rules, *(edit for _, edit in words)]
            for _ in range(LAYERS):
                layer = _taken(left, 1, random.Random(0))
                left = [edit for edit in left if edit not in layer]
                layers += [(draft, layer)] if layer else []
        texts = [draft.text for draft, _ in layers]
        edited = [apply(draft.text, layer) for draft, layer in layers]
        _, doubts = self.encoder.read(texts, edited)
        for (draft, layer), own in zip(layers, doubts, strict=True):
            for edit, doubt in zip(sorted(layer), doubts_of(layer, own), strict=True):
                draft.doubts[draft.text[edit.start : edit.end], edit.new] = doubt
        for draft in drafts:
            draft.rules = [own for own in draft.rules if self._is_sure(own, draft.text, draft)]

    def _is_sure(self, edit: Edit, text: str, draft: _Draft) -> bool:
        key = text[edit.start : edit.end], edit.new
        return draft.doubts.get(key, 0.0) <= self.gates.doubt

    def _words(
        self,
        text: str,
        draft: _Draft,
        losses: Mapping[bool, float] = LOSSES,
        doubtful: bool = False,
    ) -> list[tuple[float, Edit]]:
        """Returns (gain in nats by the language model, edit) of a text's words, best first.

        Leaves out edits that read oddly or change fixed terms. doubtful: include those that may not
        suit the register.
        """
        tagged = rjieba.tag(text)
        before = self._log_probabilities(text)
        given = [
            Edit(*own, "wording", doubtful=doubt)
            for own, doubt in wording_edits(View(text, tagged))
        ]
        given += [Edit(*own) for own in structural_edits(text, tagged) if own[3] in SMALL]
        by_place: dict[tuple[int, int], list[tuple[float, Edit]]] = {}
        for edit in (*given, *words_of.lexical_edits(text, tagged, self.lexicon)):
            if doubtful >= edit.doubtful and _keeps(text, apply(text, [edit]), draft.fixed):
                gain = self._gain(text, edit, before)
                if edit.kind != "word" or gain > -losses[edit.sure]:
                    worth = gain - DOUBT * (not edit.sure)
                    by_place.setdefault(edit[:2], []).append((worth, edit))
        best = [own for place in by_place.values() for own in sorted(place, reverse=True)[:2]]
        best = sorted(best, reverse=True)[:MOST_WORDS]
        return [own for own in best if self._is_sure(own[1], text, draft)]

    def _log_probabilities(self, text: str) -> np.ndarray:
        """Returns the log probability of each character of the text, and of its end."""
        return self.language_model.log_probabilities("".join(map(_plain, text)))

    def _gain(self, text: str, edit: Edit, before: np.ndarray) -> float:
        """Returns an edit's gain in the mean log probability of its characters and the next two."""
        after = self._log_probabilities(apply(text, [edit]))
        old = before[edit.start : edit.end + 2]
        new = after[edit.start : edit.start + len(edit.new) + 2]
        return float(new.mean() - old.mean())

    def _draw(
        self, draft: _Draft, share: float, place: random.Random
    ) -> dict[str, tuple[Edit, ...]]:
        """Draws texts that combine a share of the edits, likely ones first; 0: single edits."""
        if not share:
            words = self._words(draft.text, draft, LAST_LOSSES, doubtful=True)
            single = [*draft.rules, *(edit for _, edit in words)]
            return {apply(draft.text, [edit]): (edit,) for edit in single[:DRAWS]}
        bases: dict[str, tuple[Edit, ...]] = {draft.text: ()}
        for _ in range(BASES if draft.rules else 0):
            mixed = place.sample(draft.rules, len(draft.rules))
            taken = _one_each(draft.text, _taken(mixed, share, place))
            bases.setdefault(apply(draft.text, taken), tuple(taken))
        drawn = {text: edits for text, edits in bases.items() if edits}
        for text, edits in bases.items():
            words = self._words(text, draft)
            for _ in range(DRAWS // len(bases) if words else 0):
                mixed = [own[1] for own in sorted(words, key=lambda own: -own[0] - place.random())]
                taken = _taken(mixed, share, place)
                drawn.setdefault(apply(text, taken), (*edits, *taken))
        return drawn

    def _read_drawn(self, drafts: Sequence[_Draft]) -> None:
        """Adds the drawn texts that pass the gates to the found ones, best first."""
        pairs = [(draft.text, text) for draft in drafts for text in draft.drawn]
        if not pairs:
            return
        readings = iter(self._read(pairs))
        for draft in drafts:
            kept = {own.text: own for own in draft.found}
            for (text, edits), reading in zip(draft.drawn.items(), readings, strict=False):
                if _keeps(draft.text, text, draft.fixed) and self._passes(reading, draft):
                    kept.setdefault(text, Paraphrase(text, *reading, edits))
            draft.found = sorted(
                kept.values(),
                key=lambda own: 2 * own.good + CHANGE * change(draft.text, own.text),
                reverse=True,
            )

    def _read(self, pairs: Sequence[tuple[str, str]]) -> list[Reading]:
        if not pairs:
            return []
        found = self.encoder.predict(*zip(*pairs, strict=True))[:, READ]
        return [Reading(*row) for row in found.tolist()]

    def _passes(self, reading: Reading, draft: _Draft) -> bool:
        least = draft.fluent - self.gates.fluent_loss
        return reading.same >= self.gates.same and reading.fluent >= least


def _taken(edits: Sequence[Edit], share: float, place: random.Random) -> list[Edit]:
    """Returns a share of the edits, skipping any that overlaps an earlier one."""
    taken: list[Edit] = []
    for edit in edits:
        if fits(edit, taken) and place.random() < share:
            taken.append(edit)
    return taken


def _one_each(text: str, rules: Sequence[Edit]) -> list[Edit]:
    """Returns each sentence's first rule: two rules in one sentence may not fit together."""
    found: dict[int, Edit] = {}
    for own in rules:
        found.setdefault(len(re.findall("[。！？]", text[: own.start])), own)
    return list(found.values())


def change(source: str, paraphrase: str) -> float:
    """Returns how much a paraphrase changes: the share of its character pairs that are new, 0 to
    1."""
    own = [paraphrase[k : k + 2] for k in range(len(paraphrase) - 1)]
    return sum(pair not in source for pair in own) / max(len(own), 1)


def _keeps(text: str, other: str, fixed: Sequence[str]) -> bool:
    """Tells whether another text differs and has each fixed term at least as often."""
    return other != text and all(other.count(term) >= text.count(term) for term in fixed)


@cache
def _plain(character: str) -> str:
    """Returns a character as the language model reads it, if that is one character too."""
    plain = normalise(character)
    return plain if len(plain) == 1 else character
