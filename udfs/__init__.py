"""Everything that maps columns to columns: text, features, the metric, stages, Spark functions."""

if __name__ != "gaixie.udfs":  # under two names every class would be there twice
    raise ImportError("import gaixie.udfs, not udfs")

from gaixie.udfs.storage.cache import keep_kernels, keep_settings

keep_kernels()
keep_settings()
