"""Fit SPScore-zh to human scores: cross-validate, ablate, save the model with a card and plots.

Reads tables of sentence pairs with scores (and, through a config, sets of rewrites by humans from
which contrasts are made), and writes a folder that ``SPScore.load`` reads.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from jobs.common import fit_data as data
from udfs.features import FEATURES
from udfs.on_disk import on_disk
from udfs.spscore import DEFAULT_FOLDER, SPScore
from udfs.spscore.fit import ablations, bootstrap_interval, cross_validate, spearman
from udfs.text.segment import Segmenter, load_segmenter

EXAMPLES = """examples:
  # one table with human grades from 0 to 5
  python jobs/fit_spscore.py --input grades.csv --scale fine --output models/mine

  # right or wrong (1 or 0), other column names, the neural back-end
  python jobs/fit_spscore.py --input pairs.parquet --scale coarse --score-column label \\
      --source-column s1 --paraphrase-column s2 --backend neural --output models/mine

  # the model that ships with Gaixie; --dry-run only reads and counts
  python jobs/fit_spscore.py --config conf/spscore.yaml --data ../shared/data --dry-run
  python jobs/fit_spscore.py --config conf/spscore.yaml --data ../shared/data

a table is CSV, TSV, JSON lines or Parquet; scales: fine 0-5, coarse 0 or 1, unit 0-1"""

RANKED = ("copy", "edit", "first_half", "unrelated", "words_shuffled", "own_first_half")
"""The contrasts by which the ranking test is reported first; the others follow."""


@dataclass
class Rows:
    """Rows to fit on: features (rows, 8), target, weight and group (source) of each."""

    features: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    groups: np.ndarray

    def __getitem__(self, rows) -> Rows:
        return Rows(self.features[rows], self.target[rows], self.weight[rows], self.groups[rows])

    @classmethod
    def join(cls, *parts: Rows) -> Rows:
        names = ("features", "target", "weight", "groups")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def main(argv: list[str] | None = None) -> int:
    arguments = parse_arguments(argv)
    try:
        given = (arguments.output, arguments.data, arguments.input, arguments.config)
        with on_disk(*given) as (output, folder, arguments.input, arguments.config):
            return fit(arguments, folder, output)
    except (ValueError, OSError) as error:
        print(f"fit_spscore: {error}", file=sys.stderr)
        return 2


def fit(arguments: argparse.Namespace, folder: Path, output: Path) -> int:
    """Read, count, fit and save."""
    config = settings(arguments)
    graded, rewrites = data.read_pairs(config, folder)
    print_counts(config, graded, rewrites)
    if graded.table.empty:
        raise ValueError("no set has a score column, expected human scores in at least one")
    found = graded.table["source"].nunique()
    if found < config.folds:
        raise ValueError(
            f"{found} different sources with scores, expected at least {config.folds} "
            "(one for each fold; --folds sets their number)"
        )
    if arguments.dry_run:
        return 0
    fit_and_save(config, graded, rewrites, folder, output)
    return 0


def parse_arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="fit_spscore.py",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--input", help="a table with source, paraphrase and score")
    what.add_argument("--config", help="settings and several sets, as in conf/spscore.yaml")
    parser.add_argument("--scale", choices=list(data.SCALES), help="of --input's scores (required)")
    parser.add_argument("--source-column", default="source")
    parser.add_argument("--paraphrase-column", default="paraphrase")
    parser.add_argument("--score-column", default="score")
    parser.add_argument("--data", default=".", help="folder that the config's paths start from")
    parser.add_argument(
        "--output", default=str(DEFAULT_FOLDER), help="folder to write (default: %(default)s)"
    )
    parser.add_argument("--backend", choices=["lightgbm", "neural"])
    parser.add_argument("--segmenter", help="jieba or ltp:NAME_OR_FOLDER")
    parser.add_argument("--seeds", type=int, help="the model is the mean of this many fits")
    parser.add_argument("--folds", type=int, help="of the cross-validation by source")
    parser.add_argument("--dry-run", action="store_true", help="read and count, write nothing")
    arguments = parser.parse_args(argv)
    if arguments.input and not arguments.scale:
        parser.error("--input needs --scale fine, coarse or unit")
    if arguments.input and arguments.output == str(DEFAULT_FOLDER) and not arguments.dry_run:
        parser.error("--input needs --output (without it the shipped model would be replaced)")
    return arguments


def settings(arguments: argparse.Namespace) -> data.Config:
    """The config of the command line: a file's, or one made of --input and its columns."""
    if arguments.config:
        config = data.load_config(Path(arguments.config))
    else:
        table = data.TableSet(
            name=Path(arguments.input).name,
            path=str(Path(arguments.input).absolute()),
            source_column=arguments.source_column,
            paraphrase_column=arguments.paraphrase_column,
            score_column=arguments.score_column,
            scale=arguments.scale,
        )
        config = data.Config(sets=[table])
    if arguments.backend and arguments.backend != config.backend:
        config.backend, config.parameters = arguments.backend, {}
    for name in ("segmenter", "seeds", "folds"):
        value = getattr(arguments, name)
        if value is not None:
            least = {"seeds": 1, "folds": 2}.get(name)
            if least is not None and value < least:
                raise ValueError(f"--{name} {value}, expected at least {least}")
            setattr(config, name, value)
    return config


