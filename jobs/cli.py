"""One command for all that this package does, installed as `gaixie`.

  gaixie score --input pairs.csv --origin llm --output out      is python jobs/score_corpus.py …
  gaixie COMMAND --help                                          says what a command takes

On a cluster, `spark-submit jobs/score_corpus.py` and `accelerate launch training/curriculum.py`
take the same options.
"""

from __future__ import annotations

import runpy
import sys
from difflib import get_close_matches
from importlib.metadata import version

from gaixie.jobs.errors import end_at_once_on_interrupt

GROUPS = {
    "Start here": {
        "paraphrase": ("training.paraphrase", "paraphrase sentences, out of the box"),
        "score": ("jobs.score_corpus", "score a corpus and sort it into stages"),
        "show": ("jobs.show_run", "look at a run: its figures, its pairs, and why they score so"),
        "serve": ("service.serve", "scores and paraphrases over HTTP, with a page to try them"),
        "check": ("udfs.check", "fail where the pairs of a file are not good enough, as in CI"),
    },
    "Make and release pairs": {
        "pairs": ("jobs.build_pairs", "make pairs: of translations, by LLMs, of clusters"),
        "compare-methods": ("research.compare_methods", "ways to make pairs, on the same sources"),
        "release": ("jobs.release_dataset", "make a data set of published runs, and check it"),
    },
    "Train a paraphraser": {
        "vocabulary": ("jobs.build_vocabulary", "count frequent words by part of speech"),
        "tokenize": ("training.tokenize_text", "make the entity-aligned tokenizer, and try it"),
        "warm-start": ("training.warm_start", "make an encoder-decoder of a BERT, to train"),
        "train": ("training.curriculum", "train through three stages, in this process"),
        "generate": ("training.generate", "paraphrase with a trained model"),
        "evaluate": ("training.evaluate", "compare systems and models on held-out pairs"),
        "export": ("training.export", "convert a trained model for a fast engine on CPUs"),
        "model-card": ("training.model_card", "write a model's card and the folder to upload"),
    },
    "Metrics and people": {
        "metrics": ("udfs.metrics", "run any of the field's metrics on the pairs of a file"),
        "compare": ("research.compare_metrics", "see which metrics agree with people"),
        "annotate": ("research.annotate", "have people rate pairs: tasks out, ratings back"),
        "human-evaluation": (
            "research.analyse_human_evaluation",
            "analyse systems that people rated or ranked",
        ),
        "fit": ("research.fit_spscore", "fit SPScore-zh to rated pairs"),
    },
    "Other papers": {
        "identify": ("research.identify_paraphrases", "fine-tune a classifier of paraphrases"),
        "simplifications": ("research.report_simplifications", "MCTS's figures, of any system"),
        "generators": ("research.evaluate_generators", "judge generators by what they teach"),
        "papers": ("research.reproduce_papers", "make the papers' figures again, on one page"),
    },
}
"""Heading -> command -> (module that is run, what for)."""
COMMANDS = {name: own for group in GROUPS.values() for name, own in group.items()}


def main() -> int:
    """Runs the command that the first argument names, and returns the exit code."""
    end_at_once_on_interrupt()
    name = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if name in COMMANDS:
        del sys.argv[1]
        from gaixie.udfs.command_line import name_missing_packages

        name_missing_packages()
        runpy.run_module(f"gaixie.{COMMANDS[name][0]}", run_name="__main__", alter_sys=True)
    elif name in ("-h", "--help"):
        print(__doc__)
        for heading, group in GROUPS.items():
            print(f"{heading}\n")
            for command, (_, what) in group.items():
                print(f"  {command:16} {what}")
            print()
    elif name == "--version":
        print(version("gaixie"))
    else:
        near = get_close_matches(name, COMMANDS, 1)
        hint = f"did you mean {near[0]}?" if near else "gaixie --help lists them"
        print(f"gaixie: error: {name}: no such command; {hint}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
