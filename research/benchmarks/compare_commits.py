"""Compares the outputs of two checkouts: scored rows, a release, a vocabulary, tokens, losses.

    git worktree add ../before COMMIT
    python research/benchmarks/compare_commits.py ../before . --data FOLDER
    python research/benchmarks/compare_commits.py ../before . --only demo

Each checkout runs the demo, scores pairs of translations, and trains a few steps, in its own
folder. Text and counts must be equal, other numbers equal within 1e-6. Stages begin at given
scores, so that they do not depend on a default. Exit codes: 0 all equal, 1 something differs (the
script names each difference).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.dataset as ds

TRANSLATIONS = "wmt_en_zh_translations.parquet"
COMMANDS = """
jobs/score_corpus.py --config examples/demo.yaml --output OUT/demo CUTS
jobs/build_pairs.py versions --input DATA/TRANSLATIONS --foreign-column source_en \
--text-column translations_zh --max-pairs 2 --output OUT/made
jobs/score_corpus.py --input OUT/made/pairs --origin-column origin --output OUT/corpus \
--run-id first CUTS
jobs/release_dataset.py --root OUT/corpus --runs first --version 1.0 --license CC-BY-4.0 \
--split 0.98 0.01 0.01
jobs/build_vocabulary.py --input examples/pairs.jsonl --column source --column paraphrase \
--output OUT/vocabulary
training/tokenize_text.py make OUT/vocabulary/vocabulary.tsv --output OUT/tokenizer \
--common-characters
training/curriculum.py --config examples/demo-train.yaml --set data.uri=OUT/demo/runs/demo \
--set tokenizer=OUT/tokenizer --set output=OUT/run --set trainer.max_steps=20
"""
CUTS = {
    "parallel": ("[0.23,0.52,0.67]", 0.8),
    "back_translation": ("[0.23,0.52,0.67]", 0.8),
    "llm": ("[0.24,0.43,0.53]", 0.65),
    "human": ("[0.21,0.46,0.60]", 0.8),
}
"""Scores at which stages begin, and the least meaning of stages 2 and 3."""
TABLES = {
    "rows of the demo": ("demo/runs/demo/scored", "pair_id"),
    "scored rows": ("corpus/runs/first/scored", "pair_id"),
    "quarantine": ("demo/runs/demo/quarantine", "file_row"),
    "release": ("corpus/releases/1.0/data", "pair_id"),
}
FILES = ("vocabulary/vocabulary.tsv", "tokenizer/vocabulary.txt", "tokenizer/entities.json")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("before", type=Path, help="a checkout in a folder called gaixie")
    parser.add_argument("after", type=Path, help="another checkout")
    parser.add_argument("--data", type=Path, default=Path(), help=f"folder with {TRANSLATIONS}")
    only = "run only commands with this word in them"
    parser.add_argument("--only", metavar="WORD", default="", help=only)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        outputs = [Path(folder) / name for name in ("before", "after")]
        for checkout, output in zip((args.before, args.after), outputs, strict=True):
            run(checkout.resolve(), output, args.data.resolve(), args.only)
        different = [*compare(*outputs)]
    print(f"different: {', '.join(different)}" if different else "all equal")
    return int(bool(different))


def run(checkout: Path, output: Path, data: Path, only: str) -> None:
    """Runs a checkout's commands. Raises RuntimeError with the end of its log if one fails."""
    is_old = (checkout / "gaixie/__init__.py").exists()  # the package was a folder of the checkout
    environment = os.environ | {"PYTHONPATH": str(checkout if is_old else checkout.parent)}
    cuts = [
        f"--set cuts.{origin}.scores={scores} --set cuts.{origin}.min_meaning={least}"
        for origin, (scores, least) in CUTS.items()
    ]
    values = {"OUT": output, "DATA": data, "TRANSLATIONS": TRANSLATIONS, "CUTS": " ".join(cuts)}
    for line in COMMANDS.replace("\\\n", "").strip().splitlines():
        if only not in line:
            continue
        for name, value in values.items():
            line = line.replace(name, str(value))
        command = [sys.executable, *line.split()]
        done = subprocess.run(
            command, cwd=checkout, env=environment, capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"{checkout}: {line}\n{done.stderr[-2000:]}")


def compare(before: Path, after: Path) -> Iterator[str]:
    """Yields a line for each difference between two outputs."""
    for what, (place, key) in TABLES.items():
        if not (before / place).exists():
            continue
        one, other = (read_rows(folder / place, key) for folder in (before, after))
        print(f"{what}: {len(one):,} and {len(other):,} rows, {one.shape[1]} columns")
        try:
            pd.testing.assert_frame_equal(one, other, check_like=True, rtol=0, atol=1e-6)
        except AssertionError as error:
            print(error)
            yield what
    for name in FILES:
        if (before / name).exists() and (before / name).read_bytes() != (after / name).read_bytes():
            yield name
    if not (before / "run/log.jsonl").exists():
        return
    logs = [pd.read_json(folder / "run/log.jsonl", lines=True) for folder in (before, after)]
    losses = [log["loss"].dropna().tolist() for log in logs]
    print(f"losses: {len(losses[0])} and {len(losses[1])} entries")
    if len(losses[0]) != len(losses[1]) or not np.allclose(*losses, atol=1e-6):
        yield "losses"


def read_rows(folder: Path, key: str) -> pd.DataFrame:
    """Reads a folder of Parquet files, sorted by a key and then by all text columns."""
    table = ds.dataset(folder, format="parquet", partitioning="hive").to_table().to_pandas()
    keys = [key, *sorted(set(table.columns) & {"source", "paraphrase", "origin"})]
    keys = [name for name in keys if name in table]
    return table.sort_values(keys, kind="stable").reset_index(drop=True)


if __name__ == "__main__":
    sys.exit(main())
