"""The measures of an evaluation: metrics of udfs/metrics, and three that count, defined here.

All texts are normalised (gaixie.udfs.text.normalise) before anything is measured.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gaixie.udfs.metrics import Metric, Pairs, load_metric
from gaixie.udfs.metrics.bootstrap import Resamples, diversity, estimate, leave_one_out, mean_of
from gaixie.udfs.text.entities import EntityFinder, load_settings
from gaixie.udfs.text.entities_kept import ENTITIES, entities_kept
from gaixie.udfs.text.normalise import NORMALISATION

METRICS = ("spscore", "spscore-meaning", "self-bleu")
REFERENCE_METRICS = (
    *("sari:tokenize=zh-word", "bleu:tokenize=zh-word", "self-bleu:tokenize=zh-word"),
    *("hsk-easy", "hsk-hard"),
)
A_PERSON = "a person"
"""Name of the row of people: the mean over the references, each against the others."""


class Count(Metric):
    """A measure that one function of source and paraphrase computes.

    is_: name, title and other attributes of a metric; without range, the measure has no bounds.
    """

    def __init__(self, score: Callable[[str, str], float], *kinds: tuple[str, str], **is_: Any):
        self._score, self._kinds = score, kinds
        self.describe(**is_)

    def scores_of(self, texts: Sequence[str], paraphrases: Sequence[str]) -> np.ndarray:
        scores = [self._score(a, b) for a, b in zip(texts, paraphrases, strict=True)]
        return np.array(scores, np.float64)

    def settings(self) -> Sequence[tuple[str, object]]:
        return ("norm", NORMALISATION), *self._kinds


def counts() -> list[Count]:
    """Returns copies (100 for a copy, else 0), entities kept, and characters per source
    character."""
    finder = EntityFinder(load_settings(ENTITIES))
    kinds = hashlib.sha256(finder.settings.model_dump_json().encode()).hexdigest()[:8]
    percent = {"range": (0.0, 100.0)}
    copy = {"name": "copies", "title": "copies %", "higher_is_better": False} | percent
    kept = {"name": "entities", "title": "entities kept %"} | percent
    length = {"name": "length-ratio", "title": "length ratio", "higher_is_better": None}
    return [
        Count(lambda a, b: 100.0 * (a == b), **copy),
        Count(lambda a, b: entities_kept(a, b, finder), ("kinds", kinds), **kept),
        Count(lambda a, b: len(b) / len(a), **length),
    ]


def measures(specs: Sequence[str] = ()) -> dict[str, Metric]:
    """Returns the metrics of some specs, SPScore-zh first, and the counts.

    specs: as load_metric takes them; none means METRICS. Raises ValueError or OSError, in one line,
    for a metric that is unknown, needs a reference, or cannot be loaded.
    """
    usable: dict[str, Metric] = {}
    for spec in dict.fromkeys(("spscore", *(specs or METRICS))):
        usable[spec] = metric = load_metric(spec)
        if metric.needs_reference:
            hint = f"{spec.split(':')[0]}-free reads the source in its place"
            raise ValueError(f"metric {spec!r} needs a reference; {hint}")
        metric.sentence_scores(Pairs.of(["改写"], ["改写"]))
    return usable | {one.name: one for one in counts()}


def about(name: str, metric: Metric) -> dict[str, Any]:
    """Returns what a report says of a measure."""
    higher = metric.higher_is_better
    return {
        "name": name,
        "title": metric.title,
        "better": "" if higher is None else "↑" if higher else "↓",
        "digits": 1 if max(getattr(metric, "range", (0.0, 1.0))) >= 100 else 3,
        "signature": metric.signature(),
    }


def statistics(scores: np.ndarray, resamples: Resamples) -> dict[str, float]:
    """Returns mean, sd (with n − 1), low and high (the mean's 95 % interval) and rows of scores.

    scores: float64, shape (rows,), NaN for no score. resamples: of these rows.
    """
    kept = scores[~np.isnan(scores)]
    mean, low, high = mean_of(scores, resamples)
    sd = float(kept.std(ddof=1)) if len(kept) > 1 else np.nan
    return {"mean": mean, "sd": sd, "low": low, "high": high, "rows": len(kept)}


def against_references(
    sources: Sequence[str],
    systems: Mapping[str, Sequence[str | None]],
    references: Mapping[str, list[str | None]],
    measures: Mapping[str, Metric],
    resamples: Resamples,
) -> dict[str, Any]:
    """Scores every system and a person against the references, with intervals, and how far people
    differ.

    systems, references: name -> texts, as many as sources. A system is scored on the rows for which
    it has a paraphrase. measures: those of the evaluation, which compare source and paraphrase.
    """
    metrics = {spec: load_metric(spec) for spec in REFERENCE_METRICS}
    source = pa.array(sources, pa.string())
    columns = [pa.array(column, pa.string()) for column in references.values()]
    sets = {name: [Pairs.of(source, texts, *columns)] for name, texts in systems.items()}
    if len(columns) > 1:
        if A_PERSON in sets:
            raise ValueError(f"a system cannot be named {A_PERSON!r}, which is the row of people")
        sets[A_PERSON] = leave_one_out(source, columns)
    spread = []
    for name, measure in measures.items():
        found = diversity(measure.sentence_scores, source, columns, resamples)
        spread.append(about(name, measure) | {key: one._asdict() for key, one in found.items()})
    return {
        "columns": [*references],
        "rows_with": int(np.any([column.is_valid() for column in columns], axis=0).sum()),
        "metrics": [about(spec, metric) for spec, metric in metrics.items()],
        "systems": {
            name: [estimate(metric, pairs, resamples)._asdict() for metric in metrics.values()]
            for name, pairs in sets.items()
        },
        "diversity": spread,
    }
