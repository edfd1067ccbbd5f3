"""One command for all that this package does, installed as `gaixie`.

  gaixie score --input pairs.csv --origin llm --output out      is python jobs/score_corpus.py …
  gaixie COMMAND --help                                          says what a command takes

On a cluster, `spark-submit jobs/score_corpus.py` and `accelerate launch training/curriculum.py`
take the same options.
"""

from __future__ import annotations

import runpy
import sys
from importlib.metadata import version

from gaixie.jobs.errors import end_at_once_on_interrupt

COMMANDS = {
    "pairs": ("jobs.build_pairs", "make sentence pairs to score: of translations of one sentence"),
    "score": ("jobs.score_corpus", "score a corpus and sort it into stages"),
    "show": ("jobs.show_run", "look at a run: its figures, its pairs, and why they score so"),
    "release": ("jobs.release_dataset", "make a data set of published runs, and check it"),
    "metrics": ("udfs.metrics", "any of the field's metrics on pairs of a file"),
    "compare": ("research.compare_metrics", "which metrics agree with people"),
    "annotate": (
        "research.annotate",
        "have people rate pairs: sheets out, agreement and ratings back",
    ),
    "human-evaluation": (
        "research.analyse_human_evaluation",
        "systems that people rated or ranked",
    ),
    "compare-methods": ("research.compare_methods", "ways to make pairs, on the same sources"),
    "identify": ("research.identify_paraphrases", "fine-tune a classifier of paraphrases"),
    "simplifications": ("research.report_simplifications", "MCTS's figures, of any system"),
    "generators": ("research.evaluate_generators", "generators by what networks learn from them"),
    "papers": ("research.reproduce_papers", "the figures of other papers again, into one page"),
    "fit": ("research.fit_spscore", "fit SPScore-zh to rated pairs"),
    "vocabulary": ("jobs.build_vocabulary", "frequent words by part of speech"),
    "tokenize": ("training.tokenize_text", "the entity-aligned tokenizer: make it, try it"),
    "train": ("training.curriculum", "train a paraphraser through three stages, in this process"),
    "warm-start": ("training.warm_start", "an encoder-decoder from a BERT, to train"),
    "export": ("training.export", "a trained model for a fast engine on CPUs"),
    "generate": ("training.generate", "paraphrase sentences with a trained model"),
    "paraphrase": ("training.paraphrase", "paraphrase sentences, out of the box"),
    "serve": ("service.serve", "the metric, and a trained model, over HTTP; a page to try them"),
    "model-card": ("training.model_card", "the card of a trained model, and the folder to upload"),
    "evaluate": ("training.evaluate", "compare systems and models on held-out pairs"),
}
"""Command -> (module that is run, what for)."""


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
        for command, (_, what) in COMMANDS.items():
            print(f"  {command:16} {what}")
    elif name == "--version":
        print(version("gaixie"))
    else:
        known = ", ".join(COMMANDS)
        print(f"gaixie: error: {name}: no such command, expected one of {known}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
