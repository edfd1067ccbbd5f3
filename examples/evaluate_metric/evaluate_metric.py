"""SPScore-zh as a metric of Hugging Face's `evaluate`.

import evaluate

metric = evaluate.load("examples/evaluate_metric")
metric.compute(sources=["他昨天去了北京。"], predictions=["昨天他去了北京。"])
"""

import datasets
import evaluate

from gaixie.udfs.spscore import OUTPUTS, SPScore


class SPScoreZh(evaluate.Metric):
    """Means of the judgements over all pairs, the score of each, and the signature."""

    def _info(self) -> evaluate.MetricInfo:
        strings = datasets.Value("string")
        return evaluate.MetricInfo(
            description="Quality of Chinese paraphrases: structure, synonyms, meaning, fluency.",
            citation="Chinese Sentence Paraphrasing",
            inputs_description="sources: sentences. predictions: a paraphrase of each.",
            features=datasets.Features({"sources": strings, "predictions": strings}),
        )

    def _download_and_prepare(self, dl_manager: object) -> None:
        tier = "core" if self.config_name in (None, "default") else self.config_name
        self.spscore = SPScore.load(tier)

    def _compute(self, sources: list[str], predictions: list[str]) -> dict[str, object]:
        outputs = self.spscore.outputs(sources, predictions)
        means = dict(zip(OUTPUTS, outputs.mean(axis=0).round(4).tolist(), strict=True))
        return {**means, "scores": outputs[:, -1].tolist(), "signature": self.spscore.signature()}
