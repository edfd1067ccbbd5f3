"""--dry-run must estimate a run's time, space and price correctly."""

import re

import pyarrow as pa
import pytest

from gaixie.jobs.errors import JobError
from gaixie.jobs.score_corpus import main
from gaixie.jobs.scoring.dry_run import BATCH, START_S, Cluster, Measured, measure, print_estimate
from gaixie.udfs.command_line import in_time
from gaixie.udfs.spscore import SPScore
from gaixie.udfs.text.segmenters import load_segmenter

ROWS = 3 * BATCH


def measured(rows: int) -> Measured:
    columns = {
        "source": [f"今天的天气真好啊，第{n}天了。" for n in range(rows)],
        "paraphrase": [f"第{n}天了，今天天气很好。" for n in range(rows)],
        "origin": ["llm"] * rows,
        "spscore": pa.array([0.5] * rows, pa.float32()),
    }
    return measure(
        pa.table(columns), rows, SPScore.load("paper"), load_segmenter("jieba"), (3, 1000)
    )


def test_scoring_is_measured_behind_the_first_batch():
    sample = measured(ROWS)
    assert 1e-7 < sample.core_s < 1e-2
    assert 50 < sample.text_bytes < 200
    assert 1 < sample.kept_bytes < 200


def test_a_small_sample_measures_nothing(capsys):
    print_estimate([measured(BATCH + 1)], Cluster(8), 128)
    assert capsys.readouterr().out == (
        "no estimate of time and space: each input needs at least 2,000 rows\n"
    )


@pytest.mark.parametrize("cores", [10, 1000])
def test_an_estimate_goes_by_pairs_and_cores(cores, capsys):
    """The estimate must weigh inputs by pairs: 10 and 30 µs give 20, plus 14 to move a pair.

    So a billion pairs take 34,000 core-seconds.
    """
    inputs = [Measured(1e6, 10e-6, 14e-6, 100, 50), Measured(1e6, 30e-6, 14e-6, 300, 150)]
    print_estimate(inputs, Cluster(cores, 1_000_000_000, price=0.05), 128)
    text = capsys.readouterr().out
    assert f"1,000,000,000 pairs on {cores} cores" in text
    assert "20.0 µs to score" in text
    assert "200 bytes" in text
    core_hours, minutes = re.search(r"([\d.]+) core-hours; ([\d.]+) minutes", text).groups()
    assert float(core_hours) == pytest.approx(34_000 / 3600, abs=0.01)
    took = START_S + 34_000 / cores
    assert float(minutes) == pytest.approx(took / 60, abs=0.1)
    assert "100.0 GB of output in at least 782 files" in text
    assert f"  {took * cores / 3600 * 0.05:,.4f} in all" in text  # all cores from start to end


def test_a_given_speed_stands_in_for_what_was_measured(capsys):
    """A given speed must replace the measured one: two GPUs with 500 pairs/s take 1,000 s and
    15 s for a million pairs, or 0.564 hours of both."""
    cluster = Cluster(2, 1_000_000, pairs_per_second=500, price=3)
    print_estimate([measured(BATCH + 1)], cluster, 128)
    text = capsys.readouterr().out
    assert "estimate for 1,000,000 pairs on 2 cores:\n  500 pairs/s per core, as given" in text
    assert "33.3 core-minutes; 16.9 minutes" in text
    assert "1.6917 in all, 1.6917 per million pairs" in text


def test_options_of_a_dry_run_alone(tmp_path):
    line = ["--input", "examples/pairs.jsonl", "--origin", "llm", "--output", str(tmp_path / "out")]
    with pytest.raises(JobError, match="only valid with --dry-run"):
        main([*line, "--core-hour-price", "8"])


def test_a_small_run_is_estimated_in_minutes(capsys):
    print_estimate([Measured(6000, 10e-6, 14e-6, 100, 50)], Cluster(2), 128)
    text = capsys.readouterr().out
    assert "; 0.3 minutes, if" in text
    assert "about 0.3 MB of output in at least 1 files" in text
    assert (in_time(0.2), in_time(7200, "core-")) == ("0.1 minutes", "2.00 core-hours")
