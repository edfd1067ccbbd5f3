"""jobs/fit_spscore.py: tables, scales, error lines, a whole small fit, and the shipped figures."""

import json
import random
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from jobs import fit_spscore as job
from jobs.common import fit_data as data
from udfs.spscore import DEFAULT_FOLDER, SPScore
from udfs.spscore.fit import spearman
from udfs.text.segment import load_segmenter

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared" / "data"
CHARACTERS = "春天来了我们去公园看花他昨买书今读完很好喜欢明年再见朋友城市山水风雨"


def sentence(rng, low=16, high=30):
    return "".join(rng.choice(CHARACTERS) for _ in range(rng.randint(low, high)))


def small_table(sources=24, each=3, highest=5):
    """Pairs whose score falls with the number of changed characters."""
    rng = random.Random(0)
    rows = []
    for _ in range(sources):
        source = sentence(rng)
        for _ in range(each):
            changes = rng.randint(0, highest)
            text = list(source)
            for place in rng.sample(range(len(text)), 2 * changes):
                text[place] = rng.choice(CHARACTERS)
            rows.append((source, "".join(text), highest - changes))
    return pd.DataFrame(rows, columns=["source", "paraphrase", "score"])


def run(capsys, *arguments):
    code = job.main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_dry_run_reads_every_format(capsys, tmp_path, ending):
    table, path = small_table(), tmp_path / f"pairs.{ending}"
    write = {
        "csv": lambda: table.to_csv(path, index=False),
        "tsv": lambda: table.to_csv(path, index=False, sep="\t"),
        "jsonl": lambda: table.to_json(path, orient="records", lines=True, force_ascii=False),
        "parquet": lambda: table.to_parquet(path),
    }
    write[ending]()
    output = tmp_path / "model"
    code, out, _ = run(capsys, "--input", path, "--scale", "fine", "--output", output, "--dry-run")
    assert code == 0
    assert "graded, 72 pairs read, 72 kept, 24 sources" in out
    assert not output.exists()


@pytest.mark.parametrize("backend", ["lightgbm", "neural"])
def test_a_small_fit(capsys, tmp_path, backend):
    """The folder loads; card and JSON hold the same figures."""
    path = tmp_path / "pairs.csv"
    small_table().to_csv(path, index=False)
    output = tmp_path / "model"
    arguments = ["--input", path, "--scale", "fine", "--output", output]
    arguments += ["--backend", backend, "--seeds", 1, "--folds", 2]
    code, out, err = run(capsys, *arguments)
    assert (code, err) == (0, "")
    assert SPScore.load(output).signature(load_segmenter("jieba")) in out
    evaluation = json.loads((output / "evaluation.json").read_text())
    card = (output / "card.md").read_text()
    assert f"{evaluation['human_scores']['alone']['spearman']:.3f}" in card
    assert evaluation["signature"] in card
    without = set(evaluation["ablation"])
    assert without == {"none", *job.ablations()}
    assert {path.name for path in output.glob("*.png")} == {
        "ablation.png",
        "partial_dependence.png",
    }


@pytest.mark.parametrize(
    ("scale", "scores", "expected"),
    [
        ("fine", ["0", "2.5", "5"], [0, 0.5, 1]),
        ("coarse", [0, 1, 1], [0, 1, 1]),
        ("unit", [0.2, 1.0, 0], [0.2, 1, 0]),
    ],
)
def test_scales(scale, scores, expected):
    np.testing.assert_allclose(data.map_scores(pd.Series(scores), scale, "x"), expected)


