"""Makes sentence pairs for jobs/score_corpus.py out of what there is.

  python jobs/build_pairs.py versions --input wmt.parquet --foreign-column source_en \\
      --text-column translations_zh --output s3a://bucket/pairs/wmt
  python jobs/build_pairs.py parallel --human a.zh --machine a.mt.zh --foreign a.en --output out
  python jobs/build_pairs.py back-translation --input zh.tsv --model m2m100 --pivot ar --output out
  python jobs/build_pairs.py llm --input text.parquet --model gpt-4o-mini --max-cost 20 --output out
  python jobs/score_corpus.py --input out/pairs --origin-column origin --output scored

  versions          any two Chinese versions of one foreign sentence
  parallel          a human and a machine translation; with --translator, a model translates
  back-translation  Chinese sentences, translated into another language and back
  cluster           Chinese sentences about the same things: those that say the same
  llm               Chinese sentences, and what a language model makes of them
  simplify          Chinese sentences, translated into English, simplified, and translated back

  python jobs/build_pairs.py METHOD --help lists the options of a method.

Writes

  OUTPUT/pairs/*.parquet                 source, paraphrase, origin, group, and the lineage:
                                         method, model, version, parameters
  OUTPUT/quarantine/reason=…/*.parquet   what is in no pair, and why
  OUTPUT/clusters, OUTPUT/references     of cluster: what the next month joins, several references
  OUTPUT/manifest.json                   counts and settings; written last

Sentences read (of parallel: rows) = in pairs + in quarantine, or the job fails. A job that is
killed starts over under the same --output, or goes on with --resume; nothing published is
overwritten. Exit codes: 0 done, 2 user error (one line says what), 1 anything else. """

from __future__ import annotations

import sys

from gaixie.jobs.corpus.early import check_local_files, check_local_inputs
from gaixie.jobs.corpus.paths import check_apart
from gaixie.jobs.errors import run
from gaixie.jobs.pairs.settings import BuildSettings, assignments, load_settings, parse


def main(argv: list[str] | None = None) -> int:
    args = parse(argv, __doc__)
    given = {name: getattr(args, name, None) for name in BuildSettings.model_fields}
    settings, method = load_settings(args.config, given, assignments(args))
    check_apart(settings.folder, settings.paths)
    check_local_files(settings.moses.values())
    if settings.tmx:
        check_local_files([str(settings.input)])
    elif settings.input:
        check_local_inputs([settings.table()])
    from gaixie.jobs.pairs.build import build_pairs  # a second's import, which a mistake saves

    return build_pairs(settings, method, args.limit, args.resume, args.take_over, args.dry_run)


if __name__ == "__main__":
    resumable = "the building can be resumed with --resume"
    said = "nothing was written" if "--dry-run" in sys.argv else resumable
    sys.exit(run("build_pairs", main, said))
