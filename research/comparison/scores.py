"""Scores data sets with every metric, and keeps the scores in files so that a run can resume."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from gaixie.research.comparison.datasets import Config, DataSet, source_share
from gaixie.research.comparison.tuning import tune, weight_of, with_weight
from gaixie.research.fitting import data as fit_data
from gaixie.research.fitting.recipe import Material, fit, read_material, rows_to_fit, weighted
from gaixie.udfs.command_line import in_words, say
from gaixie.udfs.metrics import Free, Metric, Pairs, load_metric
from gaixie.udfs.metrics.bert_ibleu import BERTiBLEU
from gaixie.udfs.metrics.bertscore import BERTScore
from gaixie.udfs.metrics.encoder import load_encoder
from gaixie.udfs.metrics.parascore import ParaScore
from gaixie.udfs.metrics.spscore import SPScoreZh
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.storage.settings import load_settings
from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.segmenters import load_segmenter

FOLDS = 5
CROSSED = ("paper", "core")
"""Tiers that are fitted again without the sentences they score."""
WEIGHTS = {
    "omega": (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0),
    "alpha": tuple(tenth / 10 for tenth in range(11)),
}
"""Values tried for ParaScore's weight and iBLEU's."""
KEPT_TOKENS = 600_000
"""Token embeddings kept in memory: all of one set, so that each sentence is encoded once."""


@dataclass
class Scores:
    """The scores of one data set by metric, and why a metric has none.

    A metric's name is that of ``Metric``. If an earlier metric has the same name, it is the whole
    text of the settings, such as ``parascore:omega=0``.
    """

    table: pd.DataFrame
    """The table that read_data_set returns."""
    reported: np.ndarray
    """Rows that figures are reported on, bool: all except those that chose the weights."""
    metrics: dict[str, Metric] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    scores: dict[str, np.ndarray] = field(default_factory=dict)
    signatures: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


class Scorer:
    """Scores data sets and keeps the scores in files of a folder."""

    def __init__(self, config: Config, data: Path, folder: Path):
        self.config, self.data, self.folder = config, data, folder

    def score(self, data_set: DataSet, table: pd.DataFrame) -> Scores:
        """Scores with every metric of the set's language; leaves out one that cannot score it."""
        reported = source_share(table["source"], "tune") >= self.config.tune
        scored, pairs = Scores(table, reported), pairs_of(table)
        for spec in self.config.metrics.get(data_set.language, []):
            metric = load_metric(spec, model=self.config.encoder, vectors=self.config.word_vectors)
            if metric.needs_reference and not pairs.references:
                continue
            name = spec if metric.name in scored.scores else metric.name
            started = time.monotonic()
            try:
                metric = self._tuned(metric, spec, scored, pairs)
                scores = self._scores(data_set, metric, name, scored)
            except (ValueError, OSError, ImportError) as error:
                scored.left_out[name] = in_words(error)
                say(f"{data_set.name}, {name}: left out: {in_words(error)}")
                continue
            scored.metrics[name], scored.scores[name] = metric, scores
            scored.signatures[name] = metric.signature()
            settings = f" ({spec.partition(':')[2].replace(':', ', ')})" if name == spec else ""
            scored.titles[name] = metric.title + settings.replace(" ()", "")
            seconds = time.monotonic() - started
            say(f"{data_set.name}, {name}: {len(table):,} pairs, {seconds:.1f} s")
        return scored

    def _tuned(self, metric: Metric, spec: str, scored: Scores, pairs: Pairs) -> Metric:
        """Returns the metric; tunes its weight on rows kept apart, unless the settings give it."""
        weight = weight_of(metric)
        if weight is None or f":{weight}=" in spec or scored.reported.all():
            return metric
        rows = pa.array(~scored.reported)
        human = scored.table["human"].to_numpy()[~scored.reported]
        source, paraphrase, *references = (
            column.filter(rows) for column in (pairs.source, pairs.paraphrase, *pairs.references)
        )
        apart = Pairs(source, paraphrase, tuple(references))
        return with_weight(metric, tune(metric, apart, human, WEIGHTS[weight])[0])

    def _scores(
        self,
        data_set: DataSet,
        metric: Metric,
        name: str,
        scored: Scores,
    ) -> np.ndarray:
        crossed, table = is_cross_fitted(data_set, metric), scored.table
        texts = table.drop(columns=["human", "added"]).to_csv(index=False)
        digest = hashlib.sha256(texts.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        key = f"{metric.signature()}|{'cross-fitted' if crossed else ''}|{digest}"
        path = self.folder / "scores" / data_set.name / f"{name.replace('/', '_')}.parquet"
        if path.is_file():
            kept = pq.read_table(path)
            if (kept.schema.metadata or {}).get(b"gaixie") == key.encode():
                return kept["score"].to_numpy()
        if crossed and isinstance(metric, SPScoreZh):
            scores = self._cross_fitted(table, metric)
        else:
            of = metric.metric if isinstance(metric, Free) else metric
            if isinstance(of, BERTScore | ParaScore | BERTiBLEU):
                encoder = load_encoder(of.model, of.layer, of.device, of.precision)
                encoder.keep_tokens = KEPT_TOKENS
            scores = metric.sentence_scores(pairs_of(table))
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = pa.table({"score": scores}).replace_schema_metadata({"gaixie": key})
        part = path.with_suffix(".part")
        pq.write_table(kept, part)
        part.replace(path)
        return scores

    @cached_property
    def _fitted_on(self) -> tuple[fit_data.Config, Material]:
        """Returns the config and material that the shipped SPScore-zh was fitted on."""
        config = load_settings(fit_data.Config, fit_data.CONFIG)
        rated = fit_data.read_rated(config.rated, self.data)
        return config, read_material(config, rated, self.data, load_segmenter(config.segmenter))

    def _cross_fitted(self, table: pd.DataFrame, metric: SPScoreZh) -> np.ndarray:
        """Scores each row with a model that saw no group containing either of its sentences."""
        texts = table[["source", "paraphrase"]].map(normalise)
        config, material = self._fitted_on
        rated, used = material.rated, rows_to_fit(material, config)
        rows = weighted(material, metric.tier, config)[used]
        features = fit_data.extract(texts["source"], texts["paraphrase"], metric.loaded()[1])
        fold = (source_share(texts["source"], "fold") * FOLDS).astype(int)
        scores = np.empty(len(table))
        for number in range(FOLDS):
            here = fold == number
            hidden = pd.unique(texts[here].to_numpy(object).ravel())
            shared = rated["source"].isin(hidden) | rated["paraphrase"].isin(hidden)
            groups = [*hidden, *rated["group"][shared]]
            model = fit(rows[~np.isin(rows.groups, groups)], metric.tier, config)
            outputs = model.predict(features[here][:, : len(model.columns)])
            scores[here] = outputs[:, OUTPUTS.index(metric.output)]
        return scores


def is_cross_fitted(data_set: DataSet, metric: Metric) -> bool:
    """Says whether the metric was fitted on the set, and so must be refitted without its rows."""
    return data_set.fitted and isinstance(metric, SPScoreZh) and metric.tier in CROSSED


def pairs_of(table: pd.DataFrame) -> Pairs:
    names = [name for name in ("source", "paraphrase", "reference") if name in table]
    return Pairs.of(*[pa.array(table[name], pa.string()) for name in names])
