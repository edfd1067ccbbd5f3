"""Compares metrics by their agreement with people, on data sets with human scores.

  python research/compare_metrics.py --data FOLDER --output comparison/
  python research/compare_metrics.py --data FOLDER --output comparison/ --sets STS-B --limit 1000

conf/metrics.yaml names the metrics and the sets. Writes

  OUTPUT/comparison.md      tables, published figures beside ours, the attribution of ParaScore
  OUTPUT/comparison.json    the same figures

Exit codes: 0 done, 2 user error (one line says what).
"""

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

from gaixie.research.comparison.compare import compare, score
from gaixie.research.comparison.datasets import Config, read_data_set
from gaixie.udfs.command_line import in_words, make_parser, run_command
from gaixie.udfs.metrics import Metric, Pairs, load_metric
from gaixie.udfs.reports import write_report
from gaixie.udfs.storage.settings import load_settings

SETTINGS = Path(__file__).parents[1] / "conf/metrics.yaml"
TEMPLATE = Path(__file__).parent / "comparison/comparison.md.j2"


def main(argv: list[str] | None = None) -> int:
    """Runs the script and returns its exit code."""
    parser = make_parser("compare_metrics.py", __doc__)
    add = parser.add_argument
    add("--config", type=Path, default=SETTINGS, metavar="YAML")
    add("--data", type=Path, required=True, metavar="FOLDER", help="of the sets")
    add("--output", type=Path, required=True, metavar="FOLDER")
    add("--sets", metavar="NAMES", help="only these, separated by commas")
    add("--metrics", metavar="NAMES", help="instead of those of the settings")
    add("--encoder", metavar="MODEL", help="of the embedding metrics")
    add("--limit", type=int, metavar="N", help="rows of a set; 0 for all")
    return run_command("compare_metrics", partial(run, parser.parse_args(argv)))


def run(args: argparse.Namespace) -> None:
    """Reads the sets, scores them with every metric, and writes the comparison."""
    config = _config(args)
    for spec in {spec for specs in config.metrics.values() for spec in specs}:
        metric = load_metric(spec, model=config.encoder, vectors=config.word_vectors)
        if args.metrics:  # those of the settings are left out if they cannot score
            _try(spec, metric, config)
    tables = []
    for one in config.data_sets:
        limit = next(x for x in (args.limit, one.limit, config.limit) if x is not None)
        tables.append(read_data_set(one, args.data, limit))
    data_sets = []
    for data_set, table in zip(config.data_sets, tables, strict=True):
        data_sets += compare(data_set, score(data_set, table, config, args.data), config)
    result = config.model_dump(include={"samples", "tune"}) | {"data_sets": data_sets}
    signatures = sorted({s for compared in data_sets for s in compared["signatures"].values()})
    write_report(TEMPLATE, args.output, result, signatures=signatures)
    print(args.output / "comparison.md")


def _try(spec: str, metric: Metric, config: Config) -> None:
    """Raises ValueError if a metric cannot score a pair, or any of the sets."""
    if metric.needs_reference and not any(one.reference for one in config.data_sets):
        raise ValueError(f"--metrics {spec}: no set has a reference")
    try:
        metric.sentence_scores(Pairs.of(*[["今天的天气很好。"]] * 3))
    except (ValueError, OSError, ImportError) as error:
        raise ValueError(f"--metrics {spec}: {in_words(error)}") from error


def _config(args: argparse.Namespace) -> Config:
    """Returns the settings of the file, overridden by the command line."""
    config = load_settings(Config, args.config)
    changes: dict[str, Any] = {"encoder": args.encoder} if args.encoder else {}
    if args.metrics:
        changes["metrics"] = dict.fromkeys(config.metrics, args.metrics.split(","))
    if args.sets:
        known = {data_set.name: data_set for data_set in config.data_sets}
        for name in args.sets.split(","):
            if name not in known:
                raise ValueError(f"--sets {name}: {args.config} has {', '.join(known)}")
        changes["data_sets"] = [known[name] for name in args.sets.split(",")]
    return config.model_copy(update=changes)


if __name__ == "__main__":
    sys.exit(main())
