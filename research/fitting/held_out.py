"""What tier full is worth on judgements that are no ratings: human scores, and translations.

Human scores of paraphrases (BQ-Para): an encoder and a regression are fitted to them in
cross-validation by source. Judged translations (WMT 2024, ESA): of the documents that nothing was
trained on, the texts of a segment are ranked as a metric ranks them, and as people did.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import kendalltau

from gaixie.research.fitting import evaluation, pair_encoder
from gaixie.research.fitting.encoder_examples import (
    EncoderConfig,
    Example,
    held_out_documents,
    read_segments,
)
from gaixie.research.fitting.pair_encoder import Network
from gaixie.research.fitting.recipe import Material
from gaixie.udfs.metrics.bootstrap import bootstrap_interval
from gaixie.udfs.spscore.fit import fit_model, group_folds
from gaixie.udfs.text.normalise import normalise

Score = Callable[[Sequence[str], Sequence[str]], np.ndarray]
FOLDS = 5
PARAMETERS = {"num_iterations": 300, "num_leaves": 15, "min_data_in_leaf": 15, "lambda_l2": 5}


def human_scores(
    base: Network, material: Material, settings: EncoderConfig, work: Path
) -> dict[str, Any]:
    """Spearman with human scores, cross-validated by source, with its 95 % interval.

    base: the encoder before it saw rated pairs. For each fold it is trained on the scores of the
    other sources; a regression then reads its outputs beside the features of core.
    """
    texts, rows = material.human_texts, material.human
    if rows is None:
        raise ValueError("no human scores to cross-validate: the config has no human")
    pairs = list(zip(texts["source"], texts["paraphrase"], strict=True))
    human = texts["human"].to_numpy(float)
    examples = [
        Example(*pair, {"human": score}, None, 1.0)
        for pair, score in zip(pairs, human, strict=True)
    ]
    folds = list(group_folds(rows.groups.tolist(), FOLDS, seed=0))
    columns = np.zeros((len(pairs), len(pair_encoder.TASKS)), np.float32)
    for number, (fitted, hidden) in enumerate(folds):
        network = replace(base, network=copy.deepcopy(base.network))
        epochs = [[examples[k] for k in fitted]] * settings.second.epochs
        path = work / f"human-{number}.pt"
        pair_encoder.train(network, epochs, settings.second, settings.seed, path)
        columns[hidden] = pair_encoder.predict(network, [pairs[k] for k in hidden])
    features = np.hstack([rows.features, columns])
    names = [str(k) for k in range(features.shape[1])]
    scores = np.zeros(len(pairs))
    for fitted, hidden in folds:
        model = fit_model(
            features[fitted], human[fitted], names=names, seeds=1, parameters=PARAMETERS
        )
        scores[hidden] = model.predict(features[hidden])
    groups = rows.groups
    low, high = bootstrap_interval(evaluation.spearman, (scores, human), groups, evaluation.SAMPLES)
    return {
        "pairs": len(pairs),
        "sources": len(set(groups.tolist())),
        "encoder": evaluation.spearman(columns[:, -1], human),
        "spearman": evaluation.spearman(scores, human),
        "low": low,
        "high": high,
    }


def translations(
    path: Path, settings: EncoderConfig, metrics: Mapping[str, Score]
) -> dict[str, Any]:
    """Kendall's tau-b within a segment, its mean over the segments of held-out documents.

    A text's score is the mean of a metric over the pairs (another text of the segment, the text).
    Intervals resample documents. A segment where people or the metric see no difference counts 0.
    """
    documents = held_out_documents(path, settings)
    segments = [texts for texts in read_segments(path) if texts[0]["document"] in documents]
    sources, paraphrases, positions = [], [], []
    for number, segment in enumerate(segments):
        texts = [normalise(text["text"]) for text in segment]
        for position, text in enumerate(texts):
            for other in texts:
                if other != text:
                    sources.append(other)
                    paraphrases.append(text)
                    positions.append((number, position))
    number, position = np.array(positions).T
    judged = [np.array([text["score"] for text in segment]) for segment in segments]
    groups = [segment[0]["document"] for segment in segments]
    table = []
    for name, score in metrics.items():
        values = np.asarray(score(sources, paraphrases), float)
        taus: list[float] = []
        for k, people in enumerate(judged):
            inside = number == k
            totals = np.bincount(position[inside], values[inside], len(people))
            counts = np.bincount(position[inside], minlength=len(people))
            tau = kendalltau(totals / np.maximum(counts, 1), people).statistic
            taus.append(0.0 if np.isnan(tau) else float(tau))
        column = np.array(taus)
        low, high = bootstrap_interval(np.mean, (column,), groups, evaluation.SAMPLES)
        table.append({"metric": name, "tau": float(column.mean()), "low": low, "high": high})
    return {
        "documents": len(documents),
        "segments": len(segments),
        "texts": sum(map(len, judged)),
        "metrics": sorted(table, key=lambda row: -row["tau"]),
    }
