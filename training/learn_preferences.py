"""Teaches a paraphraser which of its drafts readers prefer, and goes on with written pairs.

  python training/learn_preferences.py BASE udfs/models/writer-zh drafts.jsonl \\
      --pairs out/paraphraser/data/written/pairs.parquet --output out/preferred

BASE is a folder of training/bases.py, the next an adapter of it (PEFT) with its tokenizer. Drafts
are those of training/draw_drafts.py, judged, or rated as for research/fit_quality.py: then a reader
accepts a draft if its meaning and its fluency are rated 4 or more. A rated draft may have a
correction (column corrected): what a reader made of it, with as few changes as it took.

A correction is preferred to its draft. A draft is worth its overall judgement times the probability
that a reader accepts it. One that is more likely to be accepted than not is preferred to the worst
draft of its source and code that is worth at least 0.4 less, unless that one is bolder: else the
writer would learn to play safe and change little. A step learns from packs of preferences, and a
written pair beside each:

    − log σ(β (Δ(better) − Δ(worse))) − 0.1 log p(better) / tokens − 0.25 log p(pair) / tokens

where Δ is the log probability of a draft, minus that by the adapter at the start. The output is an
adapter for training/make_writer.py, saved every ten minutes; the same command resumes. For CPUs:
the weights of the base have eight bits. Exit codes: 0 done, 2 something to fix.

Source: Rafailov et al. 2023, Direct Preference Optimization, equation 7; the likelihood of the
better one beside it as in Pang et al. 2024, Iterative Reasoning Preference Optimization. A loss
without the start (SimPO), by the mean of the tokens, made a writer that repeats itself.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import torch
from torch.nn.functional import cross_entropy, logsigmoid

from gaixie.training.modeling.adapting import Adapter, Pack
from gaixie.udfs.command_line import make_parser, positive, run_command, say
from gaixie.udfs.paraphrase.prompt import END, degree, overlap, prompt

BETA, NLL, WRITTEN, RATE, WARM_UP = 0.1, 0.1, 0.25, 5e-5, 10
ACCEPTED, APART, SHARED, MOST = 0.5, 0.4, 0.05, 2
"""The least probability that a preferred draft is accepted; by how much it is worth more, of 5; by
how much more of the source it may keep (prompt.overlap); preferences of a source and code that are
read together."""
PACKS, LONGEST, SAVE_SECONDS = 2, 480, 600
"""Packs in a step, and tokens in one; seconds between two savings."""


class Drafts(NamedTuple):
    """Drafts of a source: each better one with a worse one behind it; or one that was written."""

    source: str
    code: str
    texts: list[str]


def main(argv: list[str] | None = None) -> int:
    """Runs the script and returns its exit code."""
    parser = make_parser("learn_preferences.py", __doc__)
    parser.add_argument("base", type=Path, metavar="BASE")
    parser.add_argument("adapter", type=Path, metavar="ADAPTER")
    parser.add_argument("drafts", nargs="+", type=Path, metavar="DRAFTS", help="judged or rated")
    parser.add_argument("--pairs", required=True, type=Path, help="source, paraphrase, code")
    parser.add_argument("--steps", type=positive, help="(once through the preferences)")
    parser.add_argument("--output", required=True, type=Path, metavar="FOLDER")
    return run_command("learn_preferences", lambda: learn(parser.parse_args(argv)))


def learn(args: argparse.Namespace) -> None:
    """Runs the command."""
    drafts = pd.concat([pd.read_json(path, lines=True) for path in args.drafts], ignore_index=True)
    preferred, pairs = preferences(drafts), written(pd.read_parquet(args.pairs))
    learner = Learner(args.base, args.adapter)
    packs = learner.packs(preferred)
    if not packs or not pairs:
        raise ValueError("no draft is preferred to another, or there are no written pairs")
    steps = args.steps or -(-len(packs) // PACKS)
    say(f"{len(preferred):,} groups of preferences in {len(packs):,} packs, {len(pairs):,} pairs")
    saved, right = time.monotonic(), []
    for step in range(learner.resume(args.output) + 1, steps + 1):
        for k in range(step * PACKS - PACKS, step * PACKS):
            right += learner.backward(packs[k % len(packs)], pairs[k % len(pairs)])
        learner.update(RATE * min(1, step / WARM_UP))
        if step % 10 == 0 or step == steps:
            say(f"step {step:,} of {steps:,}: {sum(right) / len(right):.0%} of {len(right)} held")
            right = []
        if step == steps or time.monotonic() - saved > SAVE_SECONDS:
            learner.save(args.output, step)
            saved = time.monotonic()
    print(args.output)


def preferences(drafts: pd.DataFrame) -> list[Drafts]:
    """Returns the preferences of each source and code, at most MOST together, shuffled."""
    rows = drafts.assign(code=drafts["code"].astype(str))
    rated = rows.reindex(columns=["meaning", "fluency"]).min(axis=1) >= 4
    rows["accepted"] = rows.reindex(columns=["accepted"])["accepted"].fillna(rated.astype(float))
    rows["worth"] = rows["accepted"] * rows["overall"]
    rows["kept"] = [*map(overlap, rows["source"], rows["paraphrase"])]
    found = []
    for (source, code), own in rows.groupby(["source", "code"]):
        mended = own.reindex(columns=["corrected", "paraphrase"]).dropna()
        kept = _preferences(own.sort_values("worth", ascending=False).to_dict("records"))
        texts = [*mended.to_numpy().ravel(), *(one["paraphrase"] for one in kept)]
        for k in range(0, len(texts), 2 * MOST):
            found.append(Drafts(str(source), str(code), texts[k : k + 2 * MOST]))
    random.Random(0).shuffle(found)
    return found


def _preferences(best: list[dict[Any, Any]]) -> list[dict[Any, Any]]:
    """Returns each better draft with a worse one behind it. best: the drafts, best first."""
    found: list[dict[Any, Any]] = []
    for one in best:
        least, bold = one["worth"] - APART, one["kept"] - SHARED
        worse = (w for w in best[::-1] if w["worth"] <= least and w["kept"] >= bold)
        if one["accepted"] >= ACCEPTED and one not in found and len(found) < 2 * MOST:
            found += next(([one, w] for w in worse if w not in found), [])
    return found


def written(pairs: pd.DataFrame) -> list[Drafts]:
    """Returns pairs to learn from, each with its tone or its degree from 2 on, shuffled."""
    rows = pairs[["source", "paraphrase", "code"]].sample(frac=1, random_state=0).to_numpy()
    asked = [Drafts(a, code or str(degree(a, b)), [b]) for a, b, code in rows]
    return [one for one in asked if one.code != "1"]


class Learner(Adapter):
    """An adapter that learns from preferences and pairs."""

    def __init__(self, base: Path, adapter: Path):
        super().__init__(base, adapter)
        self.start = [own.detach().clone() for own in self.weights]

    def _use(self, weights: Sequence[torch.Tensor]) -> None:
        for own, data in zip(self.weights, weights, strict=True):
            own.data = data

    def packs(self, drafts: Sequence[Drafts]) -> list[list[Drafts]]:
        """Returns the drafts in packs of at most LONGEST tokens, without those that are longer."""
        found, room = list[list[Drafts]](), 0
        for one in drafts:
            start, texts = self._tokens(one)
            size = len(start) + sum(map(len, texts))
            if size > LONGEST:
                continue
            if size > room:
                found.append([])
                room = LONGEST
            found[-1].append(one)
            room -= size
        return found

    def log_probabilities(self, drafts: Sequence[Drafts]) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the log probability of each text and its end, and its number of tokens."""
        pack = Pack.of([self._tokens(one) for one in drafts])
        before = [k for last, a, b in pack.spans for k in (last, *range(a, b - 1))]
        tokens = [k for _, a, b in pack.spans for k in range(a, b)]
        lengths = torch.tensor([b - a for _, a, b in pack.spans])
        logits = self.model.base_model.model.lm_head(self.states(pack)[before])
        found = -cross_entropy(logits.float(), pack.ids[tokens], reduction="none")
        of = torch.arange(len(lengths)).repeat_interleave(lengths)
        return torch.zeros(len(lengths)).index_add(0, of, found), lengths

    def backward(self, preferred: Sequence[Drafts], pair: Drafts) -> list[bool]:
        """Adds the gradient of a pack and returns which preferences hold."""
        weights = [own.data for own in self.weights]
        self._use(self.start)
        with torch.no_grad():
            before, _ = self.log_probabilities(preferred)
        self._use(weights)
        now, tokens = self.log_probabilities([*preferred, pair])
        change, mean = now[:-1] - before, now / tokens
        margin = change[::2] - change[1::2]
        loss = -logsigmoid(BETA * margin).mean() - NLL * mean[:-1:2].mean() - WRITTEN * mean[-1]
        (loss / PACKS).backward()
        return (margin > 0).tolist()

    def _tokens(self, drafts: Drafts) -> tuple[list[int], list[list[int]]]:
        """Returns the token ids of a prompt, and of each text with its end."""
        [end] = self.ids(END)
        start = self.ids(prompt(drafts.source, drafts.code))
        return start, [[*self.ids(text), end] for text in drafts.texts]


if __name__ == "__main__":
    sys.exit(main())
