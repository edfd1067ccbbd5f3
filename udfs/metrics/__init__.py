"""Metrics of paraphrases, one file each. Importing them imports neither Spark nor torch.

from gaixie.udfs.metrics import Pairs, load_metric
metric = load_metric("parascore:omega=0.1")
metric.sentence_scores(Pairs.of(sources, paraphrases, references))
metric.signature()                          # print it with every score that you report
"""

from __future__ import annotations

import re
from dataclasses import fields
from difflib import get_close_matches
from functools import partial

from gaixie.udfs.metrics.bartscore import BARTScore
from gaixie.udfs.metrics.bert_ibleu import BERTiBLEU
from gaixie.udfs.metrics.bertscore import BERTScore
from gaixie.udfs.metrics.bleu import BLEU
from gaixie.udfs.metrics.chrf import ChrF
from gaixie.udfs.metrics.edit_distance import EditDistance
from gaixie.udfs.metrics.free import Free
from gaixie.udfs.metrics.hsk import HSKEasy, HSKHard
from gaixie.udfs.metrics.ibleu import IBLEU, SelfIBLEU
from gaixie.udfs.metrics.meteor import METEOR
from gaixie.udfs.metrics.metric import Metric, Pairs
from gaixie.udfs.metrics.parascore import ParaScore
from gaixie.udfs.metrics.pinc import PINC
from gaixie.udfs.metrics.rouge import ROUGE
from gaixie.udfs.metrics.sari import SARI
from gaixie.udfs.metrics.self_bleu import SelfBLEU
from gaixie.udfs.metrics.similarity import SentenceSimilarity
from gaixie.udfs.metrics.simplification import FEATURES, Feature
from gaixie.udfs.metrics.spscore import SPScoreZh
from gaixie.udfs.metrics.ter import TER
from gaixie.udfs.metrics.weem4pg import WEEM4PG
from gaixie.udfs.spscore import JUDGEMENTS

__all__ = ["METRICS", "Free", "Metric", "Pairs", "in_words", "load_metric"]

METRICS = {
    "spscore": partial(SPScoreZh, "spscore"),
    **{f"spscore-{name}": partial(SPScoreZh, name) for name in JUDGEMENTS},
    "bleu": BLEU,
    "self-bleu": SelfBLEU,
    "ibleu": IBLEU,
    "self-ibleu": SelfIBLEU,
    "chrf": ChrF,
    "ter": TER,
    "rouge-1": partial(ROUGE, "1"),
    "rouge-2": partial(ROUGE, "2"),
    "rouge-l": partial(ROUGE, "l"),
    "meteor": METEOR,
    "pinc": PINC,
    "edit-distance": EditDistance,
    "sari": SARI,
    "weem4pg": WEEM4PG,
    "hsk-easy": HSKEasy,
    "hsk-hard": HSKHard,
    **{name: partial(Feature, name) for name in FEATURES},
    "similarity": SentenceSimilarity,
    "bertscore": BERTScore,
    "parascore": ParaScore,
    "bert-ibleu": BERTiBLEU,
    "bartscore": BARTScore,
}
"""What gives the metric of each name, the settings its arguments."""


def load_metric(spec: str, **defaults: str) -> Metric:
    """The metric of ``NAME`` or ``NAME:SETTING=VALUE:…``; ``NAME-free`` is its reference-free reading.

    defaults: values of settings, for the metrics that have them. Raises ValueError of one line for
    a name or a setting that is not there, and for a value that is none.
    """
    name, _, rest = spec.partition(":")
    settings = re.split(r":(?=\w+=)", rest) if rest else []  # values may hold colons
    base = name.removesuffix("-free")
    if base not in METRICS:
        near = get_close_matches(name, METRICS, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise ValueError(f"unknown metric {name!r}: {hint}known are {', '.join(METRICS)}")
    make = METRICS[base]
    given = len(getattr(make, "args", ()))
    types = {field.name: field.type for field in fields(getattr(make, "func", make))[given:]}
    values = {key: value for key, value in defaults.items() if key in types}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or key not in types:
            raise ValueError(f"metric {spec!r}: expected SETTING=VALUE of {', '.join(types)}")
        values[key] = _value(value, types[key], spec)
    metric = make(**values)
    return Free(metric) if base != name else metric


def in_words(error: Exception) -> str:
    """One line for what a metric raises; what to install where a package is missing."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"the package {error.name} is missing; pip install 'gaixie[metrics]' brings it"
    return " ".join(str(error).split())


def _value(text: str, kind: str, spec: str) -> object:
    """A setting's text as its field's type has it."""
    if kind == "bool" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        if "int" in kind:
            return int(text)
        if "float" in kind:
            return float(text)
    except ValueError:
        pass
    else:
        if kind.startswith("str"):
            return text
    raise ValueError(f"metric {spec!r}: {text!r} is not of type {kind}")
