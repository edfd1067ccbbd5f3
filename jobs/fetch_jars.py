"""Downloads the jars for s3a:// from a Maven repository into a folder.

  python jobs/fetch_jars.py jars/                 on a host that reaches a repository
  GAIXIE_JARS=jars/ python jobs/score_corpus.py … the jobs then fetch nothing
  spark-submit --jars "$(echo jars/*.jar | tr ' ' ,)" jobs/score_corpus.py …

conf/spark/s3a-jars.conf lists the jars. Further options go to spark-submit, such as --repositories
URL, or --conf spark.jars.ivySettings=FILE for mirrors and passwords. Jobs started as
"python jobs/…" download the jars once by themselves.
"""

from __future__ import annotations

import sys
from pathlib import Path

from gaixie.jobs.corpus.s3a import JARS, fetch_jars
from gaixie.udfs.command_line import make_parser, run_command


def main(argv: list[str] | None = None) -> int:
    parser = make_parser("fetch_jars.py", __doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="created if missing")
    args, options = parser.parse_known_args(argv)
    jars = fetch_jars(args.folder, "--properties-file", str(JARS), *options)
    print(
        f"{args.folder}: {len(jars)} jars, {sum(jar.stat().st_size for jar in jars) / 1e6:.1f} MB"
    )
    return 0


if __name__ == "__main__":
    sys.exit(run_command("fetch_jars", main, mistakes=()))
