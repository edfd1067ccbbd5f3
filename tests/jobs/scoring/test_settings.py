"""The shipped settings files must load."""

from pathlib import Path

import pytest
from manifests import run_manifest

from gaixie.jobs.corpus.runs import CLEANED
from gaixie.jobs.scoring.run import cuts_of
from gaixie.jobs.scoring.settings import Cuts, ScoreSettings, load_settings
from gaixie.udfs.command_line import UserError
from gaixie.udfs.spscore.stages import DEFAULT_MIN_MEANING, DEFAULT_QUANTILES
from gaixie.udfs.storage import storage

CONF = Path(__file__).parents[3] / "conf"


def test_the_settings_that_ship_state_no_cuts():
    settings = load_settings(str(CONF / "score.yaml"), {}, [])
    found = {origin: cuts.quantiles for origin, cuts in settings.cuts.items()}
    assert found == DEFAULT_QUANTILES
    assert {cuts.min_meaning for cuts in settings.cuts.values()} == {DEFAULT_MIN_MEANING}


def test_cut_points_of_an_earlier_run(tmp_path):
    """Its data may be deleted. Another signature, or an origin that it lacks, must be refused."""
    folder = str(tmp_path)
    cuts = {"llm": [0.1, 0.2, 0.3], "human": [None] * 3}
    run = run_manifest(cuts=cuts, min_meaning=dict.fromkeys(cuts, 0.6))
    storage.write(f"{folder}/{CLEANED}", run.to_json())
    settings = ScoreSettings(inputs=[{"path": "x", "origin": "llm"}])
    kept = {"llm": Cuts(scores=(0.1, 0.2, 0.3), min_meaning=0.6)}
    assert cuts_of(folder, settings, run.signature) == kept
    with pytest.raises(UserError, match="scored by"):
        cuts_of(folder, settings, "another")
    settings.inputs[0].origin = "human"
    with pytest.raises(UserError, match=r"give cuts\.human\.scores"):
        cuts_of(folder, settings, run.signature)


def test_cuts_of_one_origin_leave_the_others(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("cuts: {llm: {scores: [0.1, 0.2, 0.3]}, human: {min_meaning: 0.7}}")
    cuts = load_settings(str(path), {}, []).cuts
    assert (cuts["llm"].scores, cuts["llm"].quantiles) == ((0.1, 0.2, 0.3), None)
    assert (cuts["human"].min_meaning, cuts["human"].scores) == (0.7, None)
    assert cuts["human"].quantiles == DEFAULT_QUANTILES["human"]


def test_cuts_that_are_none():
    for points in ("[0.3, 0.2, 0.4]", "[0.1, 0.2, 1.1]", "[0.1, 0.2]", "[0.1, .nan, 0.6]"):
        with pytest.raises(UserError, match=r"cuts\.llm"):
            load_settings(str(CONF / "score.yaml"), {}, [f"cuts.llm.quantiles={points}"])
    with pytest.raises(UserError, match="target_file_mb"):
        load_settings(str(CONF / "score.yaml"), {"target_file_mb": "inf"}, [])


def test_settings_in_the_store(admin):
    root = f"s3a://{admin.BUCKET}/settings"
    storage.write(f"{root}/score.yaml", "output: s3://gaixie/out\nmin_characters: 9\n")
    settings = load_settings(f"{root}/score.yaml", {}, [])
    assert (settings.output, settings.min_characters) == ("s3a://gaixie/out", 9)
    with pytest.raises(UserError, match=r"none\.yaml: no such"):
        load_settings(f"{root}/none.yaml", {}, [])


def test_inputs_take_the_csv_settings_that_they_do_not_state():
    inputs = [{"path": "a", "origin": "llm"}, {"path": "b", "origin": "llm", "csv": {"quote": ""}}]
    settings = ScoreSettings(inputs=inputs, csv={"encoding": "GB18030", "delimiter": ";"})
    first, second = settings.inputs
    assert (first.csv.encoding, first.csv.delimiter, first.csv.quote) == ("gb18030", ";", None)
    assert (second.csv.encoding, second.csv.delimiter, second.csv.quote) == ("utf-8", None, "")
