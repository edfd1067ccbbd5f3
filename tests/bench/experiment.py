"""Is the curriculum worth it? Real pairs through three stages, against training without stages.

    python tests/bench/experiment.py --data FOLDER                       three hours on two cores

Scores over a million real pairs (experiment_data.py), builds a vocabulary and a tokenizer from them,
trains the model of experiment.yaml three times, always with as many optimiser steps as the first takes,

    curriculum    stage 1, then 2, then 3, each until the controller ends it, its pairs once at most
    together      all three stages shuffled together
    stage-3       the third stage alone, epoch after epoch

and evaluates them beside copies, machine translations and human rewrites on three tables of sources
that were kept apart (the paper's Table 8). Killed, it goes on where it stood. Writes

  OUTPUT/experiment.md               what is printed: speeds, means with intervals
  OUTPUT/ARM/                        what training/curriculum.py leaves, its picture too
  OUTPUT/evaluation-TABLE/           what training/evaluate.py leaves
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import torch
import yaml
from bench_stage_data import bench_stage_data
from experiment_data import write_experiment
from transformers import AutoModelForSeq2SeqLM

from gaixie.training.loop.plots import read_lines

ROOT = Path(__file__).parents[2]
ARMS = {"curriculum": [[1], [2], [3]], "together": [[1, 2, 3]], "stage-3": [[3]]}
TABLES = {"wmt": "mt", "mlqe": "human", "idioms": "human"}
"""Each test table's column beside the source."""
EVALUATED = 400
"""Sources of each table."""
ENCODER = ROOT / "models/e5-small"
"""What jobs/make_encoder.py makes; without it the metrics that need one are left out."""
ENVIRONMENT = {
    "OMP_NUM_THREADS": str(os.cpu_count()),
    "MALLOC_MMAP_THRESHOLD_": "33554432",
    "MALLOC_TRIM_THRESHOLD_": "8589934592",
}
"""Threads on every core; and memory of a step is kept for the next, else page faults take their time."""
CUTS = "cuts.parallel={quantiles: [0.476, 0.65, 0.825]}"
"""As many of the parallel pairs as the paper keeps, in three stages of the same size."""


def main() -> None:
    args = _arguments()
    output = args.output.resolve()
    if not (output / "test").exists():
        write_experiment(args.data, output)
    _prepare(output)
    steps = None
    for arm, stages in ARMS.items():
        own = [f"curriculum={stages}", f"output={output / arm}"]
        if steps is not None:  # no more and no fewer than the curriculum took
            own += [f"controller.max_steps={steps}", "controller.patience=1000000"]
        _train(output, own)
        steps = steps or read_lines(output / arm / "log.jsonl")[-1]["step"]
    for table, column in TABLES.items():
        _evaluate(output, table, column)
    report = _report(output)
    (output / "experiment.md").write_text(report, "utf-8")
    print(report)


def _prepare(output: Path) -> None:
    """The run, the vocabulary and the tokenizer, where they are not there yet."""
    inputs = [{"path": str(output / "pairs" / o), "origin": o} for o in ("parallel", "human")]
    if not (output / "runs/pairs/manifest.json").exists():
        asked = ["--output", str(output), "--run-id", "pairs", "--set", f"inputs={inputs}"]
        _python("jobs/score_corpus.py", *asked, "--set", CUTS)
    vocabulary = output / "vocabulary"
    if not (vocabulary / "manifest.json").exists():
        asked = ["--input", str(output / "sentences.parquet"), "--output", str(vocabulary)]
        _python("jobs/build_vocabulary.py", *asked)
    if not (output / "tokenizer").exists():
        asked = ["make", str(vocabulary / "vocabulary.tsv"), "--output", str(output / "tokenizer")]
        _python("training/tokenize_text.py", *asked, "--words", "4000", "--common-characters")


def _train(output: Path, assignments: list[str]) -> None:
    config = str(Path(__file__).with_suffix(".yaml"))
    paths = [f"data.uri={output / 'runs/pairs'}", f"tokenizer={output / 'tokenizer'}"]
    sets = [part for one in [*paths, *assignments] for part in ("--set", one)]
    _python("training/curriculum.py", "--config", config, *sets)


