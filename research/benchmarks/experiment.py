"""Tests whether the curriculum helps: trains on real pairs in three stages, and without stages.

    python research/benchmarks/experiment.py --data FOLDER --dry-run     the plan
    python research/benchmarks/experiment.py --data FOLDER --seeds 3
    python research/benchmarks/experiment.py --data FOLDER --seeds 1 --output out/small \
        --config research/benchmarks/experiment_small.yaml                      a quick check

Scores a million real pairs (experiment_data.py). All arms start from one model, which learned to
restore masked sentences (make paraphraser leaves one). They have equally many updates and
evaluations, and the learning rate falls until the end of each:

    curriculum    stage 1, then 2, then 3, each from the best weights so far
    together      the same pairs, shuffled together
    stage-3       only the third stage, epoch after epoch
    unfiltered    all scored pairs: no cut, no floors

An arm's best weights, by the score on one set of validation sources, are compared on the same test
sources with a copy, a noised copy, a machine translation and a person's rewrite. The measures are
the tiers of SPScore-zh, Self-BLEU, entities kept and, with --encoder, an encoder that no training
used. Splits are by English sentence. Intervals are over seeds and sources. If the script is killed,
the same call resumes. experiment.yaml has the settings.

  OUTPUT/experiment.md      the printed report, with the outputs of all arms side by side
  OUTPUT/ARM/seed-N/        the output of training/curriculum.py without checkpoints; evaluation/

Exit codes: 0 done, 2 something to fix (one line says what).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, model_validator

from gaixie.research.benchmarks.experiment_data import write_experiment
from gaixie.research.benchmarks.experiment_report import report
from gaixie.training.settings import Settings
from gaixie.udfs.command_line import make_parser, positive, run_command, say
from gaixie.udfs.metrics.encoder import model_signature
from gaixie.udfs.storage.settings import Strict, load_settings

ROOT = Path(__file__).resolve().parents[2]
ARMS = {
    "curriculum": [[1], [2], [3]],
    "together": [[1, 2, 3]],
    "stage-3": [[3]],
    "unfiltered": [[0, 1, 2, 3]],
}
"""Stages of the data, by stage of training. 0 is below the cut; an arm with it has no floors."""
ENVIRONMENT = {
    "OMP_NUM_THREADS": str(os.cpu_count()),
    "MALLOC_MMAP_THRESHOLD_": "33554432",
    "MALLOC_TRIM_THRESHOLD_": "8589934592",
}
"""Threads on every core; malloc keeps a step's memory for the next, which saves page faults."""
ROWS = ("noised", "mt", "human")
"""Systems that are columns of test.parquet; the copy is always a system too."""
WITH_ENCODER = ("bert-ibleu", "similarity")
"""Further judges if an encoder is given."""
JUDGES = (
    *("spscore-meaning", "spscore:tier=paper", "spscore:tier=full", "spscore-meaning:tier=full"),
    "self-bleu",
)
"""Every report also has SPScore-zh of tier core, copies, entities kept and length ratio."""


class ScriptError(RuntimeError):
    """Raised if a script fails."""


class Experiment(Strict):
    """The settings of experiment.yaml, which explains them."""

    training: dict[str, Any]
    floors: dict[str, float]
    stages: list[int] = Field(min_length=3, max_length=3)
    evaluate_every: int = Field(ge=1)
    cuts: dict[str, Any]
    tested: int = Field(ge=1)
    validated: int = Field(ge=1)
    noise: float = Field(gt=0, lt=1)
    limit: int | None = Field(default=None, ge=1)
    decoding: list[str | int | float]
    shown: int = Field(ge=1)

    @model_validator(mode="after")
    def _divides(self) -> Experiment:
        if any(updates % self.evaluate_every or not updates for updates in self.stages):
            raise ValueError("stages: expected multiples of evaluate_every")
        return self

    def training_of(self, arm: str, seed: int, root: Path, start: str) -> Settings:
        """Returns the settings of one training of an arm in the experiment's folder.

        All arms are evaluated on the same sources. Every evaluation counts, and only the budget
        ends a stage.
        """
        budgets = self.stages if len(ARMS[arm]) > 1 else [sum(self.stages)]
        sources, every = str(root / "validation.parquet"), self.evaluate_every
        floors = {} if 0 in ARMS[arm][0] else self.floors
        own = {
            "data": self.training["data"] | {"uri": str(root / "runs/pairs")} | floors,
            "tokenizer": start,
            "model": {"pretrained": start},
            "output": str(root / arm / f"seed-{seed}"),
            "seed": seed,
            "curriculum": ARMS[arm],
            "stages": {number: {"max_steps": steps} for number, steps in enumerate(budgets, 1)},
            "controller": {"accuracy": 0.0, "patience": sum(self.stages)},
            "evaluation": self.training["evaluation"] | {"steps": every, "sources": sources},
            "checkpoints": {"steps": every, "keep": 1},
            "tracking": None,
        }
        return Settings.model_validate(self.training | own)


def main(argv: list[str] | None = None) -> int:
    """Runs the experiment and returns its exit code."""
    return run_command("experiment", partial(run, _arguments(argv)), ScriptError)