def print_counts(config: data.Config, graded: data.Pairs, rewrites: data.Pairs) -> None:
    for label, pairs in (("graded", graded), ("rewrites", rewrites)):
        for name, read in pairs.read.items():
            kept = pairs.table[pairs.table["set"] == name]
            line = f"{name}: {label}, {read} pairs read, {len(kept)} kept"
            line += f", {kept['source'].nunique()} sources"
            if label == "rewrites":
                line += f", {int((~data.is_rewrite(kept, config)).sum())} of them near-copies"
            for reason, count in pairs.left_out[name].items():
                line += f", {count} left out ({reason})"
            print(line)


def fit_settings(config: data.Config) -> dict:
    return {"backend": config.backend, "seeds": config.seeds, "parameters": config.parameters}


def alone_settings(config: data.Config) -> dict:
    """For the human scores alone: the config's parameters are meant for its rewrites too."""
    parameters = {} if config.contrasts else config.parameters
    return {**fit_settings(config), "parameters": parameters}


def fit_and_save(
    config: data.Config, graded: data.Pairs, rewrites: data.Pairs, folder: Path, output: Path
) -> None:
    """The whole fit; the model is written last, when nothing can fail any more."""
    from jobs.common import fit_card as card  # matplotlib

    segmenter = load_segmenter(config.segmenter)
    others = data.read_others(config, folder)
    human = graded_rows(graded.table, segmenter)
    contrasts, contrast_features = training_contrasts(config, rewrites.table, others, segmenter)
    made = contrast_rows(config, contrasts, contrast_features)

    print("cross-validation by source")
    evaluation = {"human_scores": evaluate_human_scores(config, human, made)}
    for label, each in evaluation["human_scores"].items():
        interval = f"95 % {each['low']:.3f} to {each['high']:.3f}"
        print(f"  {label}: Spearman {each['spearman']:.3f} ({interval})")
    kinds = None
    if len(contrasts):
        print("ranking test on held-out sources")
        model = fit_without_held_out(config, human, made, contrasts)
        ranking, kinds = ranking_test(config, model, rewrites.table, others, segmenter)
        evaluation["ranking"] = ranking
        for kind, each in ranking["by_contrast"].items():
            print(f"  above {kind}: {100 * each['pooled']:.1f} %")
    print("ablation")
    evaluation["ablation"] = ablate(config, human, made, contrasts, rewrites, others, segmenter)

    rows = combine(config, human, made)
    name_and_version = f"{segmenter.name}-{segmenter.version}"
    summary = {
        "sets": {each.name: each.licence for each in config.sets},
        "human_scores": len(human.target),
        "rewrites_and_contrasts": len(made.target),
        "seeds": config.seeds,
        "parameters": config.parameters,
        "spearman": evaluation["human_scores"]["recipe"]["spearman"],
    }
    final = SPScore.fit(
        rows.features,
        rows.target,
        rows.weight,
        **fit_settings(config),
        segmenter=name_and_version,
        summary=summary,
    )
    evaluation["information"] = information(config, final, folder, segmenter)
    evaluation["signature"] = final.signature(segmenter)
    output.mkdir(parents=True, exist_ok=True)
    card.write(output, config, graded, rewrites, contrasts, evaluation)
    card.plot(output, final, human, kinds, evaluation)
    final.save(output)
    print(f"{final.signature(segmenter)}\n{output}")


def graded_rows(table: pd.DataFrame, segmenter: Segmenter) -> Rows:
    """The human scores as rows, of weight 1 each."""
    features = data.extract_table(table, segmenter)
    target = table["target"].to_numpy(float)
    return Rows(features, target, np.ones(len(target)), table["source"].to_numpy(object))


