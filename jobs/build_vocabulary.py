"""Builds the vocabulary: the frequent words of each part of speech of a corpus.

  spark-submit jobs/build_vocabulary.py --input text/ --column text --output vocabulary/
  spark-submit jobs/build_vocabulary.py --input s3a://bucket/gaixie/runs/monday/scored \\
      --column source --column paraphrase --segmenter ltp:models/ltp-legacy --output vocabulary/
  python jobs/build_vocabulary.py --gold 199801.txt --output vocabulary/     given words and tags
  python jobs/build_vocabulary.py … --keep verb=share:0.5 --keep "person name=min_count:20"

Segments and tags every sentence, counts (word, part of speech), and keeps the most frequent words
of each part of speech: by default in the paper's shares (Table 5). Writes

  OUTPUT/vocabulary.tsv      word, class, count, most frequent first; the tokenizer reads this
  OUTPUT/counts/*.parquet    every word with its class and its counts by class
  OUTPUT/table.txt           distinct words, kept words, ratio: the paper's Table 5 for this corpus
  OUTPUT/distribution.png    parts of speech of the kept words: the paper's Figure 2
  OUTPUT/manifest.json       counts, settings, segmenter; written last

Exit codes: 0 done, 2 user error (one line says what), 1 anything else.
"""

from __future__ import annotations

import argparse
import re
import sys

from gaixie.jobs.corpus.session import start_session
from gaixie.jobs.corpus.storage import Storage
from gaixie.jobs.errors import JobError
from gaixie.jobs.vocabulary.build import BuildVocabulary, check_output, read_sentences
from gaixie.udfs.command_line import make_parser, positive, run_command
from gaixie.udfs.storage.storage import spark_uri
from gaixie.udfs.text.parts_of_speech import CLASSES
from gaixie.udfs.text.segmenters import load_segmenter
from gaixie.udfs.text.vocabulary import PAPER, Rule


def main(argv: list[str] | None = None) -> int:
    args = _arguments(argv)
    try:
        rules = PAPER | dict(_rule(given) for given in args.keep)
        segmenter = None if args.gold else load_segmenter(args.segmenter)
        if segmenter:
            segmenter.tag(["测试"])
    except (ValueError, OSError) as error:
        raise JobError(str(error)) from error
    path, output = spark_uri(args.gold or args.input), spark_uri(args.output).rstrip("/")
    spark = start_session("gaixie build_vocabulary", [path, output])
    storage = Storage(spark)
    check_output(storage, output, args.overwrite)
    columns = None if args.gold else args.column or ["text"]
    sentences = read_sentences(spark, storage, path, columns, args.limit)
    if args.dry_run:
        count = len(sentences.take(1_000))
        print(f"{path}: read {count:,} sentences (at most 1,000); nothing was written")
        return 0
    job = BuildVocabulary(spark, storage, path, output, rules)
    job.build(sentences, segmenter, args.segmenter)
    return 0


def _rule(text: str) -> tuple[str, Rule]:
    match = re.fullmatch(r"([a-z -]+)=(share|min_count|coverage):([0-9.]+)", text)
    if match is None or match[1] not in CLASSES:
        raise ValueError(
            f"--keep {text}: expected CLASS=share:X, CLASS=min_count:N or CLASS=coverage:X, "
            f"with CLASS one of {', '.join(CLASSES)}"
        )
    number = int if match[2] == "min_count" else float
    try:
        return match[1], Rule(**{match[2]: number(match[3])})  # type: ignore[arg-type]
    except ValueError as error:
        raise ValueError(f"--keep {text}: {error}") from error


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("build_vocabulary.py", __doc__)
    add = parser.add_argument
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--input", metavar="PATH", help="Parquet, JSON lines, CSV or plain lines")
    what.add_argument("--gold", metavar="PATH", help="lines of word/tag pairs, such as 199801.txt")
    add("--column", metavar="NAME", action="append", help="text column (default: text)")
    add("--output", metavar="FOLDER", required=True)
    add("--overwrite", action="store_true", help="replace the vocabulary in FOLDER")
    add("--segmenter", metavar="SPEC", default="jieba", help="jieba | ltp:NAME_OR_FOLDER")
    keep = "for one class, instead of the paper's share"
    add("--keep", metavar="RULE", action="append", default=[], help=keep)
    add("--limit", metavar="N", type=positive, help="only the first N rows")
    add("--dry-run", action="store_true", help="check the input and write nothing")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(run_command("build_vocabulary", main, "nothing was published", mistakes=()))
