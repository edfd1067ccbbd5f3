"""Is the curriculum worth it? Real pairs through three stages, against training without them.

    python research/benchmarks/experiment.py --data FOLDER --dry-run          the plan, and how long it takes
    python research/benchmarks/experiment.py --data FOLDER --seeds 3
    python research/benchmarks/experiment.py --data FOLDER --small --seeds 1  minutes: does the machinery work

Scores a million real pairs (experiment_data.py), makes one start for all, a model of a BERT that learned
to restore masked sentences, and trains from it, with as many updates and evaluations each, every arm's
learning rate falling to its own end:

    curriculum    stage 1, then 2, then 3, each from the best weights so far
    together      the same pairs, shuffled together
    stage-3       the third stage alone, epoch after epoch
    unfiltered    all pairs that were scored: no cut, no floors

The last weights and the best ones, by the score on one set of validation sources, are compared on the
same test sources with a copy, a noised copy, a machine translation and a person's rewrite; by the tiers
of SPScore-zh, Self-BLEU, entities kept, and with --encoder by an encoder that no training has used.
Splits are by English sentence. Intervals are over seeds and sources. What is finished is not done
again; killed, it goes on where it stood. experiment.yaml has the settings.

  OUTPUT/experiment.md           what is printed; and the outputs of all arms side by side
  OUTPUT/ARM/seed-N/             what training/curriculum.py leaves, without checkpoints; evaluation/
  OUTPUT/start/model             the start, unless --start names another

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

from gaixie.research.benchmarks.experiment_data import write_experiment
from gaixie.research.benchmarks.experiment_plan import (
    ARMS,
    SMALL,
    Experiment,
    settings_of,
    settings_of_start,
)
from gaixie.research.benchmarks.experiment_report import report
from gaixie.training.loop.plots import read_lines
from gaixie.training.settings import Settings
from gaixie.udfs.command_line import make_parser, positive, run_command, say
from gaixie.udfs.metrics import Pairs, load_metric
from gaixie.udfs.metrics.encoder import model_signature
from gaixie.udfs.storage.settings import load_settings

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {
    "OMP_NUM_THREADS": str(os.cpu_count()),
    "MALLOC_MMAP_THRESHOLD_": "33554432",
    "MALLOC_TRIM_THRESHOLD_": "8589934592",
}
"""Threads on every core; and memory of a step is kept for the next, else page faults take their time."""
ROWS = ("noised", "mt", "human")
"""Systems that are columns of test.parquet; the copy is always there."""
JUDGES = (
    *("spscore-meaning", "spscore:tier=paper", "spscore:tier=full", "spscore-meaning:tier=full"),
    *("self-bleu", "bert-ibleu", "similarity"),
)
"""Beside SPScore-zh of tier core, copies, entities kept and length ratio, which are always there."""
WITH_ENCODER = ("bert-ibleu", "similarity")


class ScriptError(RuntimeError):
    """A script that ended badly."""


def main(argv: list[str] | None = None) -> int:
    """Runs the experiment; its exit code."""
    return run_command("experiment", partial(run, _arguments(argv)), ScriptError)


def run(args: argparse.Namespace) -> None:
    """The command: the plan, or everything that is not finished, and the report."""
    assignments = [*(SMALL if args.small else ()), *args.set]
    experiment = load_settings(Experiment, args.config, assignments=assignments)
    root = (args.output or ROOT / f"out/experiment{'-small' if args.small else ''}").resolve()
    start = str(args.start.resolve() if args.start else root / "start/model")
    trainings = {
        (arm, seed): settings_of(experiment, own, seed, root, start, root / arm / f"seed-{seed}")
        for seed in range(1, args.seeds + 1)
        for arm, own in ARMS.items()
    }
    if args.dry_run:
        print(plan(experiment, trainings, root, start))
        return
    judges = usable_judges(args.encoder)
    check_same(root, experiment.identity())
    if not (root / "test.parquet").exists():
        sizes = experiment.tested, experiment.validated, experiment.noise, experiment.limit
        write_experiment(args.data, root, *sizes)
    _score(experiment, root)
    if not Path(start, "config.json").is_file():
        if args.start:
            raise FileNotFoundError(
                f"--start {args.start}: is no model folder, for it has no config.json"
            )
        _make_start(experiment, root, args.bert)
    check_same(root, {"start model": model_signature(start).rpartition("@")[2]})
    given = [part for row in ROWS for part in ("--system", f"{row}={row}")]
    _evaluate(root, root / "baselines", given, judges, args.encoder)
    for (arm, seed), settings in trainings.items():
        folder = Path(settings.output)
        say(f"{arm}, seed {seed}: {folder}")
        _train(settings)
        models = [("best", folder / "model")]
        models += [("last", folder / "last")] if (folder / "last").is_dir() else []
        given = [part for name, model in models for part in ("--model", f"{name}={model}")]
        decoding = map(str, experiment.decoding)
        _evaluate(root, folder, [*given, *decoding], judges, args.encoder)
    text = report(root, [*ARMS], args.seeds, experiment.shown)
    (root / "experiment.md").write_text(text, "utf-8")
    print(text.partition("\n## Outputs")[0])
    print(root / "experiment.md")


def usable_judges(encoder: Path) -> list[str]:
    """JUDGES that can be loaded here; what is left out is said."""
    usable = []
    for spec in JUDGES:
        own = {"model": str(encoder)} if spec in WITH_ENCODER else {}
        try:
            load_metric(spec, **own).sentence_scores(Pairs.of(["改写"], ["改写"]))
        except (OSError, ValueError, ImportError) as error:
            say(f"{spec} is left out: {' '.join(str(error).split())}")
        else:
            usable.append(spec)
    return usable


def check_same(root: Path, own: dict[str, Any]) -> None:
    """Raises ValueError where what is there was made with other settings, or from another start."""
    path = root / "experiment.json"
    known = json.loads(path.read_text("utf-8")) if path.exists() else {}
    for name, value in own.items():
        if known.get(name, value) != value:
            raise ValueError(
                f"{path}: what is there differs in {name}; take that back, or another --output"
            )
    root.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(known | own, ensure_ascii=False, indent=1) + "\n", "utf-8")


def plan(
    experiment: Experiment, trainings: dict[tuple[str, int], Settings], root: Path, start: str
) -> str:
    """What would be trained, and for about how long."""
    made = "is there" if Path(start, "config.json").is_file() else "has to be made"
    made += "" if made == "is there" else f": {experiment.start.updates:,} updates of denoising"
    lines = [f"start of all arms: {start}, {made}"]
    seeds = max(seed for _, seed in trainings)
    for name, arm in ARMS.items():
        settings = trainings[name, 1]
        budgets = [settings.stage(n).max_steps or 0 for n in settings.numbers]
        pairs = sum(budgets) * settings.batch.pairs
        floors = [f"{k} {v:g}" for k, v in experiment.floors.items() if arm.floors]
        lines.append(
            f"{name}: {arm.what}; updates {' + '.join(f'{b:,}' for b in budgets)}, "
            f"{experiment.evaluations} evaluations, {pairs:,} pairs; {', '.join(floors) or 'no floors'}"
        )
    finished = sum(Path(s.output, "model/config.json").is_file() for s in trainings.values())
    left, seconds = len(trainings) - finished, seconds_per_update(root)
    how = "as measured here" if seconds else "a first guess, from experiment.yaml"
    seconds = seconds or experiment.seconds_per_update
    hours = left * experiment.updates * seconds / 3600
    lines.append(
        f"{len(trainings)} trainings ({len(ARMS)} arms, {seeds} seeds), {finished} finished; the other "
        f"{left}: {left * experiment.updates:,} updates, about {hours:.1f} hours at {seconds:.2f} s an "
        f"update, evaluations included ({how}); then generation and judging"
    )
    lines.append(f"beside them: copy, {', '.join(ROWS)}; {experiment.tested} sources a table")
    lines.append(f"judged by: spscore, copies, entities, and what loads of {', '.join(JUDGES)}")
    return "\n".join(lines)


def seconds_per_update(root: Path) -> float | None:
    """Of the trainings that have begun; None before."""
    ends = [log[-1] for path in root.glob("*/seed-*/log.jsonl") if (log := read_lines(path))]
    updates = sum(line["step"] for line in ends)
    return sum(line["seconds"] for line in ends) / updates if updates else None


def _score(experiment: Experiment, root: Path) -> None:
    """The run, where it is not there yet."""
    if (root / "runs/pairs/manifest.json").exists():
        return
    inputs = [{"path": str(root / "pairs" / o), "origin": o} for o in ("parallel", "human")]
    cuts = [
        part
        for o, cut in experiment.cuts.items()
        for part in ("--set", f"cuts.{o}={json.dumps(cut)}")
    ]
    asked = ["--output", str(root), "--run-id", "pairs", "--set", f"inputs={json.dumps(inputs)}"]
    run_script("jobs/score_corpus.py", *asked, *cuts)


def _make_start(experiment: Experiment, root: Path, bert: Path) -> None:
    """OUTPUT/start/model: vocabulary, tokenizer, a model of a BERT, denoising; what is there is kept."""
    own, vocabulary, tokenizer = experiment.start, root / "vocabulary", root / "tokenizer"
    if not (vocabulary / "manifest.json").exists():
        asked = ["--input", str(root / "sentences.parquet"), "--output", str(vocabulary)]
        run_script("jobs/build_vocabulary.py", *asked)
    if not (tokenizer / "tokenizer_config.json").exists():
        asked = ["make", str(vocabulary / "vocabulary.tsv"), "--output", str(tokenizer)]
        asked += ["--words", str(own.words), "--word-characters", "6", "--common-characters"]
        run_script("training/tokenize_text.py", *asked)
    warm = None if own.config else str(root / "warm")
    if warm and not Path(warm, "config.json").is_file():
        if not bert.is_dir():
            run_script("research/make_encoder.py", "--from", "bge-small-zh", "--output", str(bert))
        asked = [str(tokenizer), "--from", str(bert), "--decoder-layers", str(own.decoder_layers)]
        run_script("training/warm_start.py", *asked, "--output", warm)
    _train(settings_of_start(experiment, root, warm))


def _train(settings: Settings) -> None:
    """A training to its end, where it is not there yet; its checkpoints go then."""
    output = Path(settings.output)
    if not (output / "model/config.json").is_file():
        output.mkdir(parents=True, exist_ok=True)
        text = yaml.safe_dump(settings.model_dump(mode="json"), allow_unicode=True)
        (output / "asked.yaml").write_text(text, "utf-8")
        run_script("training/curriculum.py", "--config", str(output / "asked.yaml"))
    shutil.rmtree(output / "checkpoints", ignore_errors=True)


def _evaluate(root: Path, folder: Path, given: list[str], judges: list[str], encoder: Path) -> None:
    """FOLDER/evaluation by all judges, where it is not there yet, or by others."""
    path = folder / "evaluation/evaluation.json"
    if path.exists():
        known = {measure["name"] for measure in json.loads(path.read_text("utf-8"))["measures"]}
        if {*judges} <= known:
            return
    asked = [str(root / "test.parquet"), *given, "--metrics", ",".join(judges)]
    asked += ["--encoder", str(encoder)] if {*judges} & {*WITH_ENCODER} else []
    run_script(
        "training/evaluate.py",
        *(*asked, "--cases", "0", "--output", str(folder / "evaluation")),
    )


def run_script(script: str, *arguments: str) -> None:
    """A script of the repository in a process of its own. Raises ScriptError."""
    line = [sys.executable, script, *arguments]
    done = subprocess.run(line, cwd=ROOT, env=os.environ | ENVIRONMENT)
    if done.returncode:
        raise ScriptError(f"{script} ended with exit code {done.returncode}")


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("experiment.py", __doc__)
    add = parser.add_argument
    add("--data", type=Path, required=True, metavar="FOLDER", help="the shared data")
    add("--seeds", type=positive, default=3, metavar="N", help="of each arm (%(default)s)")
    add(
        "--start", type=Path, metavar="MODEL", help="what all arms begin with; made once without it"
    )
    bert = ROOT / "models/bge-small-zh"
    add(
        "--bert",
        type=Path,
        default=bert,
        metavar="FOLDER",
        help="that a start is made of (%(default)s)",
    )
    encoder = "a sentence encoder that no training used (%(default)s)"
    add("--encoder", type=Path, default=ROOT / "models/e5-small", metavar="FOLDER", help=encoder)
    config = Path(__file__).with_suffix(".yaml")
    add("--config", default=str(config), metavar="YAML", help="(%(default)s)")
    add(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="over the file; KEY.SUB too"
    )
    add("--small", action="store_true", help="a world so small that it takes minutes")
    add("--output", type=Path, metavar="FOLDER", help="(out/experiment)")
    add("--dry-run", action="store_true", help="say what would be done, and how long it takes")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
