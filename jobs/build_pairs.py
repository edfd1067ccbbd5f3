"""Makes sentence pairs for jobs/score_corpus.py from translations or plain Chinese sentences.

  python jobs/build_pairs.py versions --input wmt.parquet --foreign-column source_en \\
      --text-column translations_zh --output s3a://bucket/pairs/wmt
  python jobs/build_pairs.py parallel --human a.zh --machine a.mt.zh --foreign a.en --output out
  python jobs/build_pairs.py back-translation --input zh.tsv --model m2m100 --pivot ar --output out
  python jobs/build_pairs.py llm --input text.parquet --model qwen \\
      --base-url http://127.0.0.1:8000/v1 --output out
  python jobs/score_corpus.py --input out --output scored

  versions          pairs any two Chinese versions of one foreign sentence
  parallel          pairs a human with a machine translation; --translator makes the machine one
  back-translation  translates Chinese sentences into another language and back
  cluster           pairs Chinese sentences that say the same about the same thing
  llm               asks a language model to paraphrase Chinese sentences
  simplify          translates Chinese sentences into English, simplifies them, translates them back

  python jobs/build_pairs.py METHOD --help lists the options of a method.

Writes

  OUTPUT/pairs/*.parquet                 source, paraphrase, origin, group, and the lineage:
                                         method, model, version, parameters
  OUTPUT/quarantine/reason=…/*.parquet   what no pair uses, and why
  OUTPUT/clusters                        cluster only: input of the next month
  OUTPUT/manifest.json                   counts and settings; written last

The job fails unless sentences (parallel: rows) read = in pairs + in quarantine. A killed job starts
over under the same --output, or continues with --resume. Nothing published is overwritten. Exit
codes: 0 done, 2 user error (one line says what), 1 anything else. """

from __future__ import annotations

import sys

from gaixie.jobs.pairs.build import build_pairs
from gaixie.jobs.pairs.options import load_method, make_parser
from gaixie.udfs.command_line import run_command


def main(argv: list[str] | None = None) -> int:
    args = make_parser(__doc__).parse_args(argv)
    method = load_method(args)
    return build_pairs(args.method, method, args.limit, args.resume, args.take_over, args.dry_run)


if __name__ == "__main__":
    resumable = "the building can be resumed with --resume"
    said = "nothing was written" if "--dry-run" in sys.argv else resumable
    sys.exit(run_command("build_pairs", main, said, mistakes=()))