def _evaluate(output: Path, table: str, column: str) -> None:
    if (output / f"evaluation-{table}/scores.parquet").exists():
        return
    asked = [str(output / f"test/{table}.parquet"), "--limit", str(EVALUATED)]
    asked += ["--system", f"{column}={column}"]
    for arm in ARMS:
        asked += ["--model", f"{arm}={output / arm / 'model'}"]
    if ENCODER.exists():
        asked += ["--encoder", str(ENCODER)]
    _python("training/evaluate.py", *asked, "--output", str(output / f"evaluation-{table}"))


def _report(output: Path) -> str:
    """Rates are medians over the intervals of log.jsonl. GFLOP/s: of the model, 6 for a weight that a
    token passes, forward and back; a token of source or paraphrase passes about half of the weights.
    MFU: of what a product of two large matrices reaches here.
    """
    peak = _peak()
    lines = ["## Training", ""]
    lines += [
        "| | weights | steps | pairs | tokens/s | GFLOP/s | MFU | waits for data | stages ended |"
    ]
    lines += ["|---|---|---|---|---|---|---|---|---|"]
    fastest = 0.0
    for arm in ARMS:
        log, history = (read_lines(output / arm / f"{n}.jsonl") for n in ("log", "history"))
        settings = yaml.safe_load((output / arm / "settings.yaml").read_text("utf-8"))
        pairs = log[-1]["step"] * settings["batch"]["pairs"]
        model = AutoModelForSeq2SeqLM.from_pretrained(output / arm / "model")
        weights = model.num_parameters()
        rate = median(line["tokens_per_second"] for line in log)
        waiting = median(line["waiting"] for line in log)
        ends = [line for line in history if line["action"] in ("next stage", "finish")]
        how = ("fitted" if "is fitted" in line["reason"] else "budget" for line in ends)
        ends = [f"{line['step']:,} ({why})" for line, why in zip(ends, how, strict=True)]
        fastest = max(fastest, rate)
        flops = 3 * weights * rate
        lines.append(
            f"| {arm} | {weights:,} | {log[-1]['step']:,} | {pairs:,} | {rate:,.0f} | "
            f"{flops / 1e9:,.0f} | {flops / peak:.0%} | {waiting:.1%} | at step {', '.join(ends)} |"
        )
    lines += ["", f"A product of two matrices of 2048² in float32: {peak / 1e9:,.0f} GFLOP/s."]
    alone = bench_stage_data(str(output / "runs/pairs"), str(output / "tokenizer"))
    rate = alone["tokens_per_s_all_cores"]
    times = f"{rate / fastest:.0f} times what the fastest of these models takes"
    lines += ["", f"The loader alone, on all cores: {rate:,.0f} tokens/s, {times}."]
    for table in TABLES:
        text = (output / f"evaluation-{table}/evaluation.md").read_text("utf-8")
        _, tables = text.split("## SPScore-zh")
        lines += ["", f"## {table}", tables.partition("\nRows with")[0].rstrip()]
    return "\n".join(lines) + "\n"


def _peak(size: int = 2048, times: int = 30) -> float:
    """Operations a second of the fastest of so many products, on all cores."""
    threads = torch.get_num_threads()
    torch.set_num_threads(os.cpu_count() or 1)
    a, b = torch.rand(2, size, size)
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        torch.mm(a, b)
        seconds.append(time.perf_counter() - began)
    torch.set_num_threads(threads)
    return 2 * size**3 / min(seconds)


def _python(*command: str) -> None:
    done = subprocess.run([sys.executable, *command], cwd=ROOT, env=os.environ | ENVIRONMENT)
    if done.returncode:
        sys.exit(f"experiment: {command[0]} ended with exit code {done.returncode}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the shared data")
    parser.add_argument("--output", type=Path, default=ROOT / "out/experiment")
    return parser.parse_args()


if __name__ == "__main__":
    main()
