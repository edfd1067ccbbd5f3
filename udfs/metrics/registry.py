"""Finds metrics by name, and parses a name with settings such as ``parascore:omega=0.1``."""

import re
from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from typing import Any

from pydantic import ValidationError

from gaixie.udfs.metrics.as_called import VARIANTS, AsCalled
from gaixie.udfs.metrics.bert_ibleu import BERTiBLEU
from gaixie.udfs.metrics.bertscore import BERTScore
from gaixie.udfs.metrics.bleu import BLEU, IBLEU, SelfBLEU
from gaixie.udfs.metrics.chrf_ter import TER, ChrF
from gaixie.udfs.metrics.edit_distance import EditDistance
from gaixie.udfs.metrics.hsk import HSKEasy, HSKHard
from gaixie.udfs.metrics.identification import Identification
from gaixie.udfs.metrics.large_judge import LargeJudge
from gaixie.udfs.metrics.meteor import METEOR
from gaixie.udfs.metrics.metric import Free, Metric
from gaixie.udfs.metrics.parascore import ParaScore
from gaixie.udfs.metrics.pinc import PINC
from gaixie.udfs.metrics.rouge import ROUGE
from gaixie.udfs.metrics.sari import SARI
from gaixie.udfs.metrics.similarity import SentenceSimilarity
from gaixie.udfs.metrics.simplification import FEATURES, Feature
from gaixie.udfs.metrics.spscore import SPScoreZh
from gaixie.udfs.metrics.weem4pg import WEEM4PG
from gaixie.udfs.paraphrase.judge import JUDGED
from gaixie.udfs.spscore import JUDGEMENTS
from gaixie.udfs.storage.settings import first_fault

_SURFACE = (BLEU, SelfBLEU, IBLEU, ChrF, TER)
_WORDS = (METEOR, PINC, EditDistance, SARI, WEEM4PG, HSKEasy, HSKHard)
_MODELS = (SentenceSimilarity, BERTScore, ParaScore, BERTiBLEU, Identification)

METRICS: dict[str, Callable[..., Metric]] = {
    "spscore": partial(SPScoreZh, "spscore"),
    **{f"spscore-{name}": partial(SPScoreZh, name) for name in JUDGEMENTS},
    **{metric.name: metric for metric in _SURFACE},
    **{f"rouge-{variant}": partial(ROUGE, variant) for variant in ("1", "2", "l")},
    **{metric.name: metric for metric in _WORDS},
    **{name: partial(Feature, name) for name in FEATURES},
    **{metric.name: metric for metric in _MODELS},
    "judge": partial(LargeJudge, "overall"),
    **{f"judge-{name}": partial(LargeJudge, name) for name in JUDGED if name != "overall"},
    **{f"{name}-as-called": partial(AsCalled, name) for name in VARIANTS},
}
"""Maps a name to what makes its metric: a class, or a partial that fixes its first fields."""


def load_metric(spec: str, **defaults: str) -> Metric:
    """Loads ``NAME`` or ``NAME:SETTING=VALUE:…``; ``NAME-free`` is the reference-free form.

    defaults: values of settings, for the metrics that have them. Raises ValueError, in one line,
    for an unknown name or setting, and for a value of the wrong type.
    """
    name, _, rest = spec.strip().partition(":")
    settings = re.split(r":(?=\w+=)", rest) if rest else []  # values may hold colons
    base = name.removesuffix("-free")
    if base not in METRICS:
        near = get_close_matches(name, METRICS, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise ValueError(f"unknown metric {name!r}: {hint}known metrics: {', '.join(METRICS)}")
    make = METRICS[base]
    known, fixed = (make.func, len(make.args)) if isinstance(make, partial) else (make, 0)
    names: list[str] = [*getattr(known, "__dataclass_fields__", {})][fixed:]
    values: dict[str, Any] = {key: value for key, value in defaults.items() if key in names}
    for setting in settings:
        key, equals, values[key] = setting.partition("=")
        if not equals or key not in names:
            raise ValueError(f"metric {spec!r}: expected SETTING=VALUE of {', '.join(names)}")
    try:
        metric = make(**values)
    except ValidationError as error:
        raise ValueError(f"metric {spec!r}: {first_fault(error)}") from None
    return Free(metric) if base != name else metric
