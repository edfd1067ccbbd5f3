"""Downloads the jars for s3a:// and --table from a Maven repository into a folder.

  python jobs/fetch_jars.py jars/                 on a host that reaches a repository
  GAIXIE_JARS=jars/ python jobs/score_corpus.py … the jobs then fetch nothing
  spark-submit --jars "$(echo jars/*.jar | tr ' ' ,)" jobs/score_corpus.py …

conf/spark/s3a-jars.conf and conf/spark/iceberg-jars.conf (for --table) list the jars. Use your own
repository with --repositories URL, or Ivy's settings file with --ivy-settings. Jobs started as
"python jobs/…" download the jars once by themselves.
"""

from __future__ import annotations

import sys
from pathlib import Path

from gaixie.jobs.corpus.jars import ICEBERG, fetch_jars
from gaixie.udfs.command_line import make_parser, run_command


def main(argv: list[str] | None = None) -> int:
    parser = make_parser("fetch_jars.py", __doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="created if missing")
    parser.add_argument("--repositories", metavar="URL[,URL]", help="further Maven repositories")
    ivy = "Ivy's settings file, for mirrors and passwords"
    parser.add_argument("--ivy-settings", metavar="FILE", help=ivy)
    parser.add_argument("--table", action="store_true", help="also fetch Iceberg's jar (48 MB)")
    args = parser.parse_args(argv)
    settings = ["--repositories", args.repositories] if args.repositories else []
    if args.ivy_settings:
        settings += ["--conf", f"spark.jars.ivySettings={args.ivy_settings}"]
    jars = fetch_jars(args.folder, *settings)
    if args.table:
        jars = fetch_jars(args.folder, *settings, jars=ICEBERG)
    size = sum(jar.stat().st_size for jar in jars) / 1e6
    print(f"{args.folder}: {len(jars)} jars, {size:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(run_command("fetch_jars", main, "nothing was published", mistakes=()))
