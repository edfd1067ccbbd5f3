"""Shows a published run: its manifest, and some of its pairs with their judgements and the reasons.

  python jobs/show_run.py ROOT                          lists the published runs under ROOT
  python jobs/show_run.py ROOT --run-id ID --pairs 10   ten pairs, from the highest score down
  python jobs/show_run.py ROOT/runs/ID                  the same, given its folder
  python jobs/show_run.py ROOT --run-id ID --verify     reads its files again; faults exit with 1
  python jobs/show_run.py ROOT --run-id ID --serve      a page to filter, sort and search it
  python jobs/show_run.py ROOT --release 1.0 --serve    the same page for a release

ROOT is the --output of jobs/score_corpus.py. Each pair is followed by its four judgements, 0 to 1,
the reasons that lower them as far as the metric can name them, and the eight features. This command
does not need Spark.

--serve (gaixie[browse]) shows the page at http://127.0.0.1:8000. It reads the files once, local or
from a store, into a database of about their size in a temporary folder, which is deleted when the
command ends. Ctrl-C ends it. Only this host can connect, unless --host says otherwise.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

import pyarrow as pa
import pyarrow.dataset as ds
from rich.console import Console

from gaixie.jobs.corpus.runs import read_runs
from gaixie.udfs.command_line import UserError, as_user_error, make_parser, positive, run_command
from gaixie.udfs.features import FEATURES
from gaixie.udfs.meaning.explain import Why, explainer
from gaixie.udfs.reports import number, print_table
from gaixie.udfs.spscore import JUDGEMENTS
from gaixie.udfs.storage import manifest as manifests
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import ReleaseManifest, RunManifest
from gaixie.udfs.storage.progress import Progress
from gaixie.udfs.storage.published_files import print_faults, run_faults


def main(argv: list[str] | None = None) -> int:
    parser = make_parser("show_run.py", __doc__)
    add = parser.add_argument
    add("root", metavar="ROOT", help="a local path or a URI; or a run's folder")
    add("--run-id", metavar="ID", help="run to show (default: list the runs)")
    add("--pairs", metavar="N", type=positive, default=10, help="pairs to print (%(default)s)")
    add("--verify", action="store_true", help="check that its files are as published")
    add("--serve", action="store_true", help="show it in a browser")
    add("--release", metavar="VERSION", help="with --serve: a release instead of a run")
    add("--host", default="127.0.0.1", help="with --serve (%(default)s)")
    add("--port", type=int, default=8000, help="with --serve (%(default)s; 0: any free port)")
    args = parser.parse_args(argv)
    if args.release and (args.run_id or not args.serve):
        raise UserError("--release: expected --serve, and no --run-id")
    with as_user_error(OSError, ValueError):
        folder = args.root
        if name := args.run_id or args.release:
            kind = "runs" if args.run_id else "releases"
            folder = storage.join(args.root, kind, manifests.check_run_id(name))
        elif not storage.exists(storage.join(folder, manifests.MANIFEST)):
            return list_runs(args.root)
        manifest = manifests.read_manifest(folder)
        if args.serve:
            return browse(folder, manifest, args.host, args.port)
        if isinstance(manifest, ReleaseManifest):
            raise UserError(f"{folder}: a release needs --serve")
        return verify(folder, manifest) if args.verify else show(folder, manifest, args.pairs)


def list_runs(root: str) -> int:
    published = read_runs(root)
    if not published:
        raise UserError(f"{root}: no published run")
    rows = [[m.run_id, m.created, *(f"{count:,}" for _, count in m.total)] for m in published]
    print_table(["run", "created", "rows read", "scored", "quarantined", "duplicates"], rows)
    return 0


def show(folder: str, manifest: RunManifest, count: int) -> int:
    """Prints some pairs of a run. count: their number."""
    console = Console(width=None if sys.stdout.isatty() else 110, highlight=False)
    check_files(folder, manifest)
    told = " + ".join(f"{count:,} {name}" for name, count in [*manifest.total][1:])
    console.print(
        f"{manifest.run_id}, {manifest.created}: {manifest.total.read:,} rows read = {told}"
    )
    console.print(manifest.signature, soft_wrap=True)
    try:
        show_pairs(console, folder, count, explainer(manifest.signature, manifest.segmenter))
    except (OSError, pa.ArrowException):  # these name no file
        check_files(folder, manifest, storage.sha256)
        raise
    if storage.exists(storage.join(folder, "report.html")):
        console.print(f"report: {folder}/report.html")
    return 0


def check_files(
    folder: str, manifest: RunManifest, digest: Callable[[str], str] | None = None
) -> None:
    """Raises UserError that names a file of a run that has changed since it was published."""
    if faults := run_faults(folder, manifest, digest):
        raise UserError(storage.join(folder, faults[0]))


def show_pairs(console: Console, folder: str, count: int, why: Why) -> None:
    """Prints pairs at even steps of the score, the lowest and the highest among them.

    Reading a damaged page raises an error if it has a checksum.
    """
    system, path = storage.arrow_filesystem(storage.join(folder, "scored"))
    options = ds.ParquetFragmentScanOptions(page_checksum_verification=True)
    form = ds.ParquetFileFormat(default_fragment_scan_options=options)
    pairs = ds.dataset(path, filesystem=system, format=form, partitioning="hive")
    order = [("spscore", "descending"), ("pair_id", "ascending")]
    scores = pairs.to_table(columns=["pair_id", "spscore"]).sort_by(order)
    last = len(scores) - 1
    steps = {round(k * last / max(count - 1, 1)) for k in range(count)} if last >= 0 else set()
    chosen = scores["pair_id"].take(sorted(steps))
    for row in pairs.to_table(filter=ds.field("pair_id").isin(chosen)).sort_by(order).to_pylist():
        console.print(f"\n[bold]{row['spscore']:.3f}[/bold]  stage {row['stage']}  {row['origin']}")
        for side in ("source", "paraphrase"):
            console.print(f"  {side:<10}  {row[side]}", markup=False, soft_wrap=True)
        console.print(f"  {_values(row, JUDGEMENTS, 2)}")
        for reason in why(row["source"], row["paraphrase"], row):
            console.print(f"  - {reason}", markup=False, soft_wrap=True)
        console.print(f"  {_values(row, FEATURES, 3)}", style="dim")
    console.print()


def _values(row: dict[str, float], names: Iterable[str], digits: int) -> str:
    """Formats names with their values. Runs of version 0.1 have no judgements."""
    return "  ".join(f"{name} {number(row.get(name), digits)}" for name in names)


def browse(folder: str, manifest: RunManifest | ReleaseManifest, host: str, port: int) -> int:
    """Serves the page for a run or release until it is stopped."""
    from gaixie.service.browsing import BrowsingPart, Pairs  # needs the extra browse
    from gaixie.service.listening import make_service, serve
    from gaixie.service.settings import ServiceSettings, read_tokens

    segmenter, total = "jieba", 0
    if isinstance(manifest, RunManifest):
        segmenter, total = manifest.segmenter, manifest.total.scored
        check_files(folder, manifest)
    else:
        total = manifest.pairs
    settings = ServiceSettings(tokens=read_tokens())
    with Progress("reading", total, "pairs") as shown:
        pairs = Pairs(folder, manifest, shown.add)
    try:
        part = BrowsingPart(pairs, manifest, explainer(manifest.signature, segmenter), settings)
        application = make_service("full", settings, part)
        return serve(lambda: application, host, port, tokens=settings.tokens)
    finally:
        pairs.close()


def verify(folder: str, manifest: RunManifest) -> int:
    """Prints each fault of the run's files, one a line; the line begins with the file."""
    faults = run_faults(folder, manifest, storage.sha256)
    count = sum(map(len, manifest.files.values()))
    return print_faults(f"run {manifest.run_id}: {count} files", faults)


if __name__ == "__main__":
    sys.exit(run_command("show_run", main, "nothing was published", mistakes=()))
