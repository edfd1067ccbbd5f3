"""Teaches the judge of paraphrases (udfs/paraphrase/judge.py) with rated pairs and counterparts.

  python research/fit_judge.py DATA BASE udfs/models/writer-zh \\
      --drafts research/ratings/drafts.jsonl --output out/judge

BASE is a folder of training/bases.py, the next the adapter that the judge starts from. Drafts are
rated as for research/fit_quality.py; the correction of one (column corrected) is learned from as
right and fluent, before the draft. The other pairs are those of research/pair_encoder/sets.py. A
step learns from four packs: groups of a source and some paraphrases, one behind the other, where a
paraphrase sees its source and itself alone. For each judgement known of a paraphrase the loss is
the cross entropy with the rating, and for two paraphrases of a source by how much the better one
is judged better (Burges et al. 2005, Learning to Rank using Gradient Descent, section 3), weighted
by how much it is better. The output is an adapter for training/make_writer.py, saved every ten
minutes; the same command resumes. It prints how far the judgements follow the ratings of drafts
and pairs that were not learned from. Exit codes: 0 done, 2 something to fix.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from scipy.stats import spearmanr
from torch.nn.functional import binary_cross_entropy_with_logits, softplus

from gaixie.research.fitting.data import CONFIG, Config
from gaixie.research.pair_encoder.examples import Examples
from gaixie.research.pair_encoder.sets import GROUPS, HERE, Example, load_sets
from gaixie.research.ratings.rated import GOOD, HIGHEST, RATINGS
from gaixie.research.ratings.tables import read_json_lines
from gaixie.training.modeling.adapting import Adapter, Pack
from gaixie.udfs.command_line import make_parser, positive, run_command, say
from gaixie.udfs.paraphrase.judge import DESCRIPTION, JUDGED, in_one_line
from gaixie.udfs.paraphrase.prompt import END, prompt
from gaixie.udfs.storage.settings import load_settings

LAYERS = 20
"""How many of the base's 28 blocks are kept: the states of the 20th say most about a draft."""
RATE, HEAD_RATE, WARM_UP, PACKS, LONGEST = 1.5e-4, 10.0, 15, 4, 480
"""Learning rate, and that of the head against it; its first steps; packs of a step; tokens of one.
"""
WEIGHTS = (0.5, 0.5, 1.5, 1.2, 1.0, 0.7, 1.0)
"""Of the judgements in the loss."""
RANKED, APART = ("meaning", "fluency", "overall", "human"), 0.19
"""Judgements that are ranked too, where they differ by more than this."""
SHARES = {"drafts": 0.35, "rated": 0.30, "people": 0.05, "acceptable": 0.03, "others": 0.27}
MOST = {"drafts": 8, "rated": 5, "people": 2, "acceptable": 1}
"""Paraphrases of a source in a pack."""
SAME, FLUENT = {1: 0.97, 0: 0.25}, {1: 0.97, 0: 0.2}
"""Meaning and fluency where it is only known whether they are right."""
CORRECTED = {"meaning": 0.98, "fluency": 0.96, "good": 1.0}
"""What is known of a reader's correction of a draft."""
UNACCEPTABLE, ACCEPTABLE = 0.45, 0.97
"""Fluency of an unacceptable sentence (CoLAC), and of an acceptable one."""
HELD_OUT, SAVE_SECONDS = 8, 600
"""One source of drafts in so many is kept for the test; seconds between two savings."""


class Pair(NamedTuple):
    """A paraphrase, and what is known of it, by the names of JUDGED."""

    text: str
    targets: dict[str, float]


Group = tuple[str, list[Pair]]
"""A source and its paraphrases."""


def main(argv: list[str] | None = None) -> int:
    """Runs the script and returns its exit code."""
    parser = make_parser("fit_judge.py", __doc__)
    parser.add_argument("data", type=Path, metavar="DATA")
    parser.add_argument("base", type=Path, metavar="BASE")
    parser.add_argument("adapter", type=Path, metavar="ADAPTER")
    parser.add_argument("--drafts", nargs="+", required=True, type=Path, help="rated drafts")
    parser.add_argument("--steps", type=positive, default=400)
    parser.add_argument("--layers", type=positive, default=LAYERS, help="(%(default)s)")
    parser.add_argument("--output", required=True, type=Path, metavar="FOLDER")
    return run_command("fit_judge", lambda: fit(parser.parse_args(argv)))


