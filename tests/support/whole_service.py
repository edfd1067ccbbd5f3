"""Makes the application with all parts: the examples as a run, a tiny model, the metric."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json as pj
from fastapi import FastAPI
from manifests import write_scored
from tiny_seq2seq import tiny_seq2seq

from gaixie.service.app import make_app
from gaixie.service.browsing.pairs import Pairs
from gaixie.service.browsing.part import BrowsingPart
from gaixie.service.paraphrasing import ParaphrasingPart
from gaixie.service.scoring import ScoringPart
from gaixie.service.settings import ServiceSettings
from gaixie.service.trained_writer import Model, ModelWriter
from gaixie.training.modeling.generator import Decoding
from gaixie.training.modeling.paraphraser import Ranking
from gaixie.udfs.meaning.why import explainer
from gaixie.udfs.spscore import OUTPUTS, SPScore
from gaixie.udfs.storage.manifest import read_run

ROOT = Path(__file__).parents[2]
LEARNT = [("今天公园很好看", "公园今天很好看"), ("我们昨天读书", "昨天我们读了书")]
"""Pairs that the model knows by heart."""


def scored_examples() -> pa.Table:
    """Returns the example pairs with the columns of a run."""
    table = pj.read_json(ROOT / "examples/pairs.jsonl").select(["source", "paraphrase"])
    judged = SPScore.load().judge(table["source"], table["paraphrase"])
    for name in OUTPUTS:
        table = table.append_column(name, pa.array(judged[name], pa.float32()))
    return table.append_column("pair_id", pa.array([f"{k:032x}" for k in range(len(table))]))


def whole_app(folder: Path, table: pa.Table, **limits: Any) -> FastAPI:
    """Returns the application. folder: an empty folder for its files."""
    uri = write_scored(folder / "runs" / "examples", {("llm", 1): table})
    manifest, settings = read_run(uri), ServiceSettings(**limits)
    (folder / "model").mkdir()
    model = Model(tiny_seq2seq(folder / "model", LEARNT), Decoding(beams=4), Ranking())
    why = explainer("SPScore-zh|tier:core|")
    parts = [
        BrowsingPart(Pairs(uri, manifest), manifest, why, settings),
        ParaphrasingPart(ModelWriter(model, settings.max_characters), settings),
        ScoringPart("core", settings),
    ]
    return make_app(parts, settings)
