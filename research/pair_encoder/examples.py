"""Draws what the pair encoder learns from.

Pairs that say the same, pairs that do not, broken Chinese, ratings, and judgements that others
made. Each example has targets from 0 to 1 for some tasks of the encoder, and, where a program broke
the paraphrase, the spans that it changed. A file of examples is JSON lines under xz, from which a
machine without the sets can train; ``spans``, ``worse`` and ``rank`` are there if the example has
them:

    {"kind": "written", "source": "…", "paraphrase": "…", "targets": {"same": 1}, "spans": [],
     "worse": {"paraphrase": "…", "targets": {"same": 0}}, "rank": "same"}
"""

import difflib
import json
import lzma
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from gaixie.research.pair_encoder.broken import Breaker
from gaixie.research.pair_encoder.sets import LONGEST, Example, Sets, Span
from gaixie.research.ratings.rated import DRAFT, RATINGS, TRANSLATED

FLUENT_COUNTERPARTS = ("negation", "roles", "roles", "fact", "scope")
"""Fluent counterparts of a written group, and how often each is drawn."""
FOLLOWS = {"entailed": 0.5, "neutral": 0.35, "contradicted": 0.15}
"""How much of a premise's meaning a statement keeps that follows from it, may be true, or cannot
be."""
LIKELY = 0.93
"""How sure it is that two good translations of one sentence say the same."""
XZ = {"id": lzma.FILTER_LZMA2, "preset": 9, "dict_size": 1 << 28}


class Examples:
    """Draws examples: ``draw()`` gives one, of a set drawn by its weight.

    Of a group that has both, a paraphrase and a wrong one are drawn together and ranked: only what
    sets the two apart is to be learned, not how they differ from the source.
    """

    def __init__(self, sets: Sets, random: Random):
        self.sets, self.random = sets, random
        self.breaker = Breaker([own[0] for own in sets.versions], random)
        rated = sets.rated[sets.rated["part"] == "encoder"]
        short = (rated["source"].str.len() <= LONGEST) & (rated["paraphrase"].str.len() <= LONGEST)
        rated = rated[short]
        others = ~rated["kind"].isin([TRANSLATED, DRAFT])
        of_kinds = (others, rated["kind"] == TRANSLATED, rated["kind"] == DRAFT)
        rows, translated, drafts = (rated[kind].to_dict("records") for kind in of_kinds)
        self.degrees = rated.groupby("kind")[list(RATINGS)].mean().T.to_dict()
        self.kinds: dict[str, tuple[float, Callable[[], Example]]] = {
            "versions": (0.14, self.of_versions),
            "written": (0.20, self.of_written),
            "exchanged": (0.06, partial(self.of_groups, sets.exchanged)),
            "rewritten": (0.12, partial(self.of_groups, sets.rewritten)),
            "premises": (0.06, self.of_premises),
            "copies": (0.02, self.of_copies),
            "rated": (0.12, partial(self.of_rated, rows)),
            "translated": (0.18 * bool(translated), partial(self.of_rated, translated)),
            "drafts": (0.20 * bool(drafts), partial(self.of_rated, drafts)),
            "others": (0.06, partial(random.choice, sets.judged)),
            "grammar": (0.03, self.of_grammar),
        }

    def draw(self) -> tuple[str, Example]:
        """Returns (kind, example), which depend on the state of ``random`` alone."""
        (name,) = self.random.choices([*self.kinds], [share for share, _ in self.kinds.values()])
        return name, self.kinds[name][1]()

    def of_versions(self) -> Example:
        """Two translations of one sentence; the same, changed alike; one of them broken."""
        random, own = self.random, self.random.choice(self.sets.versions)
        one, other = random.sample(own, 2)
        drawn = random.random()
        if drawn < 0.32:
            return equal(one, other, LIKELY)
        if drawn < 0.45:
            alike = self.breaker.in_both(one, other)
            return Example(*alike, {"same": LIKELY}) if alike else equal(one, other, LIKELY)
        if drawn < 0.85:
            # The change alone tells, not the wording: the source is either of the two.
            source = random.choice((one, other))
            if wrong := self.breaker.meaning(other):
                return changed(source, other, wrong)
        elif drawn < 0.95:
            if salad := self.breaker.salad(other):
                return broken(one, salad, differences(other, salad))
        stranger = random.choice(random.choice(self.sets.versions))
        return Example(one, stranger, {"same": 0, "fluent": 1, "good": 0})

    def of_copies(self) -> Example:
        """A sentence beside itself, or but for its marks: the same. What is broken comes close to
        it."""
        text = self.random.choice(self.random.choice(self.sets.versions))
        return equal(text, text if self.random.random() < 0.7 else text.rstrip("。！？"))

    def of_written(self) -> Example:
        """Two of a written group, most often before the group's counterpart."""
        random, group = self.random, self.random.choice(self.sets.written)
        counterparts, drawn = self.sets.broken.get(group["group"]), random.random()
        if random.random() < 0.3:
            return self.of_degree(group["texts"], counterparts)
        one, other = random.sample(group["texts"], 2)
        if counterparts is None or drawn > 0.92:
            wrong = self.breaker.meaning(other)
            right = equal(one, other)
            return ranked(right, changed(one, other, wrong)) if wrong else right
        if drawn < 0.78:
            wrong = counterparts[random.choice(FLUENT_COUNTERPARTS)]
            return ranked(equal(one, other), unequal(one, wrong))
        if drawn < 0.86:
            return unequal(counterparts[random.choice(FLUENT_COUNTERPARTS)], one)
        return ranked(equal(one, other), broken(one, counterparts["salad"]), "fluent")

    def of_degree(self, texts: Sequence[str], counterparts: dict[str, str] | None) -> Example:
        """Draws S0 of a written group and another of it, or a counterpart, with their kind's mean
        ratings."""
        if counterparts is not None and self.random.random() < 0.4:
            kind = self.random.choice(FLUENT_COUNTERPARTS)
            drawn = unequal(texts[0], counterparts[kind])
        else:
            number = self.random.randrange(1, len(texts))
            kind, drawn = f"S{number}", equal(texts[0], texts[number])
        drawn.targets |= self.degrees.get(f"written_{kind}", {})
        return drawn

    def of_groups(self, groups: Sequence[dict[str, Any]]) -> Example:
        """Two sentences of a group that say the same before a wrong one."""
        random, row = self.random, self.random.choice(groups)
        same = [row["source"], *row["same"]]
        one = random.choice(same)
        if random.random() < 0.2:
            return unequal(random.choice(row["wrong"]), one)
        other = random.choice([text for text in same if text != one])
        return ranked(equal(one, other), unequal(one, random.choice(row["wrong"])))

    def of_premises(self) -> Example:
        """A premise beside what follows from it, before what does not or contradicts it."""
        random, row = self.random, self.random.choice(self.sets.premises)
        names = ["entailed", "contradicted"]
        if random.random() < 0.4:
            names = random.sample([*FOLLOWS], 2)
        better, worse = (
            Example(
                row["premise"], random.choice(row[name]), {"meaning": FOLLOWS[name], "fluent": 1}
            )
            for name in sorted(names, key=lambda name: -FOLLOWS[name])
        )
        return ranked(better, worse)

    def of_rated(self, rated: Sequence[dict[Any, Any]]) -> Example:
        """A rated pair, after its correction if it has one.

        Of ``same`` and ``fluent`` 0.3 and below is 0, 0.95 and above is 1.
        """
        row = self.random.choice(rated)
        targets = {name: row[name] for name in RATINGS}
        same, fluent = (min(1.0, max(0.0, (row[k] - 0.3) / 0.65)) for k in ("meaning", "fluency"))
        targets |= {"same": same, "fluent": fluent, "good": min(same, fluent)}
        drawn = Example(row["source"], row["paraphrase"], targets)
        corrected = row.get("corrected")
        if not isinstance(corrected, str):
            return drawn
        return ranked(equal(row["source"], corrected, LIKELY), drawn, "good")

    def of_grammar(self) -> Example:
        """A sentence beside itself."""
        text, right = self.random.choice(self.sets.grammar)
        return Example(text, text, {"fluent": right})


