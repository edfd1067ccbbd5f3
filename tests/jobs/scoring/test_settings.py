"""The shipped settings files must load."""

from pathlib import Path

import pytest

from gaixie.jobs.errors import JobError
from gaixie.jobs.scoring.settings import ScoreSettings, Thresholds, load_settings
from gaixie.udfs.spscore.stages import DEFAULT_CUTS
from gaixie.udfs.storage import storage

CONF = Path(__file__).parents[3] / "conf"


def test_the_settings_that_ship_state_no_cuts():
    settings = load_settings(str(CONF / "score.yaml"), {}, [])
    assert {origin: cuts.scores for origin, cuts in settings.thresholds.items()} == DEFAULT_CUTS


def test_cuts_of_one_origin_leave_the_others(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("cuts: {llm: {quantiles: [0.1, 0.2, 0.3]}}")
    cuts = load_settings(str(path), {}, []).thresholds
    assert cuts["llm"].quantiles == (0.1, 0.2, 0.3)
    assert cuts["human"].scores == DEFAULT_CUTS["human"]


def test_settings_in_the_store(admin):
    root = f"s3a://{admin.BUCKET}/settings"
    storage.write(f"{root}/score.yaml", "output: s3://gaixie/out\nmin_characters: 9\n")
    settings = load_settings(f"{root}/score.yaml", {}, [])
    assert (settings.output, settings.min_characters) == ("s3a://gaixie/out", 9)
    with pytest.raises(JobError, match=r"none\.yaml: no such"):
        load_settings(f"{root}/none.yaml", {}, [])


def test_inputs_take_the_csv_settings_that_they_do_not_state():
    inputs = [{"path": "a", "origin": "llm"}, {"path": "b", "origin": "llm", "csv": {"quote": ""}}]
    settings = ScoreSettings(inputs=inputs, csv={"encoding": "GB18030", "delimiter": ";"})
    first, second = settings.inputs
    assert (first.csv.encoding, first.csv.delimiter, first.csv.quote) == ("gb18030", ";", None)
    assert (second.csv.encoding, second.csv.delimiter, second.csv.quote) == ("utf-8", None, "")


def test_where_stages_begin_is_said_in_words():
    words = Thresholds(scores=(0.24, 0.44, 0.5), min_meaning=0.6).in_words()
    assert words.endswith("at a score of 0.24, 0.44 and 0.5; 2 and 3 need a meaning of 0.6")
    words = Thresholds(quantiles=(0.2, 0.5, 0.9)).in_words()
    assert words == "stages 1, 2 and 3 begin at the quantile of 0.2, 0.5 and 0.9"