def fit(args: argparse.Namespace) -> None:
    """Runs the command."""
    drafts = pd.concat([pd.read_json(path, lines=True) for path in args.drafts])
    drafts[[*RATINGS]] /= HIGHEST
    test = drafts["source"].map(held_out)
    sampler = Sampler(args.data, drafts[~test])
    learner = Learner(args.base, args.adapter, args.layers)
    step, saved = learner.resume(args.output), time.monotonic()
    while step < args.steps:
        step += 1
        sampler.random.seed(step)
        loss = sum(learner.backward(sampler.pack(learner)) for _ in range(PACKS)) / PACKS
        learner.update(RATE * min(1, step / WARM_UP) * max(0.1, 1 - step / args.steps))
        if step % 10 == 0:
            say(f"step {step:,} of {args.steps:,}: loss {loss:.3f}")
        if step == args.steps or time.monotonic() - saved > SAVE_SECONDS:
            learner.save(args.output, step)
            saved = time.monotonic()
    tested = drafts[test].drop(columns="corrected", errors="ignore")
    for name, rows in (("drafts", tested), ("rated pairs", sampler.test)):
        judged = learner.judge(groups_of(rows))
        for judgement in RATINGS:
            known = [one.targets[judgement] for _, own in groups_of(rows) for one in own]
            found = spearmanr(judged[:, JUDGED.index(judgement)], known)[0]
            print(f"{name}, {judgement}: {found:.3f} of {len(rows):,}")
    print(args.output)


def held_out(source: str) -> bool:
    """Tells whether a source's drafts are kept for the test."""
    return zlib.crc32(source.encode()) % HELD_OUT == 0


def groups_of(rated: pd.DataFrame) -> list[Group]:
    """Returns the rated paraphrases of each source, and corrections; ratings in [0, 1]."""
    high = rated[["meaning", "fluency"]].min(axis=1) >= GOOD / HIGHEST
    names = [*RATINGS, "good"]
    rows = rated.assign(good=high.astype(float))
    found: dict[str, list[Pair]] = {}
    for one in rows.to_dict("records"):
        own = found.setdefault(one["source"], [])
        own.append(Pair(one["paraphrase"], {name: one[name] for name in names}))
        if isinstance(one.get("corrected"), str):
            own.append(Pair(one["corrected"], CORRECTED))
    return [*found.items()]


def group_of(example: Example) -> Group:
    """Returns an example of the pair encoder as a group."""
    found = []
    for one in (example, example.worse):
        if one is not None:
            targets = {name: value for name, value in one.targets.items() if name in JUDGED}
            for task, name, sure in (("same", "meaning", SAME), ("fluent", "fluency", FLUENT)):
                if name not in targets and one.targets.get(task) in sure:
                    targets[name] = sure[int(one.targets[task])]
            found.append(Pair(one.paraphrase, targets))
    return example.source, found


class Sampler:
    """Draws packs from rated drafts, rated pairs, people's ratings, sentences whose acceptability
    is known (CoLAC), and the encoder's examples."""

    def __init__(self, data: Path, drafts: pd.DataFrame):
        texts = [row["texts"] for row in read_json_lines(data / GROUPS, HERE / GROUPS)]
        sets = load_sets(data, texts, load_settings(Config, CONFIG).rated)
        learned = sets.rated["part"] == "encoder"
        self.test = sets.rated[sets.rated["part"] == "test"]
        self.groups = {"drafts": groups_of(drafts), "rated": groups_of(sets.rated[learned])}
        people = pd.read_json(data / "rewriting_bench.dev.jsonl", lines=True)
        people = people[[not held_out(source) for source in people["source"]]]
        self.groups["people"] = [
            (source, [Pair(text, {"human": score / HIGHEST})])
            for source, text, score in people[["source", "paraphrase", "overall"]].to_numpy()
        ]
        judged = pd.read_csv(data / "colac.dev.tsv", sep="\t", quoting=csv.QUOTE_NONE)
        share = judged[["linguist", "crowd"]].mean(axis=1)
        fluency = UNACCEPTABLE + share * (ACCEPTABLE - UNACCEPTABLE)
        self.groups["acceptable"] = [
            (text, [Pair(text, {"fluency": value})])
            for text, value in zip(judged["sentence"], fluency, strict=True)
        ]
        self.random = Random(0)
        self.examples = Examples(sets, self.random)
        del self.examples.kinds["versions"]  # some of these texts are for the test

    def pack(self, learner: Learner) -> list[Group]:
        """Returns groups of at most LONGEST tokens together, drawn by the state of ``random``."""
        found: list[Group] = []
        room = LONGEST
        while True:
            source, own = self._group()
            sizes = [len(learner.ids(in_one_line(prompt(source))))]
            sizes += [len(learner.ids(one.text)) + 1 for one in own]
            if sum(sizes) > room:
                if found:
                    return found
                continue
            found.append((source, own))
            room -= sum(sizes)

    def _group(self) -> Group:
        (kind,) = self.random.choices([*SHARES], [*SHARES.values()])
        if kind == "others":
            return group_of(self.examples.draw()[1])
        source, own = self.random.choice(self.groups[kind])
        return source, self.random.sample(own, min(len(own), MOST[kind]))


