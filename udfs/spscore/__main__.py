"""Compiles the kernels for this machine and prints the metric's signature.

    python -m gaixie.udfs.spscore

Run it where an environment or an image is made: the first scoring then begins at once.
"""

from gaixie.udfs.spscore import SPScore

metric = SPScore.load()
metric.explain("我昨天买了三本书。", "昨天我买的书有3本。")
print(metric.signature())
