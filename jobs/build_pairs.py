"""Makes sentence pairs for jobs/score_corpus.py out of what there is.

  python jobs/build_pairs.py versions --input wmt.parquet --foreign-column source_en \\
      --text-column translations_zh --output s3a://bucket/pairs/wmt
  python jobs/build_pairs.py versions --input tatoeba.tsv --columns en zh --foreign-column en \\
      --text-column zh --output out
  python jobs/build_pairs.py parallel --input corpus.tsv --human-column zh --machine-column mt_zh --output out
  python jobs/build_pairs.py parallel --human news.zh --machine news.mt.zh --foreign news.en --output out
  python jobs/build_pairs.py parallel --input memory.tmx --source-lang en --translator m2m100 --output out
  python jobs/build_pairs.py back-translation --input zh.tsv --model m2m100 --pivot ar en --output out
  python jobs/build_pairs.py llm --input text.parquet --model gpt-4o-mini --max-tokens-total 1000000 --output out
  python jobs/score_corpus.py --input out/pairs --origin-column origin --output scored

  versions   Chinese sentences that translate one foreign sentence: a list in a column, or a row each
  parallel   human and machine translation: two columns of a table, or files with a sentence a line;
             with --translator, a model translates the foreign side
  back-translation   Chinese sentences, translated into another language and back
  cluster    sentences about the same things: those that say the same
  llm        Chinese sentences, and what a language model makes of them: an endpoint's or a local one
  simplify   Chinese sentences, translated into English, simplified there, and translated back

Writes

  OUTPUT/pairs/*.parquet                     source, paraphrase, origin, group, and where they come
                                             from: method, model, version, parameters
  OUTPUT/quarantine/reason=…/*.parquet       what is in no pair, and why
  OUTPUT/clusters, OUTPUT/references         of cluster: what the next month joins, several references
  OUTPUT/manifest.json                       counts, settings; written last

Sentences read (of parallel: rows) = in pairs + in quarantine, or the job fails. Killed at any moment, it
starts over under the same --output, or goes on with --resume; what is published is never written over.
Exit codes: 0 done, 2 user error (one line says what), 1 anything else.
"""

from __future__ import annotations

import argparse
import json
import sys

from gaixie.jobs.corpus.early import check_local_files, check_local_inputs
from gaixie.jobs.corpus.paths import check_apart
from gaixie.jobs.corpus.settings import Csv
from gaixie.jobs.errors import run
from gaixie.jobs.pairs.cluster.settings import ClusterSettings
from gaixie.jobs.pairs.llm.settings import LlmSettings
from gaixie.jobs.pairs.settings import CONFIG, METHODS, BuildSettings, load_settings
from gaixie.jobs.pairs.writer_settings import BackTranslationSettings, SimplifySettings
from gaixie.udfs.command_line import make_parser, positive
from gaixie.udfs.storage.options import add_config, add_options

READ: tuple[str, ...] = (
    "input",
    "format",
    "foreign_column",
    "source_lang",
    "target_lang",
    "text_column",
)
READ = (*READ, "model", "model_version")
PARALLEL = ("human_column", "machine_column", "translator", "human", "machine", "foreign")
CLUSTER = ("clusters", "references", "encoder", "identify")
LLM: tuple[str, ...] = (
    "base_url",
    "local",
    "prompt",
    "paraphrases",
    "sentences_per_request",
    "temperature",
)
LLM = (*LLM, "cache", "concurrency", "requests_per_minute", "tokens_per_minute")
LLM = (*LLM, "max_tokens_total", "max_cost", "price_in", "price_out", "publish_partial")
MADE: tuple[str, ...] = (
    "output",
    "origin",
    "directions",
    "seed",
    "min_characters",
    "max_characters",
)
MADE = (*MADE, "target_file_mb")


def main(argv: list[str] | None = None) -> int:
    args = _arguments(argv)
    given = {name: value for name, value in vars(args).items() if value is not None}
    overrides = {name: value for name, value in given.items() if name in BuildSettings.model_fields}
    in_groups = [f"{name}={json.dumps(value)}" for name, value in given.items() if "." in name]
    settings = load_settings(args.config, overrides, [*in_groups, *args.set])
    check_apart(str(settings.output), settings.paths)
    check_local_files(settings.moses.values())
    if settings.tmx:
        check_local_files([str(settings.input)])
    elif settings.input:
        check_local_inputs([settings.table()])
    from gaixie.jobs.pairs.build import build_pairs  # a second's import that mistakes skip

    return build_pairs(settings, args.limit, args.resume, args.take_over, args.dry_run)


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("build_pairs.py", __doc__)
    parser.add_argument("method", nargs="?", choices=METHODS, help="how pairs are made, see above")
    read = parser.add_argument_group("what to read")
    add_options(read, BuildSettings, *READ)
    add_options(read, Csv, "columns", "encoding", within="csv.")
    read.add_argument("--limit", metavar="N", type=positive, help="only the first N rows")
    group = parser.add_argument_group
    add_options(group("versions"), BuildSettings, "max_pairs")
    add_options(group("parallel"), BuildSettings, *PARALLEL)
    back = group("back-translation")
    add_options(back, BackTranslationSettings, within="back_translation.", pivot="pivots")
    cluster = group("cluster")
    add_options(cluster, ClusterSettings, *CLUSTER, within="cluster.", key_column="key_columns")
    add_options(group("llm"), LlmSettings, *LLM, within="llm.", degree="degrees")
    add_options(group("simplify"), SimplifySettings, "simplifier", within="simplify.")
    how = parser.add_argument_group("what to make")
    add_options(how, BuildSettings, *MADE)
    for name, text in (
        ("resume", "go on with what a killed building finished"),
        ("take-over", "take the output from a process on another host, which must be gone"),
        ("dry-run", "look at the first rows, write nothing"),
    ):
        how.add_argument(f"--{name}", action="store_true", help=text)
    add_config(how, CONFIG, "conf/pairs.yaml")
    return parser.parse_args(argv)


if __name__ == "__main__":
    resumable = "the building can be resumed with --resume"
    said = "nothing was written" if "--dry-run" in sys.argv else resumable
    sys.exit(run("build_pairs", main, said))
