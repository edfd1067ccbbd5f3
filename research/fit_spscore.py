"""Fits SPScore-zh to rated pairs: cross-validates, then saves a model of each tier with its card.

Reads a table of sentence pairs with five ratings (structure, synonyms, meaning, fluency, overall).
Writes a folder for each tier, which ``SPScore.load`` reads: model, card.md, evaluation.json, plots.

examples:
  # the models that ship with Gaixie
  python research/fit_spscore.py --config conf/spscore.yaml --data ../shared/data

  # also tier full, whose heads read tier core and the pair encoder (research/make_pair_encoder.py)
  python research/fit_spscore.py --config conf/spscore.yaml --data ../shared/data \\
      --tier core --tier full

  # your own ratings from 0 to 5: columns source, paraphrase, structure, synonyms, meaning,
  # fluency, overall; optionally group, kind and origin
  python research/fit_spscore.py --input ratings.csv --output models/mine --tier core

  # one expert score, as in the paper; a tenth of the groups is kept for testing. A column coarse
  # marks rows (true or 1) whose score is only 0 or 1
  python research/fit_spscore.py --input scores.csv --score expert --test 0.1 --tier paper \\
      --output models/mine

a table is CSV, TSV, JSON lines or Parquet
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from gaixie.research.fitting import data
from gaixie.research.ratings.rated import RATINGS, Rated, RatedTable
from gaixie.research.ratings.tables import source_share
from gaixie.udfs.command_line import make_parser, positive, run_command
from gaixie.udfs.spscore import SHIPPED, TIERS, SPScore
from gaixie.udfs.storage.local_copy import local_copy
from gaixie.udfs.storage.settings import load_settings
from gaixie.udfs.text.segmenters import load_segmenter


def main(argv: list[str] | None = None) -> int:
    arguments = parse_arguments(argv)

    def work() -> None:
        given = (arguments.output, arguments.data, arguments.input, arguments.config)
        with local_copy(*given) as (output, folder, arguments.input, arguments.config):
            run(arguments, folder, output)

    return run_command("fit_spscore", work)


def run(arguments: argparse.Namespace, folder: Path, output: Path) -> None:
    """Reads and counts the pairs, fits each tier, and saves it."""
    config = settings(arguments)
    rated = data.read_rated(config.rated, folder)
    groups = rated["group"].nunique()
    if groups < config.folds:
        raise ValueError(f"{config.rated.name}: {groups} groups, fewer than --folds {config.folds}")
    print(f"{config.rated.name}: {len(rated):,} rated pairs in {groups:,} groups")
    rated, test = apart(rated, arguments.test)
    # LightGBM, matplotlib and torch take seconds to import.
    from gaixie.research.fitting.recipe import read_material
    from gaixie.research.fitting.report import fit_and_save, fit_full

    segmenter = load_segmenter(config.segmenter)
    material = read_material(config, rated, folder, segmenter)
    for tier in arguments.tier or ("paper", "core"):
        if tier == "full":
            fit_full(config, material, folder, segmenter, output / tier)
        else:
            fit_and_save(config, tier, material, segmenter, output / tier, folder=folder)
        if len(test):
            # The encoder of tier full was trained on most groups.
            unseen = test[test["part"] != "encoder"] if tier == "full" else test
            figures = tested(unseen, output / tier)
            (output / tier / "test.json").write_text(json.dumps(figures, indent=1) + "\n")
            print(f"{tier}, tested on {len(unseen):,} pairs: {figures['spscore']}")


def apart(rated: pd.DataFrame, share: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the pairs to fit on, and a share of the groups, chosen by a hash, to test on."""
    if not 0 <= share < 1:
        raise ValueError(f"--test {share:g}, expected a share from 0 to below 1")
    out = source_share(rated["group"], "test") < share
    return rated[~out].reset_index(drop=True), rated[out].reset_index(drop=True)


def tested(test: pd.DataFrame, folder: Path) -> dict[str, dict[str, float]]:
    """Returns the correlations of a fitted model's outputs with ratings it has not seen."""
    from gaixie.research.fitting.evaluation import correlations

    source, paraphrase = test[data.TEXTS].to_numpy().T.tolist()
    outputs = SPScore.load(str(folder)).outputs(source, paraphrase)
    targets, groups = test[list(RATINGS)].to_numpy(float), test["group"].to_numpy(object)
    return correlations(outputs, targets, groups, {"test": np.ones(len(test), bool)})["test"]


def parse_arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("fit_spscore.py", __doc__)
    add = parser.add_argument
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--input", help="a table of rated pairs")
    what.add_argument("--config", help="settings and sets, as in conf/spscore.yaml")
    score = "of --input: one expert score that all heads learn, instead of five ratings"
    add("--score", metavar="COLUMN", help=score)
    test = "share of the groups that no fit sees, tested on; fits to rated pairs alone"
    add("--test", type=float, default=0.0, metavar="SHARE", help=test)
    add("--data", default=".", help="folder that the config's paths start from")
    add("--output", default=str(SHIPPED), help="folder to write (default: %(default)s)")
    add("--tier", action="append", choices=TIERS, help="may be repeated (default: paper and core)")
    add("--segmenter", help="jieba or ltp:NAME_OR_FOLDER")
    add("--seeds", type=positive, help="each head is the mean of this many fits")
    add("--folds", type=positive, help="of the cross-validation by group")
    add("--ablation", action="store_true", help="fit again without each feature; takes long")
    arguments = parser.parse_args(argv)
    if arguments.input and arguments.output == str(SHIPPED):
        parser.error("--input needs --output (without it the shipped models would be replaced)")
    return arguments


def settings(arguments: argparse.Namespace) -> data.Config:
    """Returns the config: from a file, or made from --input and its columns.

    In both cases conf/spscore.yaml bounds the negatives.
    """
    config = load_settings(data.Config, arguments.config or data.CONFIG)
    if not arguments.config:
        config.human, config.known, config.negatives.others = [], None, None
        path = Path(arguments.input).absolute()
        tables = [RatedTable(path=str(path))]
        config.rated = Rated(name=path.name, tables=tables, score_column=arguments.score)
    if arguments.test:  # a human score or a written group may share its source with a test pair
        config.human, config.known = [], None
    config.ablation |= arguments.ablation
    for name in ("segmenter", "seeds", "folds"):
        if (value := getattr(arguments, name)) is not None:
            setattr(config, name, value)
    return config


if __name__ == "__main__":
    sys.exit(main())