def equal(source: str, paraphrase: str, sure: float = 1.0) -> Example:
    """A good paraphrase."""
    return Example(source, paraphrase, {"same": sure, "fluent": sure, "good": sure}, [])


def unequal(source: str, wrong: str) -> Example:
    """A fluent sentence that says something else."""
    return Example(source, wrong, {"same": 0, "fluent": 1, "good": 0})


def ranked(better: Example, worse: Example, rank: str = "same") -> Example:
    """Two paraphrases of one source, of which the second is worse by the task ``rank``."""
    better.worse, better.rank = worse, rank
    return better


def changed(source: str, right: str, wrong: str) -> Example:
    """A paraphrase that a program made say something else."""
    return Example(source, wrong, {"same": 0, "good": 0}, differences(right, wrong))


def broken(source: str, salad: str, spans: list[Span] | None = None) -> Example:
    """A paraphrase that is no Chinese."""
    return Example(source, salad, {"fluent": 0, "good": 0}, spans)


def differences(right: str, wrong: str) -> list[Span]:
    """Spans of wrong that differ from right; a deletion is marked on the character behind it."""
    matcher = difflib.SequenceMatcher(None, right, wrong, autojunk=False)
    return [
        (start, max(end, start + 1))
        for operation, _, _, start, end in matcher.get_opcodes()
        if operation != "equal"
    ]


def write_drawn(sets: Sets, count: int, seed: int, path: Path) -> Counter[str]:
    """Draws count examples into a file. Returns how many there are of each kind."""
    examples = Examples(sets, Random(seed))
    drawn = [examples.draw() for _ in range(count)]
    lines = sorted(line_of(kind, example) for kind, example in drawn)
    path.parent.mkdir(parents=True, exist_ok=True)
    with lzma.open(path, "wt", encoding="utf-8", filters=[XZ]) as file:
        file.writelines(lines)
    return Counter(kind for kind, _ in drawn)


def line_of(kind: str, example: Example) -> str:
    """An example as a line that begins with its texts: equal ones come together when sorted."""
    row = {"source": example.source, **_paraphrase(example)}
    if example.worse is not None:
        row |= {"worse": _paraphrase(example.worse), "rank": example.rank}
    return json.dumps(row | {"kind": kind}, ensure_ascii=False, separators=(",", ":")) + "\n"


def _paraphrase(example: Example) -> dict[str, Any]:
    targets = {name: round(value, 3) for name, value in example.targets.items()}
    spans = {} if example.spans is None else {"spans": example.spans}
    return {"paraphrase": example.paraphrase, "targets": targets, **spans}