def training_contrasts(
    config: data.Config, rewrites: pd.DataFrame, others: list[str], segmenter: Segmenter
) -> tuple[pd.DataFrame, np.ndarray]:
    """The rewrites to fit on with their contrasts, and the features of both."""
    chosen = data.limit_sources(rewrites[data.is_rewrite(rewrites, config)], config)
    table = data.with_contrasts(chosen, list(config.contrasts), others, segmenter)
    if table.empty:
        return table, np.empty((0, len(FEATURES)), np.float32)
    return table, data.extract_table(table, segmenter)


def contrast_rows(config: data.Config, table: pd.DataFrame, features: np.ndarray) -> Rows:
    """Rewrites and contrasts as rows; targets and weights are the config's."""
    of_kind = {**config.contrasts, "rewrite": config.rewrite}
    target = np.array([of_kind[kind].target for kind in table["kind"]], float)
    weight = np.array([of_kind[kind].weight for kind in table["kind"]], float)
    return Rows(features, target, weight, table["source"].to_numpy(object))


def combine(config: data.Config, human: Rows, made: Rows) -> Rows:
    """Both kinds of rows: those made weigh 1 on average, the human scores graded_weight of that."""
    if not len(made.target):
        return human
    made = Rows(made.features, made.target, made.weight / made.weight.mean(), made.groups)
    each = config.graded_weight * len(made.target) / len(human.target)
    human = Rows(human.features, human.target, human.weight * each, human.groups)
    return Rows.join(human, made)


def out_of_fold(
    config: data.Config,
    human: Rows,
    made: Rows | None = None,
    columns: list[int] | None = None,
    fold_seed: int | None = None,
) -> np.ndarray:
    """Scores of the human-scored pairs by models that did not see their source."""
    columns = list(range(len(FEATURES))) if columns is None else columns
    extra, groups = None, ()
    if made is not None and len(made.target):
        rows = combine(config, human, made)
        human, made = rows[: len(human.target)], rows[len(human.target) :]
        extra, groups = (made.features[:, columns], made.target, made.weight), made.groups
    return cross_validate(
        human.features[:, columns],
        human.target,
        human.groups,
        human.weight,
        extra=extra,
        extra_groups=groups,
        folds=config.folds,
        fold_seed=fold_seed,
        names=[FEATURES[column] for column in columns],
        **(fit_settings(config) if extra is not None else alone_settings(config)),
    )


def evaluate_human_scores(config: data.Config, human: Rows, made: Rows) -> dict:
    """Spearman with the human scores, out of fold: fitted on them alone, and by the recipe.

    ``shuffled``: for the former, the same figure with sources dealt to folds in four other ways.
    """
    result = {}
    for label, extra in (("alone", None), ("recipe", made)):
        scores = out_of_fold(config, human, extra)
        low, high = bootstrap_interval(spearman, (scores, human.target), human.groups)
        value = spearman(scores, human.target)
        result[label] = {"spearman": value, "low": low, "high": high, "pairs": len(scores)}
    result["alone"]["shuffled"] = [
        spearman(out_of_fold(config, human, fold_seed=seed), human.target) for seed in range(4)
    ]
    return result


def fit_without_held_out(
    config: data.Config,
    human: Rows,
    made: Rows,
    contrasts: pd.DataFrame,
    columns: list[int] | None = None,
) -> Callable[[np.ndarray], np.ndarray]:
    """Fits the recipe without the held-out sources; returns its predict over all eight features."""
    columns = list(range(len(FEATURES))) if columns is None else columns
    seen = ~data.is_held_out(contrasts["source"], config.hold_out)
    held_out = data.is_held_out(pd.Series(human.groups), config.hold_out)
    shared = held_out & np.isin(human.groups, contrasts["source"].to_numpy(object))
    rows = combine(config, human[~shared], made[seen])
    names = [FEATURES[column] for column in columns]
    model = SPScore.fit(
        rows.features[:, columns], rows.target, rows.weight, names=names, **fit_settings(config)
    )
    return lambda features: model.predict(features[:, columns])


def held_out_contrasts(
    config: data.Config,
    rewrites: pd.DataFrame,
    others: list[str],
    segmenter: Segmenter,
    kinds: list[str],
) -> tuple[pd.DataFrame, np.ndarray]:
    """All rewrites of the held-out sources with fresh contrasts, and the features of both."""
    held_out = rewrites[data.is_held_out(rewrites["source"], config.hold_out)]
    table = data.with_contrasts(held_out, kinds, others, segmenter, seed=1)
    return table, data.extract_table(table, segmenter)


