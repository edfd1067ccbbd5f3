"""Compiles the kernels for this machine and prints the metric's signature.

    python -m gaixie.udfs.spscore
    python -m gaixie.udfs.spscore --levels    for levels of processors, into the package

Run it when you build an environment or an image, so that the first scoring starts at once. Use
--levels for an image that many machines run: it compiles for x86-64-v2, -v3 and -v4, as far as
this machine supports them.
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
