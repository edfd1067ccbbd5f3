"""Teaches a paraphraser which of its drafts readers prefer, and goes on with written pairs.

  python training/learn_preferences.py BASE udfs/models/writer-zh drafts.jsonl \\
      --pairs out/paraphraser/data/written/pairs.parquet --output out/preferred

BASE is a folder of training/bases.py, the next an adapter of it (PEFT) with its tokenizer. Drafts
are rated as for research/fit_quality.py, and have the code that they were asked for with.

Of two drafts of one source and code, one is preferred if its overall judgement is higher and its
meaning and fluency together are better by two points, or by one if it alone is acceptable. A step
learns from six preferences and six pairs:

    − log σ(β (Δ(better) − Δ(worse))) − 0.1 log p(better) / tokens − log p(pair) / tokens

where Δ is the log probability of a draft, minus the one when it was drawn. The output is an adapter
for training/make_writer.py, saved every ten minutes; the same command resumes. For CPUs: the
weights of the base have eight bits. Exit codes: 0 done, 2 something to fix.

Source: Rafailov et al. 2023, Direct Preference Optimization, equation 7; the likelihood of the
better one beside it as in Pang et al. 2024, Iterative Reasoning Preference Optimization.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import torch
from torch.nn.functional import cross_entropy, logsigmoid

from gaixie.training.modeling.adapting import Adapter
from gaixie.udfs.command_line import make_parser, positive, run_command, say
from gaixie.udfs.paraphrase.prompt import END, degree, prompt

BETA, NLL, RATE, WARM_UP = 0.1, 0.1, 4e-5, 20
GOOD = 4.0
"""The least rating of meaning and of fluency of a draft that a reader accepts."""
MICRO, PARTS = 2, 3
"""Preferences, and pairs, at once; and how often that makes a step."""
MOST = 5
"""Preferences of a source and code."""
SAVE_SECONDS = 600


class Text(NamedTuple):
    """What is asked for, and what is written."""

    source: str
    code: str
    paraphrase: str
    likelihood: float = 0.0
    """Mean log probability of its tokens when it was drawn."""


def main(argv: list[str] | None = None) -> int:
    """Runs the script and returns its exit code."""
    parser = make_parser("learn_preferences.py", __doc__)
    parser.add_argument("base", type=Path, metavar="BASE")
    parser.add_argument("adapter", type=Path, metavar="ADAPTER")
    parser.add_argument("drafts", nargs="+", type=Path, metavar="DRAFTS", help="rated drafts")
    parser.add_argument("--pairs", required=True, type=Path, help="source, paraphrase, code")
    parser.add_argument("--steps", type=positive, default=150)
    parser.add_argument("--output", required=True, type=Path, metavar="FOLDER")
    return run_command("learn_preferences", lambda: learn(parser.parse_args(argv)))


def learn(args: argparse.Namespace) -> None:
    """Runs the command."""
    rated = pd.concat([pd.read_json(path, lines=True) for path in args.drafts], ignore_index=True)
    preferred, pairs = preferences(rated), written(pd.read_parquet(args.pairs))
    say(f"{len(preferred):,} preferences, {len(pairs):,} pairs")
    learner = Learner(args.base, args.adapter)
    saved = time.monotonic()
    for step in range(learner.resume(args.output) + 1, args.steps + 1):
        losses = [
            learner.backward(_turn(preferred, part), _turn(pairs, part))
            for part in range(step * PARTS - PARTS, step * PARTS)
        ]
        learner.update(RATE * min(1, step / WARM_UP))
        if step % 10 == 0 or step == args.steps:
            say(f"step {step:,} of {args.steps:,}: loss {sum(losses) / PARTS:.3f}")
        if step == args.steps or time.monotonic() - saved > SAVE_SECONDS:
            learner.save(args.output, step)
            saved = time.monotonic()
    print(args.output)


def preferences(rated: pd.DataFrame) -> list[tuple[Text, Text]]:
    """Returns (better, worse) drafts, shuffled."""
    both = rated[["meaning", "fluency"]].clip(upper=4.5)
    rows = rated.assign(code=rated["code"].astype(str))[[*Text._fields, "overall"]]
    rows = rows.assign(both=both.sum(axis=1), least=both.min(axis=1))
    drawn, found = random.Random(0), []
    for _, own in rows.groupby(["source", "code"]):
        some = [(a, b) for a, b in permutations(own.itertuples(index=False), 2) if _is_better(a, b)]
        drawn.shuffle(some)
        found += some[:MOST]
    drawn.shuffle(found)
    return [(Text(*better[:4]), Text(*worse[:4])) for better, worse in found]


def _is_better(a: Any, b: Any) -> bool:
    alone = a.least >= GOOD > b.least
    return bool(a.both - b.both >= 2 - alone and a.least >= 3 and a.overall > b.overall)


def written(pairs: pd.DataFrame) -> list[Text]:
    """Returns pairs to learn from, each with its tone or its degree from 2 on, shuffled."""
    rows = pairs[["source", "paraphrase", "code"]].sample(frac=1, random_state=0).to_numpy()
    asked = [Text(a, code or str(degree(a, b)), b) for a, b, code in rows]
    return [text for text in asked if text.code != "1"]


def _turn(rows: Sequence[Any], number: int) -> list[Any]:
    """Returns the rows of a part of a step; after the last row comes the first."""
    return [rows[(number * MICRO + k) % len(rows)] for k in range(MICRO)]


class Learner(Adapter):
    """An adapter that learns from preferences and pairs."""

    def log_probabilities(self, texts: Sequence[Text]) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the log probability of each paraphrase and its end, and its number of tokens."""
        [end] = self.ids(END)
        starts = [self.ids(prompt(text.source, text.code)) for text in texts]
        ends = [[*self.ids(text.paraphrase), end] for text in texts]
        lines = [torch.tensor(a + b) for a, b in zip(starts, ends, strict=True)]
        ids = torch.nn.utils.rnn.pad_sequence(lines, True, end)
        place = torch.arange(ids.shape[1])
        first, last = (torch.tensor([*map(len, own)])[:, None] for own in (starts, lines))
        states = self.states(ids, (place < last).long())[:, :-1]
        asked = ((place >= first) & (place < last))[:, 1:]
        logits = self.model.base_model.model.lm_head(states[asked]).float()
        found = -cross_entropy(logits, ids[:, 1:][asked], reduction="none")
        return torch.zeros(len(texts)).index_add(0, asked.nonzero()[:, 0], found), asked.sum(1)

    def backward(self, preferred: Sequence[tuple[Text, Text]], pairs: Sequence[Text]) -> float:
        """Adds the gradient of a part of a step and returns its loss."""
        drafts = [draft for two in preferred for draft in two]
        now, tokens = self.log_probabilities(drafts)
        change = now - torch.tensor([draft.likelihood for draft in drafts]) * tokens
        loss = -logsigmoid(BETA * (change[::2] - change[1::2])).mean()
        loss = loss - NLL * (now / tokens)[::2].mean()
        own, of_own = self.log_probabilities(pairs)
        loss = loss - own.sum() / of_own.sum()
        (loss / PARTS).backward()
        return float(loss.detach())


if __name__ == "__main__":
    sys.exit(main())
