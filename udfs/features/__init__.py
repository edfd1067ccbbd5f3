"""The eight features of SPScore-zh, a file each, and :func:`extract`, which computes them at once.

    structure     acs    appositive character similarity
                  spa    substring positional alignment
                  pmd    phrase mixing degree
                  wpa    word positional alignment
    synonym       lis    longest identical substring
    replacement   sbleu  BLEU against the source
    consistency   sl     sentence length
                  lr     length ratio

Each file states its feature and computes it in ``kernel``. tests/support/plain_features.py has
the same in plain Python.
Neither pyspark nor torch is imported from here.
"""

from gaixie.udfs.features.extract import FEATURES, extract, extract_code_points

__all__ = ["FEATURES", "extract", "extract_code_points"]
