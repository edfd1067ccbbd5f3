"""Prints the dependencies of this folder's pyproject.toml, one a line, with some of its extras.

python requirements.py serve,train --without pyspark
"""

import argparse
import re
import tomllib

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("extras", nargs="?", default="", help="separated by commas")
parser.add_argument("--without", nargs="*", default=[], metavar="PACKAGE")
args = parser.parse_args()
with open("pyproject.toml", "rb") as file:
    project = tomllib.load(file)["project"]
lines = list(project["dependencies"])
extras = [*filter(None, args.extras.split(","))]
for extra in extras:  # which may name others
    for line in project["optional-dependencies"][extra]:
        others = re.fullmatch(r"gaixie\[(.+)\]", line)
        extras += others[1].split(",") if others else []
        lines += [] if others else [line]
for line in dict.fromkeys(lines):
    if re.match(r"[\w.-]+", line)[0] not in args.without:
        print(line)
