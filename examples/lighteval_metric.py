"""SPScore-zh as a metric of lighteval: how good a model's paraphrases of the sentences of a task
are.

    pip install gaixie lighteval
    metric = spscore()          # of a lighteval task: LightevalTaskConfig(metrics=[spscore()], …)

The task's documents have the sentence as their query, or under specific["source"] where the query
is a prompt. The metric's name is the signature: only scores with the same one compare.
"""

from __future__ import annotations

import numpy as np
from lighteval.metrics.metrics_sample import SampleLevelComputation
from lighteval.metrics.utils.metric_utils import SampleLevelMetric
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc, SamplingMethod

from gaixie.udfs.spscore import SPScore


class Computation(SampleLevelComputation):
    """The spscore of a model's first answer, from 0 to 1; its mean where a run has several."""

    def __init__(self, tier: str = "core"):
        self.metric = SPScore.load(tier)

    def compute(self, doc: Doc, model_response: ModelResponse, **_: object) -> float:
        source = (doc.specific or {}).get("source", doc.query)
        return float(self.metric.score([source], [model_response.final_text[0]])[0])


def spscore(tier: str = "core") -> SampleLevelMetric:
    """The metric of a tier."""
    computation = Computation(tier)
    return SampleLevelMetric(
        metric_name=computation.metric.signature(),
        higher_is_better=True,
        category=SamplingMethod.GENERATIVE,
        sample_level_fn=computation,
        corpus_level_fn=np.mean,
    )


if __name__ == "__main__":
    answer = ModelResponse(text=["昨天他去了北京。"])
    document = Doc(query="他昨天去了北京。", choices=[], gold_index=0)
    print(spscore().compute_sample(doc=document, model_response=answer))
