"""--new-only must take a file for new unless a run has scored just it, whole, in this way."""

from datetime import UTC, datetime, timedelta

import pytest
from manifests import run_manifest

from gaixie.jobs.corpus.parquet import input_entry
from gaixie.jobs.scoring.run import unseen_by
from gaixie.jobs.scoring.settings import ScoreSettings
from gaixie.udfs.storage.storage import File

FILE = File("file:/pairs/monday.parquet", 7, datetime(2026, 1, 1, tzinfo=UTC))
INPUT = {"path": "/pairs", "origin": "llm"}


@pytest.mark.parametrize(
    ("file", "given", "run", "is_new"),
    [
        ({}, {}, {}, False),
        ({}, {"inputs": [INPUT | {"path": "/pairs/monday.parquet", "license": "CC0"}]}, {}, False),
        ({"size": 8}, {}, {}, True),
        ({"modified": FILE.modified + timedelta(seconds=1)}, {}, {}, True),
        ({"uri": "file:/pairs/tuesday.parquet"}, {}, {}, True),
        ({}, {"min_characters": 16}, {}, True),
        ({}, {"inputs": [INPUT | {"source_column": "text"}]}, {}, True),
        ({}, {}, {"limit": 50}, True),
        ({}, {}, {"settings": {"inputs": [{"of": "another version"}]}}, True),
    ],
)
def test_what_is_new(file, given, run, is_new):
    told = {"settings": ScoreSettings(inputs=[INPUT]).model_dump(), "limit": None} | run
    made = run_manifest(**told, inputs=[input_entry("/pairs", "parquet", [FILE])])
    now = ScoreSettings(**{"inputs": [INPUT]} | given)
    assert unseen_by([made], now)(now.inputs[0], File(**vars(FILE) | file)) == is_new
