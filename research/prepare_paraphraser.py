"""Pairs for a paraphraser, and sentences held out to judge it.

  python research/prepare_paraphraser.py ../shared/data out/paraphraser/data

DATA has wmt_en_zh_translations.parquet, several Chinese translations of each English sentence;
examples/written has groups of sentences that a language model wrote to say the same.

  OUTPUT/written/pairs.parquet        every ordered pair of a training group
  OUTPUT/tones/pairs.parquet          the sentences of a training group in three tones
  OUTPUT/translations/pairs.parquet   every ordered pair of translations of one English sentence
  OUTPUT/sentences.parquet            all these sentences, for the vocabulary of the base
  OUTPUT/held-out.parquet             source, and written: a free rewording; of the test groups

Pairs have the column group, by which every later split goes, and code: the tone of the paraphrase.
"""

import sys
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import permutations
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from gaixie.udfs.command_line import make_parser, run_command
from gaixie.udfs.text.normalise import normalise

WRITTEN = Path(__file__).parents[1] / "examples/written/data"
TRANSLATIONS = "wmt_en_zh_translations.parquet"
TONES = {"formal": "正式", "spoken": "口语", "concise": "精简"}
COLUMNS = ("source", "paraphrase", "group", "code")
Row = tuple[str | None, ...]
SHORTEST, LONGEST = 15, 80
"""Characters of a sentence."""


def main() -> int:
    parser = make_parser("prepare_paraphraser.py", __doc__)
    parser.add_argument("data", metavar="DATA", type=Path)
    parser.add_argument("output", metavar="OUTPUT", type=Path)
    args = parser.parse_args()
    return run_command("prepare_paraphraser", partial(prepare, args.data, args.output))


def prepare(data: Path, output: Path) -> None:
    """The command: reads DATA and examples/written, writes OUTPUT."""
    if not (data / TRANSLATIONS).is_file():
        raise FileNotFoundError(f"{data / TRANSLATIONS}: no such file")
    groups = pq.read_table(WRITTEN / "groups-train.parquet")["texts"].to_pylist()
    translations = pq.read_table(data / TRANSLATIONS)["translations_zh"].to_pylist()
    pairs = {
        "written": pairs_of("written", groups),
        "translations": pairs_of("wmt", translations),
        "tones": toned_pairs(pq.read_table(WRITTEN / "tones-train.parquet").to_pylist()),
    }
    for name, rows in pairs.items():
        write(output / name / "pairs.parquet", COLUMNS, rows)
    texts = dict.fromkeys(source for rows in pairs.values() for source, *_ in rows)
    write(output / "sentences.parquet", ["text"], [(text,) for text in texts])
    tests = pq.read_table(WRITTEN / "groups-test.parquet")["texts"].to_pylist()
    held_out = [(own[0], own[-1]) for own in tests]
    write(output / "held-out.parquet", ["source", "written"], held_out)
    counts = ", ".join(f"{len(rows):,} {name}" for name, rows in pairs.items())
    print(f"pairs: {counts}; {len(texts):,} sentences; {len(held_out):,} held out")


def pairs_of(name: str, groups: Iterable[list[str | None]]) -> list[Row]:
    """Every ordered pair of two different sentences of a group that are long and short enough."""
    rows: list[Row] = []
    for number, texts in enumerate(groups):
        own = dict.fromkeys(normalise(text) for text in texts if text)
        fit = [text for text in own if SHORTEST <= len(text) <= LONGEST]
        rows += [(*pair, f"{name}-{number}", None) for pair in permutations(fit, 2)]
    return rows


def toned_pairs(groups: Iterable[dict[str, str]]) -> list[Row]:
    """A pair for each tone of a sentence, with the tone as its code."""
    return [
        (normalise(row["source"]), normalise(row[name]), f"tones-{row['group']}", tone)
        for row in groups
        for name, tone in TONES.items()
    ]


def write(path: Path, columns: Sequence[str], rows: Sequence[Row]) -> None:
    """Writes a table, in row groups that can be read one by one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table([pa.array(own, pa.string()) for own in zip(*rows, strict=True)], columns)
    pq.write_table(table, path, row_group_size=100_000, compression="zstd")


if __name__ == "__main__":
    sys.exit(main())
