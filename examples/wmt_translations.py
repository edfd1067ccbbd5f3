"""Makes a table of Chinese translations: what WMT's references and systems made of English news.

python examples/wmt_translations.py [FILE [TEST_SET …]]    sacrebleu downloads the sets, once

FILE is wmt_en_zh_translations.parquet by default, the sets are wmt23 and wmt24. Each row holds an
English sentence (source_en) and its translations (translations_zh, a list), ready for
jobs/build_pairs.py versions. The outputs are for research.
"""

import argparse
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from sacrebleu.dataset import DATASETS

ABOUT = ("docid", "origlang", "domain")
"""Fields that are no translation."""

parser = argparse.ArgumentParser(usage=__doc__)
parser.add_argument("output", nargs="?", default="wmt_en_zh_translations.parquet")
parser.add_argument("sets", nargs="*", default=["wmt23", "wmt24"])
given = parser.parse_args()
sources: list[str] = []
translations: list[list[str]] = []
for name in given.sets:
    dataset = DATASETS[name]
    columns = {}
    try:
        files = dataset.get_files("en-zh")
    except OSError as error:
        sys.exit(f"{name}: sacrebleu cannot download it: {error}")
    for field, path in zip(dataset.fieldnames("en-zh"), files, strict=True):
        columns[field] = Path(path).read_text("utf-8").removesuffix("\n").split("\n")
    sources += columns.pop("src")
    versions = [lines for field, lines in columns.items() if field not in ABOUT]
    translations += [list(row) for row in zip(*versions, strict=True)]

pq.write_table(pa.table({"source_en": sources, "translations_zh": translations}), given.output)
print(f"{given.output}: {len(sources):,} sentences, {sum(map(len, translations)):,} translations")
