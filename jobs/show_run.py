"""Shows a published run: what its manifest says, and some of its pairs with their features.

  python jobs/show_run.py ROOT                          the runs that are published under ROOT
  python jobs/show_run.py ROOT --run-id ID --pairs 10   ten pairs, from the lowest score up

ROOT is the --output of jobs/score_corpus.py. Needs no Spark.
"""

from __future__ import annotations

import argparse
import json
import sys

import pyarrow.dataset as ds
from pyarrow import fs
from rich.console import Console
from rich.table import Table

from jobs.common.errors import JobError, run
from udfs import storage
from udfs.features import FEATURES


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("root", metavar="ROOT", help="a local path or a URI")
    parser.add_argument("--run-id", metavar="ID", help="by default: list the runs")
    parser.add_argument("--pairs", metavar="N", type=int, default=10)
    args = parser.parse_args(argv)
    try:
        return show(args)
    except OSError as error:
        raise JobError(str(error)) from error


def show(args: argparse.Namespace) -> int:
    files, root = storage.filesystem(args.root)
    system = fs.PyFileSystem(fs.FSSpecHandler(files))
    console = Console(width=None if sys.stdout.isatty() else 110, highlight=False)
    if args.run_id is None:
        list_runs(console, system, root)
        return 0
    folder = f"{root}/runs/{args.run_id}"
    manifest = read_manifest(system, folder)
    console.print(f"{manifest['run_id']}, {manifest['created']}, {manifest['signature']}")
    show_pairs(console, system, folder, args.pairs)
    if system.get_file_info(f"{folder}/report.html").is_file:
        console.print(f"report: {args.root}/runs/{args.run_id}/report.html")
    return 0


def list_runs(console: Console, system: fs.FileSystem, root: str) -> None:
    found = system.get_file_info(fs.FileSelector(f"{root}/runs", allow_not_found=True))
    table = Table("run", "created", "rows read", "scored", "quarantined", "duplicates")
    for info in sorted(found, key=lambda info: info.path):
        if not system.get_file_info(f"{info.path}/manifest.json").is_file:
            continue  # not published: it does not exist for readers
        manifest = read_manifest(system, info.path)
        sums = {
            key: sum(counts[key] for counts in manifest["rows"].values())
            for key in ("read", "scored", "quarantined", "duplicates")
        }
        table.add_row(
            manifest["run_id"], manifest["created"], *[f"{count:,}" for count in sums.values()]
        )
    if not table.row_count:
        raise JobError(f"{root}: no published run")
    console.print(table)


def read_manifest(system: fs.FileSystem, folder: str) -> dict:
    """The manifest of a run; JobError where there is none: the run is not published."""
    path = f"{folder}/manifest.json"
    if not system.get_file_info(path).is_file:
        raise JobError(f"{path}: no such file: the run is not published")
    with system.open_input_stream(path) as stream:
        return json.loads(stream.read())


def show_pairs(console: Console, system: fs.FileSystem, folder: str, count: int) -> None:
    """Prints pairs at even steps of the score, the lowest and the highest among them."""
    pairs = ds.dataset(f"{folder}/scored", filesystem=system, format="parquet", partitioning="hive")
    scores = pairs.to_table(columns=["pair_id", "spscore"]).sort_by(
        [("spscore", "ascending"), ("pair_id", "ascending")]
    )
    last = len(scores) - 1
    places = (
        sorted({round(k * last / max(count - 1, 1)) for k in range(count)}) if last >= 0 else []
    )
    chosen = scores["pair_id"].take(places)
    rows = pairs.to_table(filter=ds.field("pair_id").isin(chosen)).sort_by("spscore").to_pylist()
    for row in rows:
        console.print(
            f"\n[bold]{row['spscore']:.3f}[/bold]  stage {row['stage']}  {row['origin']}"
            + (f"  annotated {row['score']} of 5" if row.get("score") else "")
        )
        for side in ("source", "paraphrase"):
            console.print(f"  {side:<10}  {row[side]}", markup=False, soft_wrap=True)
        values = [
            f"{f} {'–' if row[f] is None or row[f] != row[f] else f'{row[f]:.3g}'}"
            for f in FEATURES
        ]
        console.print(f"  {'  '.join(values)}", style="dim")
    console.print()


if __name__ == "__main__":
    sys.exit(run("show_run", main))