def run(args: argparse.Namespace) -> None:
    """Prints the plan, or does everything that is not finished and writes the report."""
    own = load_settings(Experiment, args.config, assignments=args.set)
    root, start = args.output.resolve(), str(args.start.resolve())
    if not (args.start / "config.json").is_file():
        raise FileNotFoundError(f"--start {start}: has no config.json, so it is no model")
    seeds = range(1, args.seeds + 1)
    trainings = [own.training_of(arm, seed, root, start) for seed in seeds for arm in ARMS]
    if args.dry_run:
        for settings in trainings:
            done = (Path(settings.output) / "model/config.json").is_file()
            print(f"{settings.output}: {own.stages}{', finished' if done else ''}")
        return
    judges = [*JUDGES, *(WITH_ENCODER if args.encoder else ())]
    check_same(root, own.model_dump(mode="json", exclude={"shown"}))
    if not (root / "test.parquet").exists():
        write_experiment(args.data, root, own.tested, own.validated, own.noise, own.limit)
    _score(own, root)
    check_same(root, {"start model": model_signature(start).rpartition("@")[2]})
    given = [part for row in ROWS for part in ("--system", f"{row}={row}")]
    _evaluate(root, root / "baselines", given, judges, args.encoder)
    for settings in trainings:
        say(settings.output)
        _train(settings)
        folder = Path(settings.output)
        given = ["--model", f"best={folder / 'model'}", *map(str, own.decoding)]
        _evaluate(root, folder, given, judges, args.encoder)
    text = report(root, [*ARMS], args.seeds, own.shown)
    (root / "experiment.md").write_text(text, "utf-8")
    print(text.partition("\n## Outputs")[0])
    print(root / "experiment.md")


def check_same(root: Path, own: dict[str, Any]) -> None:
    """Raises ValueError if the folder was made with other settings or from another start."""
    path = root / "experiment.json"
    known = json.loads(path.read_text("utf-8")) if path.exists() else {}
    for name, value in own.items():
        if known.get(name, value) != value:
            asked = "take that back, or another --output"
            raise ValueError(f"{path}: what is there differs in {name}; {asked}")
    root.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(known | own, ensure_ascii=False, indent=1) + "\n", "utf-8")


def _score(own: Experiment, root: Path) -> None:
    if (root / "runs/pairs/manifest.json").exists():
        return
    inputs = [{"path": str(root / "pairs" / o), "origin": o} for o in ("parallel", "human")]
    asked = ["--output", str(root), "--run-id", "pairs", "--set", f"inputs={json.dumps(inputs)}"]
    for origin, cut in own.cuts.items():
        asked += ["--set", f"cuts.{origin}={json.dumps(cut)}"]
    run_script("jobs/score_corpus.py", *asked)


def _train(settings: Settings) -> None:
    """Finishes a training, unless it is finished, and deletes its checkpoints."""
    output = Path(settings.output)
    if not (output / "model/config.json").is_file():
        output.mkdir(parents=True, exist_ok=True)
        text = yaml.safe_dump(settings.model_dump(mode="json"), allow_unicode=True)
        (output / "asked.yaml").write_text(text, "utf-8")
        run_script("training/curriculum.py", "--config", str(output / "asked.yaml"))
    shutil.rmtree(output / "checkpoints", ignore_errors=True)


def _evaluate(
    root: Path, folder: Path, given: list[str], judges: list[str], encoder: Path | None
) -> None:
    """Writes FOLDER/evaluation, unless it exists."""
    path = folder / "evaluation/evaluation.json"
    if path.exists():
        return
    asked = [str(root / "test.parquet"), *given, "--metrics", ",".join(judges)]
    asked += ["--encoder", str(encoder)] if encoder else []
    run_script("training/evaluate.py", *asked, "--cases", "0", "--output", str(path.parent))


def run_script(script: str, *arguments: str) -> None:
    """Runs a script of the repository in its own process. Raises ScriptError."""
    line = [sys.executable, script, *arguments]
    if code := subprocess.run(line, cwd=ROOT, env=os.environ | ENVIRONMENT).returncode:
        raise ScriptError(f"{script} ended with exit code {code}")


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("experiment.py", __doc__)
    add = parser.add_argument
    add("--data", type=Path, required=True, metavar="FOLDER", help="the shared data")
    add("--seeds", type=positive, default=3, metavar="N", help="of each arm (%(default)s)")
    start = ROOT / "out/paraphraser/denoise/model"
    add("--start", type=Path, default=start, metavar="MODEL", help="of all arms (%(default)s)")
    add("--encoder", type=Path, metavar="FOLDER", help="that no training used")
    config = Path(__file__).with_suffix(".yaml")
    add("--config", type=Path, default=config, metavar="YAML", help="(%(default)s)")
    over = "over the file; KEY.SUB too"
    add("--set", action="append", default=[], metavar="KEY=VALUE", help=over)
    output = ROOT / "out/experiment"
    add("--output", type=Path, default=output, metavar="FOLDER", help="(%(default)s)")
    add("--dry-run", action="store_true", help="say what would be trained")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
