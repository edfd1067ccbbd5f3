"""Compiles the kernels for this machine and prints the metric's signature.

    python -m gaixie.udfs.spscore
    python -m gaixie.udfs.spscore --ship    into the package, for any x86-64 with AVX2

Run it when you build an environment, so that the first scoring starts at once; use --ship for an
image or an archive that many machines run.
"""

import sys

import pyarrow as pa

from gaixie.udfs.spscore import SPScore
from gaixie.udfs.storage.cache import ship_kernels
from gaixie.udfs.text.pair_id import pair_ids

if "--ship" in sys.argv[1:]:
    ship_kernels()
else:
    metric = SPScore.load()
    metric.explain("我昨天买了三本书。", "昨天我买的书有3本。")
    pair_ids(*[pa.array(["书"])] * 3)
    print(metric.signature())
