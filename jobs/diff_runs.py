"""Compares two runs: settings, rows, and the population stability index by origin.

  python jobs/diff_runs.py out/runs/monday out/runs/tuesday
  gaixie diff s3a://bucket/gaixie/runs/20261123 s3a://bucket/gaixie/runs/20261124

Reads only their manifests. An index above its limit is marked: the shift is larger than chance
explains. Scores and stages are comparable only under the same signature. Exit codes: 0 done,
2 user error.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from gaixie.jobs.errors import JobError
from gaixie.jobs.scoring.drift import compare
from gaixie.udfs.command_line import make_parser, run_command
from gaixie.udfs.storage.manifest import RunManifest, read_run


def main(argv: list[str] | None = None) -> int:
    parser = make_parser("diff_runs.py", __doc__)
    parser.add_argument("before", metavar="RUN", help="folder of a published run")
    parser.add_argument("now", metavar="RUN", help="folder of another published run")
    args = parser.parse_args(argv)
    try:
        runs = read_run(args.before), read_run(args.now)
    except (OSError, ValueError) as error:
        raise JobError(str(error)) from error
    print("\n".join(difference(*runs)))
    return 0


def difference(before: RunManifest, now: RunManifest) -> Iterator[str]:
    """Yields the lines of the comparison."""
    yield f"run {before.run_id} -> {now.run_id}"
    if before.signature != now.signature:
        yield f"signature: {before.signature} -> {now.signature}"
        yield "  scores and stages are comparable only under the same signature"
    for key in sorted(before.settings.keys() | now.settings.keys()):
        sides = [run.settings.get(key) for run in (before, now)]
        if sides[0] != sides[1] and key not in ("run_id", "output"):
            yield f"{key}: {sides[0]} -> {sides[1]}"
    yield f"\n{'rows':<36}{before.run_id:>20}{now.run_id:>20}"
    none = {"read": 0, "scored": 0, "quarantined": 0, "duplicates": 0}
    for origin in sorted(before.rows.keys() | now.rows.keys()):
        counts = [dict(run.rows[origin]) if origin in run.rows else none for run in (before, now)]
        for name in none:
            yield f"{origin + ' ' + name:<36}{counts[0][name]:>20,}{counts[1][name]:>20,}"
    yield f"\n{'population stability index':<36}{'index':>20}{'limit':>20}"
    for origin, indices in compare(before, now).indices.items():
        for name, index in indices.items():
            mark = "  shifted" if index.psi > index.limit else ""
            yield f"{origin + ' ' + name:<36}{index.psi:>20.3f}{index.limit:>20.3f}{mark}"


if __name__ == "__main__":
    sys.exit(run_command("diff_runs", main, "nothing was published", mistakes=()))