def win_rates(table: pd.DataFrame, scores: np.ndarray, kinds: list[str]) -> pd.DataFrame:
    """Whether each rewrite scores above its contrast: one row a pair, a column a kind.

    1 above, 0 not (a tie counts as not above), NaN where there is no such contrast.
    """
    wide = table.assign(score=scores).pivot(index="pair", columns="kind", values="score")
    rewrite = wide["rewrite"]
    return pd.DataFrame(
        {
            kind: (rewrite > wide[kind]).astype(float).where(wide[kind].notna())
            for kind in kinds
            if kind in wide
        }
    )


def ranking_test(
    config: data.Config,
    predict: Callable[[np.ndarray], np.ndarray],
    rewrites: pd.DataFrame,
    others: list[str],
    segmenter: Segmenter,
) -> tuple[dict, pd.DataFrame]:
    """How often a held-out rewrite scores above each of its contrasts, by contrast and set.

    Reported for the rewrites that differ enough from their source, and (``all``) with the
    near-copies that the fit leaves out. Also returns the scored table for the plots.
    """
    kinds = list(dict.fromkeys((*RANKED, *config.contrasts)))
    table, features = held_out_contrasts(config, rewrites, others, segmenter, kinds)
    table = table.assign(score=predict(features), **dict(zip(FEATURES, features.T, strict=True)))
    above = win_rates(table, table["score"].to_numpy(), kinds)
    first = table[table["kind"] == "rewrite"].set_index("pair")
    real = data.is_rewrite(first, config)
    by_contrast = {}
    for kind in above:
        wins = above[kind]
        entry = {"pooled": float(wins[real].mean()), "all": float(wins.mean())}
        entry["low"], entry["high"] = bootstrap_interval(
            lambda column: float(np.nanmean(column)),
            (wins[real].to_numpy(),),
            first["source"][real],
        )
        for name in first["set"].unique():
            entry[name] = float(wins[real & (first["set"] == name)].mean())
        by_contrast[kind] = entry
    pairs = {name: int((real & (first["set"] == name)).sum()) for name in first["set"].unique()}
    counts = {"pairs": pairs, "sources": int(first["source"].nunique()), "all": len(first)}
    return {"by_contrast": by_contrast, "held_out": counts}, table


def ablate(
    config: data.Config,
    human: Rows,
    made: Rows,
    contrasts: pd.DataFrame,
    rewrites: data.Pairs,
    others: list[str],
    segmenter: Segmenter,
) -> dict:
    """The paper's Table 3: the same figures without each feature and without each group.

    ``alone``: Spearman out of fold, fitted on the human scores; ``ranking``: mean over the first
    six contrasts of how often a held-out rewrite scores above it, and the worst of them, by a single fit.
    """
    held_out = None
    one_seed = config.model_copy(update={"seeds": 1})
    if len(contrasts):
        held_out = held_out_contrasts(config, rewrites.table, others, segmenter, list(RANKED))
    result = {}
    for label, without in {"none": (), **ablations()}.items():
        columns = [k for k, name in enumerate(FEATURES) if name not in without]
        entry = {"without": list(without)}
        entry["alone"] = spearman(out_of_fold(config, human, None, columns), human.target)
        if held_out is not None:
            table, features = held_out
            predict = fit_without_held_out(one_seed, human, made, contrasts, columns)
            first = table[table["kind"] == "rewrite"]
            real = first["pair"].to_numpy()[data.is_rewrite(first, config)]
            rates = win_rates(table, predict(features), list(RANKED)).loc[real].mean()
            entry["ranking"], entry["worst"] = float(rates.mean()), float(rates.min())
        result[label] = entry
    return result


def information(
    config: data.Config, model: SPScore, folder: Path, segmenter: Segmenter
) -> dict[str, dict]:
    """Figures on sets that no fit saw: AUC where the scale is coarse, Spearman otherwise."""
    from sklearn.metrics import roc_auc_score

    result = {}
    for each in config.information:
        table = data.read_set(each, folder).dropna()
        scores = model.predict(data.extract_table(table, segmenter))
        target = table["target"].to_numpy()
        coarse = each.scale == "coarse"
        value = roc_auc_score(target, scores) if coarse else spearman(scores, target)
        result[each.name] = {"value": float(value), "pairs": len(table)}
    return result


if __name__ == "__main__":
    sys.exit(main())