@pytest.mark.parametrize(
    ("scale", "score", "message"),
    [
        ("fine", "6", "row 2 has '6', expected a number from 0 to 5 (scale fine)"),
        ("fine", "good", "row 2 has 'good', expected a number from 0 to 5"),
        ("coarse", "0.5", "row 2 has '0.5', expected 0 or 1 (scale coarse)"),
        ("unit", "-0.1", "row 2 has '-0.1', expected a number from 0 to 1"),
        ("unit", "", "row 2 has '', expected a number from 0 to 1"),
    ],
)
def test_a_score_outside_its_scale(capsys, tmp_path, scale, score, message):
    path = tmp_path / "pairs.csv"
    path.write_text(f"source,paraphrase,score\n甲,乙,1\n丙,丁,{score}\n")
    code, _, err = run(capsys, "--input", path, "--scale", scale, "--output", tmp_path / "model")
    assert code == 2
    assert err.startswith(f"fit_spscore: {path}: column 'score': {message}")
    assert err.count("\n") == 1
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.csv", None, "none.csv: no such file"),
        ("a.csv", "source,score\n甲,1\n", "a.csv: no column 'paraphrase', expected it beside"),
        ("a.csv", "source,paraphrase,score\n", "a.csv: no rows"),
        ("a.csv", "", "a.csv: expected CSV, TSV, JSON lines or Parquet (No columns"),
        ("a.jsonl", "{", "a.jsonl: expected CSV, TSV, JSON lines or Parquet ("),
        ("a.parquet", "no parquet", "a.parquet: expected CSV, TSV, JSON lines or Parquet ("),
        ("a.xls", "x", "a.xls: expected CSV, TSV, JSON lines or Parquet (ending '.xls')"),
        ("a.jsonl", '{"source": 3, "paraphrase": "乙", "score": 1}\n', "holds 3, expected strings"),
        (
            "a.csv",
            "source,paraphrase,score\n甲,乙,1\n",
            "1 different sources with scores, expected",
        ),
    ],
)
def test_tables_that_cannot_be_fitted(capsys, tmp_path, name, content, message):
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    code, _, err = run(capsys, "--input", path, "--scale", "unit", "--output", tmp_path / "model")
    assert code == 2
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "conf.yaml: no such file"),
        ("sets: [", "conf.yaml: expected YAML ("),
        ("sets: []\n", "conf.yaml: sets: List should have at least 1 item"),
        ("sets: [{name: a, path: a.csv}]\nleaves: 3\n", "conf.yaml: leaves: Extra inputs"),
        ("sets: [{name: a, path: a.csv, scale: five}]\n", "conf.yaml: sets.0.scale: Input should"),
        (
            "sets: [{name: a, path: a.csv}]\ncontrasts: {typo: {target: 0}}\n",
            "conf.yaml: contrasts.typo: expected one of copy",
        ),
        ("sets: [{name: a, path: a.txt, paraphrase_paths: [b.txt]}]\n", "expected 2 as in"),
        ("sets: [{name: a, path: a.txt, paraphrase_paths: [a.txt]}]\n", "no set has a score"),
    ],
)
def test_configs_that_cannot_be_used(capsys, tmp_path, content, message):
    path = tmp_path / "conf.yaml"
    (tmp_path / "a.txt").write_text("甲\n乙\n")
    (tmp_path / "b.txt").write_text("甲\n")
    if content is not None:
        path.write_text(content)
    code, _, err = run(capsys, "--config", path, "--data", tmp_path, "--output", tmp_path / "model")
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--input", "a.csv", "--output", "m"], "--input needs --scale"),
        (["--input", "a.csv", "--scale", "fine"], "--input needs --output"),
        (["--input", "a.csv", "--config", "b.yaml"], "not allowed with"),
        ([], "one of the arguments --input --config is required"),
    ],
)
def test_usage(capsys, arguments, message):
    with pytest.raises(SystemExit) as stopped:
        job.main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def test_help_teaches(capsys):
    with pytest.raises(SystemExit):
        job.main(["--help"])
    assert "examples:" in capsys.readouterr().out


def test_a_config_with_rewrites(capsys, tmp_path):
    """Contrasts are made, held-out sources ranked, near-copies counted."""
    rng = random.Random(1)
    small_table().to_csv(tmp_path / "grades.csv", index=False)
    sources = [sentence(rng) for _ in range(80)]
    rewrites = [source[8:] + sentence(rng, 3, 6) for source in sources]
    rewrites[0] = sources[0][:-1]
    (tmp_path / "a.txt").write_text("\n".join(sources))
    (tmp_path / "b.txt").write_text("\n".join(rewrites))
    (tmp_path / "conf.yaml").write_text(
        "seeds: 1\nfolds: 3\nparameters: {num_iterations: 20, min_data_in_leaf: 5}\n"
        "contrasts: {copy: {target: 0}, first_half: {target: 0.1}}\nsets:\n"
        "- {name: G, path: grades.csv, score_column: score, scale: fine}\n"
        "- {name: R, path: a.txt, paraphrase_paths: [b.txt], fit_at_most: 60}\n"
    )
    output = tmp_path / "model"
    code, out, err = run(
        capsys, "--config", tmp_path / "conf.yaml", "--data", tmp_path, "--output", output
    )
    assert (code, err) == (0, "")
    assert "R: rewrites, 80 pairs read, 80 kept, 80 sources, 1 of them near-copies" in out
    ranking = json.loads((output / "evaluation.json").read_text())["ranking"]
    assert set(job.RANKED) <= set(ranking["by_contrast"])
    assert (output / "scores_by_kind.png").exists()


