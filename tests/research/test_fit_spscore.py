"""Fitting SPScore-zh: reading, negatives, folds that keep groups apart, and the written folder."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gaixie.research import fit_spscore
from gaixie.research.fitting import data, evaluation, recipe, report
from gaixie.research.ratings import rated
from gaixie.research.ratings.rated import Rated, RatedTable
from gaixie.udfs.spscore import OUTPUTS, SPScore
from gaixie.udfs.storage.settings import load_settings
from gaixie.udfs.text.segmenters import load_segmenter

EXAMPLES = Path(__file__).parents[2] / "examples/pairs.jsonl"
RATINGS = list(data.RATINGS)


def settings_of(path: Path, **given) -> Rated:
    return Rated(name="r", tables=[RatedTable(path=str(path))], **given)


@pytest.fixture(scope="module", autouse=True)
def quick():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluation, "SAMPLES", 20)
        patch.setitem(recipe.LIGHTGBM, "num_iterations", 25)
        yield


@pytest.fixture(scope="module")
def ratings(tmp_path_factory):
    """Returns the first 80 example pairs with annotations as ratings; fluency has none."""
    pairs = pd.read_json(EXAMPLES, lines=True).head(80)
    names = {"structure": "structure", "synonyms": "synonym", "meaning": "consistency"}
    table = pairs[["source", "paraphrase", "origin"]].assign(
        **{name: pairs[f"rated_{own}"] for name, own in names.items()},
        fluency=4.0,
        overall=pairs["rated"],
        group=pairs.index // 2,
        kind=np.where(pairs.index % 4, "found", "written_full"),
    )
    path = tmp_path_factory.mktemp("ratings") / "ratings.csv"
    table.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def fitted(ratings, tmp_path_factory):
    """Returns the folder of a fit of all tiers."""
    folder = tmp_path_factory.mktemp("fitted")
    line = ["--input", str(ratings), "--output", str(folder), "--folds", "2", "--seeds", "1"]
    tiers = [word for tier in fit_spscore.TIERS for word in ("--tier", tier)]
    assert fit_spscore.main([*line, *tiers]) == 0
    return folder


@pytest.mark.parametrize("tier", fit_spscore.TIERS)
def test_the_folder_holds_a_model_with_its_card(fitted, ratings, tier):
    model = SPScore.load(fitted / tier)
    assert model.tier == tier
    card = (fitted / tier / "card.md").read_text("utf-8")
    assert model.signature(load_segmenter()) in card
    figures = json.loads((fitted / tier / "evaluation.json").read_text("utf-8"))
    assert set(figures["correlations"]["real"]) == set(OUTPUTS)
    if tier != "full":
        assert "80 in 40 groups" in card
        return
    assert model.core == str(fitted / "core")  # the core fitted here, not the shipped one
    judged = model.judge(["他昨天在北京买了三本好书。"], ["三本好书是他昨天在北京买的。"])
    assert judged.notna().all(axis=None)
    # It learns from pairs that the encoder never saw.
    unseen = (data.read_rated(settings_of(ratings), Path())["part"] != "encoder").sum()
    assert figures["rated"]["pairs"] == unseen < 80


def test_the_parts_of_a_fit_are_hashes_of_the_texts_as_written(ratings):
    """The heads of tier full must not read what the encoder learned from: both read the rated pairs
    alike, and the part does not change with normalisation (“，” becomes “,”)."""
    written = rated.read_rated(settings_of(ratings), Path())
    fitted = data.read_rated(settings_of(ratings), Path())
    assert fitted["part"].tolist() == written["part"].tolist()
    assert (fitted["source"] != written["source"]).mean() > 0.5


def test_one_expert_score_coarse_rows_and_a_test_part(ratings, tmp_path):
    """A fit must take one score from 0 to 5 or a label, and leave the test part unseen (CSPC,
    sections 3.1 and 4.1)."""
    table = pd.read_csv(ratings)
    table["expert"], table["coarse"] = table["overall"], table.index % 5 == 0
    table.loc[table["coarse"], "expert"] = (table["overall"] >= 3).astype(int)
    path = tmp_path / "expert.csv"
    table.drop(columns=RATINGS).to_csv(path, index=False)
    settings = settings_of(path, score_column="expert")
    found = data.read_rated(settings, Path())
    expected = np.where(table["coarse"], table["overall"] >= 3, table["overall"] / 5)
    np.testing.assert_allclose(found[RATINGS].T, [expected] * len(RATINGS))
    line = ["--input", str(path), "--score", "expert", "--test", "0.2", "--output", str(tmp_path)]
    small = ["--tier", "paper", "--ablation", "--folds", "2", "--seeds", "1"]
    assert fit_spscore.main([*line, *small]) == 0
    tested = json.loads((tmp_path / "paper/test.json").read_text())
    evaluated = json.loads((tmp_path / "paper/evaluation.json").read_text())
    _, test = fit_spscore.apart(found, 0.2)
    assert 0 < len(test) == tested["spscore"]["pairs"] == 80 - evaluated["rated"]["pairs"]
    scores = SPScore.load(tmp_path / "paper").outputs(test["source"], test["paraphrase"])[:, -1]
    assert tested["spscore"]["pearson"] == pytest.approx(np.corrcoef(scores, test["overall"])[0, 1])
    table.loc[0, ["coarse", "expert"]] = True, 2
    table.to_csv(path, index=False)
    with pytest.raises(ValueError, match="row 1 has 2, expected a number from 0 to 5, at most 1"):
        data.read_rated(settings, Path())
    rows = {row["label"]: row["real"] for row in evaluated["ablation"]}
    # One seed, like the fit here: an ablation that removes nothing is the cross-validation itself.
    expected = evaluated["correlations"]["real"]["spscore"]
    assert rows["nothing"] == {name: expected[name] for name in rows["nothing"]}
    assert rows["nothing"]["pearson"] != rows["lr"]["pearson"]


def test_more_facts_lost_never_raise_meaning_or_score(fitted):
    model = SPScore.load(fitted / "core")
    features = np.random.default_rng(0).normal(0, 1, (50, len(model.columns))).astype(np.float32)
    for name in ("numbers_lost", "numbers_new", "names_lost", "clause_lost"):
        outputs = []
        for features[:, model.columns.index(name)] in (0, 1, 2, 3):
            outputs.append(model.predict(features)[:, [OUTPUTS.index("meaning"), -1]])
        assert (np.diff(outputs, axis=0) <= 1e-6).all(), name


def test_a_mistake_is_one_line_that_names_the_file(ratings, tmp_path, refused):
    path = tmp_path / "wrong.jsonl"
    pd.read_csv(ratings).assign(overall=6).to_json(path, orient="records", lines=True)
    refused(fit_spscore.main, ["--input", path, "--output", tmp_path / "none"], str(path))


@pytest.fixture(scope="module")
def material(ratings):
    config = load_settings(data.Config, data.CONFIG)
    config.human, config.known, config.negatives.others = [], None, None
    config.rated = settings_of(ratings, written="written_")
    table = data.read_rated(config.rated, Path())
    return config, recipe.read_material(config, table, Path(), load_segmenter())


def test_no_group_is_on_both_sides_of_a_fold(material):
    config, found = material
    rows = found.all_rows
    held = np.zeros(len(rows), int)
    for fitted, held_out in recipe.folds_of(found, config.folds):
        assert not set(rows.groups[fitted]) & set(rows.groups[held_out])
        held += held_out
    assert (held == 1).all()


def test_weights_and_bounds(material):
    """Written pairs and drafts must get their share; a negative must not exceed its pair."""
    config, found = material
    share = found.rows.weight[found.written].sum() / found.rows.weight.sum()
    assert share == pytest.approx(config.rated.written_share)
    drafts = np.arange(80) % 5 == 0
    table = found.rated.assign(kind=np.where(drafts, rated.DRAFT, found.rated["kind"]))
    weight = data.rated_rows(table, config.rated, load_segmenter()).weight
    assert weight[drafts].sum() / weight[~drafts].sum() == pytest.approx(config.rated.drafts_share)
    changed = recipe.Material(**{**vars(found), "rated": table})
    assert (report.parts_of(changed)["drafts"] == drafts).all()
    negatives = found.negatives
    own = np.char.startswith(negatives.kinds.astype(str), "own_")
    assert (negatives.targets[own] <= found.rows.targets[negatives.pairs[own]] + 1e-12).all()
    for kind, bounds in config.negatives.bounds.items():
        highest = [1 if bound is None else bound for bound in bounds]
        assert (negatives.targets[negatives.kinds == kind] <= np.array(highest) + 1e-12).all()


def test_calibration_points_are_mean_ratings_that_rise():
    scores = np.linspace(0.1, 0.9, 4000)
    rated = np.where((scores > 0.4) & (scores < 0.5), 0.1, scores / 2)  # falls in between
    points = np.array(evaluation.calibration_points(scores, rated))
    assert (np.diff(points, axis=0) > 0).all()
    assert points[[0, -1]].tolist() == [[0, 0], [1, 1]]
    assert np.interp(0.8, *points.T) == pytest.approx(0.4, abs=0.01)
    assert np.interp(scores, *points.T).mean() == pytest.approx(rated.mean(), abs=0.01)
    assert evaluation.calibration_points(scores[:500], rated[:500]) == []


def test_human_scores_are_mapped_by_a_line_through_pairs_that_have_both(tmp_path, material):
    _, found = material
    human = found.rated[["source", "paraphrase"]].assign(score=found.rated["overall"] / 2 + 0.1)
    human.loc[len(human)] = ["一句没有评分的话在这里。", "这里有一句没有评分的话。", 0.5]
    human.to_json(tmp_path / "human.jsonl", orient="records", lines=True)
    settings = data.Human(name="people", path="human.jsonl")
    rows, line = data.read_human(settings, tmp_path, found.rated, load_segmenter())
    assert (len(rows), line["rated_too"]) == (1, len(found.rated))
    assert rows.targets[0, -1] == pytest.approx(2 * 0.5 - 0.2)
    assert np.isnan(rows.targets[0, :-1]).all()


def test_adversaries_count_ties_as_losses():
    origins = np.array(["written_full", "mcts"], object)
    rated = data.Rows(*[np.zeros(2)] * 4, origins, *[np.zeros(2)] * 2)
    kinds = np.array(["edit", "edit", "own_roles_swapped"], object)
    negatives = data.Rows(*[np.zeros(3)] * 4, kinds, np.array([0, 1, 0]), np.zeros(3))
    scores, of_negatives = np.array([[0.5], [0.5]]), np.array([[0.5], [0.4], [0.1]])
    table = evaluation.adversaries(rated, scores, negatives, of_negatives)
    found = [(row["kind"], row["full"], row["human"], row["needs_reading"]) for row in table]
    assert found == [("edit", 0.0, 1.0, False), ("own_roles_swapped", 1.0, None, True)]


def test_thresholds_are_what_a_score_is_worth_in_its_origin():
    scores = np.tile(np.linspace(0, 1, 200), 2)
    origins = np.repeat(["llm", "parallel"], 200)
    rated = np.where(origins == "llm", scores, 0.5 * scores)
    found, ratings = evaluation.choose_thresholds(scores, rated, origins), evaluation.STAGE_RATINGS
    assert found["llm"] == pytest.approx([rating / 5 for rating in ratings])
    assert found["parallel"] == pytest.approx([min(2 * rating / 5, 1) for rating in ratings])
