"""Everything that maps columns to columns: text, features, the metric, stages, Spark functions."""

from udfs.cache import keep_kernels

keep_kernels()
