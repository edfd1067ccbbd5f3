"""The eight features of SPScore-zh, a file each, and :func:`extract`, which computes them at once.

    structure     acs    appositive character similarity
                  spa    substring positional alignment
                  pmd    phrase mixing degree
                  wpa    word positional alignment
    synonym       lis    longest identical substring
    replacement   sbleu  BLEU against the source
    consistency   sl     sentence length
                  lr     length ratio

Each file states its feature, computes it slowly in ``reference`` and fast in ``kernel``.
Neither pyspark nor torch is imported from here.
"""

from gaixie.udfs.features.extract import FEATURES, extract, extract_code_points, reference

__all__ = ["FEATURES", "extract", "extract_code_points", "reference"]
