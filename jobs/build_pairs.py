"""Makes sentence pairs for jobs/score_corpus.py out of what there is.

  python jobs/build_pairs.py versions --input wmt.parquet --foreign-column source_en \\
      --text-column translations_zh --output s3a://bucket/pairs/wmt
  python jobs/build_pairs.py versions --input tatoeba.tsv --columns en zh --foreign-column en --text-column zh --output out
  python jobs/build_pairs.py parallel --input corpus.tsv --human-column zh --machine-column mt_zh --output out
  python jobs/build_pairs.py parallel --human news.zh --machine news.mt.zh --foreign news.en --output out
  python jobs/build_pairs.py parallel --input memory.tmx --source-lang en --translator m2m100 --output out
  python jobs/build_pairs.py back-translation --input zh.tsv --model m2m100 --pivot ar en --output out
  python jobs/build_pairs.py llm --input text.parquet --model gpt-4o-mini --max-tokens-total 1000000 --output out
  python jobs/score_corpus.py --input out/pairs --origin-column origin --output scored

  versions   Chinese sentences with one foreign sentence are pairs: a list of them in a column, or a row each
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
from gaixie.jobs.errors import run
from gaixie.jobs.pairs.llm import options as llm
from gaixie.jobs.pairs.settings import CONFIG, METHODS, BuildSettings, load_settings
from gaixie.udfs.command_line import make_parser, positive
from gaixie.udfs.spscore.stages import ORIGINS


def main(argv: list[str] | None = None) -> int:
    args = _arguments(argv)
    given = {
        name: value for name, value in vars(args).items() if name in BuildSettings.model_fields
    }
    csv = {"encoding": args.encoding, "columns": args.columns}
    assignments = [f"csv.{name}={value}" for name, value in csv.items() if value]
    assignments += [
        f"{name}={json.dumps(value)}"
        for name, value in vars(args).items()
        if "." in name and value is not None  # of a method's group
    ]
    settings = load_settings(args.config, given, [*assignments, *args.set])
    check_apart(str(settings.output), settings.paths)
    check_local_files(settings.moses.values())
    if settings.tmx:
        check_local_files([str(settings.input)])
    elif settings.input:
        check_local_inputs([settings.table()])
    from gaixie.jobs.pairs.build import build_pairs  # a second's import, for who made no mistake

    return build_pairs(settings, args.limit, args.resume, args.take_over, args.dry_run)


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("build_pairs.py", __doc__)
    parser.add_argument("method", nargs="?", choices=METHODS)
    read = parser.add_argument_group("what to read")
    read.add_argument("--input", metavar="PATH", help="a table: file, folder or glob")
    read.add_argument("--format", choices=["parquet", "jsonl", "csv", "tsv"], help="by its name")
    read.add_argument("--columns", metavar="NAME", nargs="+", help="of files without a header")
    read.add_argument("--encoding", metavar="NAME", help="of text files: utf-8 or such as gb18030")
    read.add_argument("--foreign-column", metavar="NAME", help="the foreign sentence: one group")
    read.add_argument("--source-lang", metavar="LANGUAGE", help="the foreign one, such as en")
    read.add_argument("--target-lang", metavar="LANGUAGE", help="of a TMX; default zh, or zh-CN …")
    read.add_argument("--limit", metavar="N", type=positive, help="only the first N rows")
    read.add_argument(
        "--text-column",
        metavar="NAME",
        help="the Chinese sentence (versions: or a list); default text",
    )
    read.add_argument("--model", metavar="NAME", help="that writes; parallel: for the lineage")
    read.add_argument("--model-version", metavar="NAME", help="for the lineage")
    versions = parser.add_argument_group("versions")
    versions.add_argument("--max-pairs", metavar="N", type=positive, help="of a group")
    parallel = parser.add_argument_group("parallel")
    parallel.add_argument("--human-column", metavar="NAME", help="by default human")
    parallel.add_argument("--machine-column", metavar="NAME", help="by default machine")
    parallel.add_argument("--translator", metavar="MODEL", help="makes the machine translations")
    parallel.add_argument("--human", metavar="FILE", help="sentences, one a line")
    parallel.add_argument("--machine", metavar="FILE", help="translations, line by line")
    parallel.add_argument("--foreign", metavar="FILE", help="what they translate, line by line")
    back = parser.add_argument_group("back-translation")
    back.add_argument(
        "--pivot",
        metavar="LANGUAGE",
        nargs="+",
        dest="back_translation.pivots",
        help="through which to translate: a pair for each; default ar",
    )
    cluster = parser.add_argument_group("cluster")
    cluster.add_argument(
        "--key-column",
        metavar="KEY",
        nargs="+",
        dest="cluster.key_columns",
        help="compare within these alone: topic, url, topic+created:day; by default all sentences",
    )
    cluster.add_argument(
        "--clusters",
        metavar="OUTPUT",
        dest="cluster.clusters",
        help="of the months before, which these sentences join",
    )
    cluster.add_argument(
        "--references",
        metavar="K",
        type=int,
        dest="cluster.references",
        help="write sources with K paraphrases or more, too",
    )
    cluster.add_argument(
        "--encoder",
        metavar="FOLDER",
        dest="cluster.encoder",
        help="candidates by embedding, not by overlap",
    )
    cluster.add_argument(
        "--identify",
        metavar="NAME",
        dest="cluster.identify",
        help="core | full | a classifier's folder: what says that two say the same; default core",
    )
    llm.add_to(parser)
    simplify = parser.add_argument_group("simplify")
    simplify.add_argument(
        "--simplifier", metavar="MODEL", dest="simplify.simplifier", help="of English sentences"
    )
    how = parser.add_argument_group("what to make")
    how.add_argument("--output", metavar="FOLDER", help="a folder or URI without pairs")
    how.add_argument("--origin", help=f"{' | '.join(ORIGINS)}; by default the method's")
    how.add_argument("--directions", help="one | both: each pair the other way round too")
    how.add_argument("--seed", metavar="N", type=int, help="of the hash that chooses")
    how.add_argument("--min-characters", metavar="N", type=int, help="shorter: to quarantine")
    how.add_argument("--max-characters", metavar="N", type=int, help="longer: to quarantine")
    how.add_argument("--target-file-mb", metavar="MB", type=float, help="size of output files")
    how.add_argument(
        "--resume", action="store_true", help="go on with what a killed building finished"
    )
    how.add_argument("--take-over", action="store_true", help="the lock of a host that is gone")
    how.add_argument("--dry-run", action="store_true", help="look at the first rows, write nothing")
    how.add_argument(
        "--config", metavar="YAML", default=str(CONFIG), help="default conf/pairs.yaml"
    )
    how.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="any setting")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(run("build_pairs", main, "the building can be resumed with --resume"))
