"""Maps columns to columns: text, features, the metric, stages and the Spark functions."""

if __name__ != "gaixie.udfs":  # a second name would define every class twice
    raise ImportError("import gaixie.udfs, not udfs")

from gaixie.udfs.storage.cache import keep_kernels

keep_kernels()
