"""Holds the metrics of paraphrases, one file each. Importing them loads neither Spark nor torch.

from gaixie.udfs.metrics import Pairs, load_metric
metric = load_metric("parascore:omega=0.1")
metric.sentence_scores(Pairs.of(sources, paraphrases, references))
metric.signature()                          # print it with every score that you report
"""

from gaixie.udfs.metrics.metric import Free, Metric, Pairs
from gaixie.udfs.metrics.registry import METRICS, load_metric

__all__ = ["METRICS", "Free", "Metric", "Pairs", "load_metric"]
