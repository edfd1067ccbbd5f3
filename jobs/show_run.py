"""Shows a published run: what its manifest says, and some of its pairs: how they are judged, and why.

  python jobs/show_run.py ROOT                          the runs that are published under ROOT
  python jobs/show_run.py ROOT --run-id ID --pairs 10   ten pairs, from the lowest score up

ROOT is the --output of jobs/score_corpus.py. Under each pair stand its four judgements, 0 to 1, then
what pulls them down as far as the metric can name it, then the eight features. Where the pairs carry
people's ratings (a column rated), the last line says how score and stages follow them. Needs no Spark.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable

import pandas as pd
import pyarrow.dataset as ds
from pyarrow import fs
from rich.console import Console
from rich.table import Table

from gaixie.jobs.errors import JobError, run
from gaixie.udfs.features import FEATURES
from gaixie.udfs.io import storage
from gaixie.udfs.meaning.explain import explain
from gaixie.udfs.meaning.extract import Resources
from gaixie.udfs.spscore import JUDGEMENTS
from gaixie.udfs.text.segmenters import load_segmenter


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
    except (OSError, ValueError) as error:
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
    show_pairs(console, system, folder, args.pairs, explainer(manifest))
    show_ratings(console, system, folder)
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


Why = Callable[[str, str, dict], list[str]]
"""(source, paraphrase, row) -> what pulls the pair's low judgements down."""


def explainer(manifest: dict) -> Why:
    """What says why a pair is judged as it is, where the run's tier can."""
    if not re.search(r"\|tier:(core|full)\b", manifest["signature"]):
        return lambda source, paraphrase, row: []
    segmenter, resources = load_segmenter(manifest["settings"]["segmenter"]), Resources.load()
    return lambda source, paraphrase, row: explain(source, paraphrase, segmenter, resources, row)


def show_pairs(
    console: Console,
    system: fs.FileSystem,
    folder: str,
    count: int,
    why: Why,
) -> None:
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
            + (f"  rated {row['rated']} of 5" if row.get("rated") else "")
        )
        for side in ("source", "paraphrase"):
            console.print(f"  {side:<10}  {row[side]}", markup=False, soft_wrap=True)
        console.print(f"  {_values(row, JUDGEMENTS, '.2f')}")
        for reason in why(row["source"], row["paraphrase"], row):
            console.print(f"  - {reason}", markup=False, soft_wrap=True)
        console.print(f"  {_values(row, FEATURES, '.3g')}", style="dim")
    console.print()


def show_ratings(console: Console, system: fs.FileSystem, folder: str) -> None:
    """One line, where the run's pairs carry ratings: their mean by stage, and Spearman with the score."""
    pairs = ds.dataset(f"{folder}/scored", filesystem=system, format="parquet", partitioning="hive")
    if "rated" not in pairs.schema.names:
        return
    table = pairs.to_table(columns=["rated", "spscore", "stage"]).to_pandas()
    table["rated"] = pd.to_numeric(table["rated"], errors="coerce")
    table = table.dropna()
    if len(table) < 2:
        return
    means = ", ".join(f"{mean:.2f}" for mean in table.groupby("stage")["rated"].mean())
    rho = table["rated"].corr(table["spscore"], "spearman")
    stages = ", ".join(map(str, sorted(set(table["stage"]))))
    console.print(
        f"rated, on average, in stages {stages}: {means}; Spearman with spscore: {rho:.2f}"
    )


def _values(row: dict, names: Iterable[str], form: str) -> str:
    """Names with their values; a run of version 0.1 has no judgements."""
    found = {name: row.get(name) for name in names}
    missing = [name for name, value in found.items() if value is None or value != value]
    return "  ".join(
        f"{name} –" if name in missing else f"{name} {value:{form}}"
        for name, value in found.items()
    )


if __name__ == "__main__":
    sys.exit(run("show_run", main))
