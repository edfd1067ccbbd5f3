"""Builds the vocabulary: the frequent words of each part of speech of a corpus.

  spark-submit jobs/build_vocabulary.py --input text/ --column text --output vocabulary/
  spark-submit jobs/build_vocabulary.py --input s3a://bucket/gaixie/runs/monday/scored \\
      --column source --column paraphrase --segmenter ltp:models/ltp-legacy --output vocabulary/
  python jobs/build_vocabulary.py --gold 199801.txt --output vocabulary/     given words and tags

Segments and tags every sentence, counts (word, part of speech), and keeps the most frequent words
of each part of speech, in the paper's shares (Table 5). Writes

  OUTPUT/vocabulary.tsv      word, class, count, most frequent first; the tokenizer reads this
  OUTPUT/counts.parquet      every word with its class, its count, and whether it is kept
  OUTPUT/table.txt           distinct and kept words of each class: the paper's Table 5 and Figure 2
  OUTPUT/manifest.json       counts, settings, segmenter; written last

Exit codes: 0 done, 2 user error (one line says what), 1 anything else.
"""

from __future__ import annotations

import argparse
import sys

from gaixie.jobs.corpus.session import start_session
from gaixie.jobs.vocabulary.build import build_vocabulary, find_sentences, sentences_of, tag_counts
from gaixie.udfs.command_line import UserError, as_user_error, make_parser, positive, run_command
from gaixie.udfs.storage import storage
from gaixie.udfs.text.segmenters import load_segmenter


def main(argv: list[str] | None = None) -> int:
    args = _arguments(argv)
    with as_user_error(ValueError, OSError):
        segmenter = None if args.gold else load_segmenter(args.segmenter)
        if segmenter:
            segmenter.tag(["测试"])
    path, output = args.gold or args.input, args.output.rstrip("/")
    manifest, columns = f"{output}/manifest.json", args.column or ["text"]
    if storage.exists(manifest) and not args.overwrite:
        raise UserError(f"{output}: already has a vocabulary; --overwrite replaces it")
    found = find_sentences(path, columns, bool(args.gold))
    spark = start_session("gaixie build_vocabulary", [path])
    sentences = sentences_of(spark, found, columns)
    if args.limit:
        sentences = sentences.limit(args.limit)
    if args.dry_run:
        rows = sentences.limit(1_000).count()
        print(f"{path}: read {rows:,} sentences (at most 1,000); nothing was written")
        return 0
    storage.delete(manifest)
    counted = tag_counts(sentences, args.segmenter if segmenter else None, path)
    build_vocabulary(counted, path, output, segmenter, args.segmenter)
    return 0


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
    add("--limit", metavar="N", type=positive, help="only the first N sentences")
    add("--dry-run", action="store_true", help="check the input and write nothing")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(run_command("build_vocabulary", main, "nothing was published", mistakes=()))