class Learner(Adapter):
    """The lower blocks of a base, an adapter, and the head."""

    def __init__(self, base: Path, adapter: Path, layers: int):
        super().__init__(base, adapter, layers)
        self.layers, width = layers, self.model.config.hidden_size
        self.head = torch.nn.Linear(2 * width, len(JUDGED))
        torch.nn.init.zeros_(self.head.weight)
        torch.nn.init.zeros_(self.head.bias)
        self.trained({self.model: 1.0, self.head: HEAD_RATE})

    def logits(self, groups: Sequence[Group]) -> torch.Tensor:
        """Returns the logits of each paraphrase: shape (paraphrases, len(JUDGED))."""
        [end] = self.ids(END)
        pack = Pack.of(
            [
                (
                    self.ids(in_one_line(prompt(source))),
                    [[*self.ids(in_one_line(one.text)), end] for one in own],
                )
                for source, own in groups
            ]
        )
        states = self.states(pack)
        both = [torch.cat([states[b - 1], states[a:b].mean(0)]) for _, a, b in pack.spans]
        return self.head(torch.stack(both))

    def backward(self, groups: Sequence[Group]) -> float:
        """Adds the gradient of a pack and returns its loss."""
        logits, nan = self.logits(groups), float("nan")
        known = [[one.targets.get(n, nan) for n in JUDGED] for _, own in groups for one in own]
        targets = torch.tensor(known)
        rated, sure = ~targets.isnan(), targets.nan_to_num(0.0)
        entropy = binary_cross_entropy_with_logits(logits, sure, reduction="none")
        loss = (entropy * rated * torch.tensor(WEIGHTS)).sum() / len(targets)
        first = 0
        for _, own in groups:
            for column in [JUDGED.index(name) for name in RANKED]:
                y, z = (of[first : first + len(own), column] for of in (targets, logits))
                better = (y[:, None] - y[None]).nan_to_num(0.0)
                margin = softplus(z[None] - z[:, None]) * better * (better > APART)
                loss = loss + 0.5 * margin.sum() / len(own) / len(groups)
            first += len(own)
        (loss / PACKS).backward()
        return float(loss.detach())

    def judge(self, groups: Sequence[Group]) -> np.ndarray:
        """Returns the judgements of each paraphrase of all groups."""
        with torch.no_grad():
            return np.concatenate([self.logits([own]).sigmoid().numpy() for own in groups])

    def save(self, output: Path, step: int) -> None:
        """Writes what training/make_writer.py reads, and the state to go on from."""
        from safetensors.torch import load_file, save_file

        super().save(output, step)
        changes = {n: t.half() for n, t in load_file(output / "adapter_model.safetensors").items()}
        halves = self.head.weight.detach().half().chunk(2, dim=1)
        save_file(changes | {"head": torch.cat(halves)}, output / "adapter_model.safetensors")
        config = json.loads((output / "adapter_config.json").read_text("utf-8"))
        config["layers"] = self.layers
        (output / "adapter_config.json").write_text(json.dumps(config, indent=1), "utf-8")
        bias = [round(value, 6) for value in self.head.bias.tolist()]
        (output / DESCRIPTION).write_text(json.dumps({"bias": bias}) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
