"""Makes a table of Chinese translations: what WMT's references and systems made of English news.

python examples/wmt_translations.py [FILE [TEST_SET …]]    sacrebleu downloads the sets, once

FILE is wmt_en_zh_translations.parquet by default, the sets are wmt23 and wmt24. Each row holds an
English sentence (source_en) and its translations (translations_zh, a list), ready for
jobs/build_pairs.py versions. The outputs are for research.
"""

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from sacrebleu.dataset import DATASETS

ABOUT = ("docid", "origlang", "domain")
"""Fields that are no translation."""

output = sys.argv[1] if len(sys.argv) > 1 else "wmt_en_zh_translations.parquet"
sources: list[str] = []
translations: list[list[str]] = []
for name in sys.argv[2:] or ["wmt23", "wmt24"]:
    dataset = DATASETS[name]
    columns = {}
    for field, path in zip(dataset.fieldnames("en-zh"), dataset.get_files("en-zh"), strict=True):
        columns[field] = Path(path).read_text("utf-8").removesuffix("\n").split("\n")
    sources += columns.pop("src")
    versions = [lines for field, lines in columns.items() if field not in ABOUT]
    translations += [list(row) for row in zip(*versions, strict=True)]

pq.write_table(pa.table({"source_en": sources, "translations_zh": translations}), output)
print(f"{output}: {len(sources):,} sentences, {sum(map(len, translations)):,} translations")
