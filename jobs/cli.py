"""Runs every command of this package; installed as `gaixie`.

  gaixie score --input pairs.csv --origin llm --output out      runs python jobs/score_corpus.py …
  gaixie COMMAND --help                                          lists a command's options

On a cluster, `spark-submit jobs/score_corpus.py` and `accelerate launch training/curriculum.py`
take the same options.
"""

from __future__ import annotations

import csv
import runpy
import sys
from functools import partial
from importlib.metadata import version
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from gaixie.udfs.command_line import run_command, say

with open(Path(__file__).with_name("commands.tsv"), encoding="utf-8") as _table:
    COMMANDS = {row["command"]: row for row in csv.DictReader(_table, delimiter="\t")}
"""command -> its row: heading, module to run, and purpose"""


def main() -> int:
    """Runs the command that the first argument names, and returns the exit code."""
    name = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if name in COMMANDS:
        del sys.argv[1]
        module = f"gaixie.{COMMANDS[name]['module']}"
        run = partial(runpy.run_module, module, run_name="__main__", alter_sys=True)
        return run_command(name, run)
    if name in ("-h", "--help"):
        print(__doc__)
        for heading, group in groupby(COMMANDS.values(), itemgetter("heading")):
            print(f"{heading}\n")
            for row in group:
                print(f"  {row['command']:16} {row['what for']}")
            print()
    elif name == "--version":
        print(version("gaixie"))
    else:
        say(f"gaixie: error: {name}: no such command; gaixie --help lists them")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