def test_a_tie_is_a_failure():
    table = pd.DataFrame({"pair": [0, 0, 1, 1, 2], "kind": ["rewrite", "copy"] * 2 + ["rewrite"]})
    above = job.win_rates(table, np.array([0.5, 0.5, 0.6, 0.5, 0.1]), ["copy"])
    np.testing.assert_array_equal(above["copy"], [0, 1, np.nan])


def test_held_out_sources_are_not_fitted_on(monkeypatch):
    """Every row carries its source's number as a feature; no held-out one reaches the fit."""
    sources = np.array([f"源{number}" for number in range(200)], object)
    features = np.zeros((200, 8), np.float32)
    features[:, 0] = np.arange(200)
    rows = job.Rows(features, np.zeros(200), np.ones(200), sources)
    contrasts = pd.DataFrame({"source": sources})
    seen = []

    def fit(features, *_, **__):
        seen.extend(features[:, 0].astype(int).tolist())

    monkeypatch.setattr(job.SPScore, "fit", fit)
    config = data.Config(sets=[data.TableSet(name="a", path="a")], graded_weight=1)
    job.fit_without_held_out(config, rows, rows, contrasts)
    held_out = data.is_held_out(pd.Series(sources), config.hold_out)
    assert 20 < held_out.sum() < 60
    assert set(seen) == set(np.flatnonzero(~held_out).tolist())


def test_no_sentence_of_the_data_is_shipped():
    for path in DEFAULT_FOLDER.glob("*"):
        if path.suffix in (".md", ".json", ".txt"):
            assert not re.search(r"[\u4e00-\u9fff]", path.read_text(encoding="utf-8")), path
        elif path.suffix == ".png":
            assert path.stat().st_size < 100_000


def test_the_shipped_card_reports_what_was_reached():
    evaluation = json.loads((DEFAULT_FOLDER / "evaluation.json").read_text())
    assert evaluation["signature"] == SPScore.load().signature(load_segmenter("jieba"))
    assert evaluation["human_scores"]["alone"]["spearman"] >= 0.23
    assert evaluation["human_scores"]["recipe"]["spearman"] >= 0.20
    for kind in job.RANKED:
        least = 0.96 if kind == "own_first_half" else 0.98
        assert evaluation["ranking"]["by_contrast"][kind]["pooled"] >= least, kind


@pytest.fixture(scope="module")
def recipe():
    """The shipped recipe, ready to fit: one seed instead of several, to be quick."""
    if not SHARED.is_dir():
        pytest.skip(f"the data to fit on is not here ({SHARED})")
    config = data.load_config(ROOT / "conf" / "spscore.yaml")
    config.seeds = 1
    graded, rewrites = data.read_pairs(config, SHARED)
    segmenter = load_segmenter(config.segmenter)
    others = data.read_others(config, SHARED)
    contrasts, features = job.training_contrasts(config, rewrites.table, others, segmenter)
    human = job.graded_rows(graded.table, segmenter)
    made = job.contrast_rows(config, contrasts, features)
    return config, human, made, contrasts, rewrites.table, others, segmenter


def test_human_scores_alone(recipe):
    config, human, *_ = recipe
    config = config.model_copy(update={"seeds": 3})
    assert spearman(job.out_of_fold(config, human), human.target) >= 0.23


def test_human_scores_by_the_recipe(recipe):
    config, human, made, *_ = recipe
    assert spearman(job.out_of_fold(config, human, made), human.target) >= 0.20


def test_rewrites_rank_above_contrasts(recipe):
    config, human, made, contrasts, rewrites, others, segmenter = recipe
    predict = job.fit_without_held_out(config, human, made, contrasts)
    ranking, _ = job.ranking_test(config, predict, rewrites, others, segmenter)
    rates = {kind: ranking["by_contrast"][kind]["pooled"] for kind in job.RANKED}
    assert rates.pop("own_first_half") >= 0.96
    assert min(rates.values()) >= 0.98, rates
