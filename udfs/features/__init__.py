"""The eight features of SPScore-zh, one file each. :func:`extract` computes all of them.

    structure     acs    appositive character similarity
                  spa    substring positional alignment
                  pmd    phrase mixing degree
                  wpa    word positional alignment
    synonym       lis    longest identical substring
    replacement   sbleu  BLEU against the source
    consistency   sl     sentence length
                  lr     length ratio

Each file defines its feature and has its kernel, which extract.py calls.
tests/support/plain_features.py computes the same in plain Python. This package imports neither
pyspark nor torch.
"""

from gaixie.udfs.features.extract import FEATURES, extract, extract_code_points

__all__ = ["FEATURES", "extract", "extract_code_points"]
