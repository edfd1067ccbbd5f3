"""Compiles the kernels for this machine and prints the metric's signature.

    python -m gaixie.udfs.spscore
    python -m gaixie.udfs.spscore --levels    for levels of processors, into the package

Run it where an environment or an image is made: the first scoring then begins at once. --levels is
for what goes to many machines: x86-64-v2, -v3 and -v4, as far as this machine goes.
"""

import sys

from gaixie.udfs.spscore import SPScore
from gaixie.udfs.storage.cache import LOCATOR, source_digest
from gaixie.udfs.storage.kernel_levels import compile_levels

if "--levels" in sys.argv[1:]:
    compile_levels(source_digest(), LOCATOR)
else:
    metric = SPScore.load()
    metric.explain("我昨天买了三本书。", "昨天我买的书有3本。")
    print(metric.signature())
