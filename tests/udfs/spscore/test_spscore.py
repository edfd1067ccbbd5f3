"""SPScore-zh: fit, predict, save, load, signature; and the trees' tables against LightGBM."""

import json
import pickle
import re
from types import SimpleNamespace

import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from gaixie.research.fitting.recipe import fit_model
from gaixie.udfs.features import FEATURES
from gaixie.udfs.meaning.core_features import Resources
from gaixie.udfs.spscore import OUTPUTS, SHIPPED, TIERS, Head, SPScore
from gaixie.udfs.spscore.files import share
from gaixie.udfs.spscore.trees import TreeModel
from gaixie.udfs.text.segmenters import load_segmenter

SMALL = {"num_iterations": 20, "min_data_in_leaf": 5}
SEGMENTER = SimpleNamespace(name="jieba", version="rjieba-0.2.2")


def features_like(rng, rows):
    """Draws features in their usual ranges, one in ten missing."""
    features = rng.random((rows, len(FEATURES))).astype(np.float32)
    features[:, FEATURES.index("sl")] = rng.integers(1, 200, rows)
    features[rng.random(features.shape) < 0.1] = np.nan
    features[rng.random(features.shape) < 0.1] = 0
    return features


@pytest.fixture(scope="module")
def sample():
    """Returns features of tier paper, and a target for each output."""
    rng = np.random.default_rng(0)
    features = features_like(rng, 600)
    known = np.nan_to_num(features[:, [0, 1, 4, 5, 7]])
    targets = np.clip(known * 0.7 + 0.3 * rng.random((600, 1)), 0, 1)
    return features, targets


def fitted(sample, columns=FEATURES, tier="paper", seeds=1, resources=None, **changed):
    """Fits a model with a head per output. changed: other columns that a head reads, by output."""
    features, targets = sample
    known = np.hstack([features, targets])
    heads = {}
    for place, output in enumerate(OUTPUTS):
        names = changed.get(output, columns)
        values = known[:, [(*FEATURES, *OUTPUTS).index(name) for name in names]]
        model = fit_model(values, targets[:, place], None, names, seeds, SMALL)
        heads[output] = Head(model, tuple(names))
    return SPScore(tier, heads, resources=resources)


@pytest.fixture(scope="module")
def metric(sample):
    return fitted(sample, seeds=2)


def test_saved_and_loaded_is_the_same(metric, sample, tmp_path):
    metric.save(tmp_path)
    for loaded in (SPScore.load(tmp_path), pickle.loads(pickle.dumps(metric))):
        np.testing.assert_array_equal(loaded.predict(sample[0]), metric.predict(sample[0]))
        assert loaded.signature(SEGMENTER) == metric.signature(SEGMENTER)
    fitted(sample).save(tmp_path)  # must remove the files of the second seed
    names = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")}
    assert names == {"spscore.json", *(f"{output}/lightgbm-0.txt" for output in OUTPUTS)}


def test_a_process_unpickles_a_model_once(metric, tmp_path):
    """A process must unpickle a model only once, because Spark sends it with every task."""
    sent = pickle.dumps(metric)
    assert pickle.loads(sent) is pickle.loads(sent)
    assert len(sent) < 200_000
    metric.save(tmp_path)
    shared, other = SPScore.load(tmp_path), SPScore.load(tmp_path)
    other.read_from = 0.25
    assert pickle.loads(pickle.dumps(other)).read_from == 0.25
    assert pickle.loads(pickle.dumps(share(shared))) is pickle.loads(pickle.dumps(shared))


# Heads


def test_a_head_reads_some_features_and_earlier_heads(sample, tmp_path):
    names = ("lr", "meaning", "acs", "structure")
    fitted(sample, ("sl", "acs"), spscore=names).save(tmp_path)
    metric = SPScore.load(tmp_path)
    found = metric.predict(sample[0])
    columns = [sample[0][:, 7], found[:, 2], sample[0][:, 0], found[:, 0]]
    expected = metric.heads["spscore"].model.predict(np.column_stack(columns))
    np.testing.assert_array_equal(found[:, -1], np.clip(expected, 0, 1).astype(np.float32))


def test_heads_and_tiers_that_are_not_there(sample):
    with pytest.raises(ValueError, match="head structure"):  # would read a later head
        fitted(sample, ("sl",), structure=("spscore",))
    heads = fitted(sample, ("sl",)).heads
    with pytest.raises(ValueError, match="tier 'best'"):
        SPScore("best", heads)
    heads.pop("meaning")
    with pytest.raises(ValueError, match="heads structure,synonyms,fluency,spscore"):
        SPScore("paper", heads)


def test_constraints_are_kept(sample):
    """A higher value of a constrained column must never move the prediction the wrong way."""
    features, targets = sample
    model = fit_model(features, targets[:, 3], monotone={"lis": -1, "sbleu": 1}, parameters=SMALL)
    assert constraints(model) == [0, 0, 0, 0, -1, 1, 0, 0]
    assert_monotone(model, features)


def constraints(model) -> list[int]:
    """Returns the signs of the columns that the trees' files state."""
    (stated,) = {re.search("^monotone_constraints=(.*)", text, re.M) for text in model.texts[:1]}
    return [int(sign) for sign in stated[1].split()] if stated else []


def assert_monotone(model, features):
    for column, sign in enumerate(constraints(model)):
        if sign:
            values = np.repeat(features[:200], 20, axis=0)
            span = np.nanmin(features[:, column]), np.nanmax(features[:, column])
            values[:, column] = np.tile(np.linspace(*span, 20), len(values) // 20)
            steps = np.diff(model.predict(values).reshape(-1, 20), axis=1)
            assert (sign * steps >= -1e-12).all(), column


# Trees


@pytest.mark.parametrize("leaves", [2, 15, 64])
@pytest.mark.parametrize("missing", [{}, {"use_missing": False}])
def test_tables_equal_lightgbm(leaves, missing):
    """Tables must predict like LightGBM with NaN, without any missing value, with infinities, every
    width of bit set, and an unused column."""
    rng = np.random.default_rng(leaves)
    features = features_like(rng, 2000)
    features[:, 3] = 0.5
    features[rng.random(2000) < 0.3, 5] = np.nan  # makes splits that separate NaN
    target = np.nan_to_num(features[:, 0] * features[:, 6], nan=9.0) + rng.random(2000)
    target += 50 * np.isnan(features[:, 5])
    boosters = [
        lightgbm.train(
            {"num_leaves": leaves, "verbose": -1, "num_threads": 1, "seed": seed, **missing},
            lightgbm.Dataset(features, target),
            15 + seed,
        )
        for seed in range(2)
    ]
    model = TreeModel([booster.model_to_string() for booster in boosters])
    assert 3 not in model.tables.columns
    probe = np.concatenate([features_like(rng, 3000), features[:200] * np.float32(-1)])
    special = np.array([np.inf, -np.inf, np.nan, 0, -0.0, 1e-36, -1e-36, 1e-30], np.float32)
    probe[:500] = rng.choice(special, (500, len(FEATURES)))
    probe[500:2500] = rng.choice(model.tables.thresholds, (2000, len(FEATURES)))  # right on them
    expected = np.mean([booster.predict(probe, num_threads=1) for booster in boosters], axis=0)
    np.testing.assert_allclose(model.predict(probe), expected, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(model.predict(probe[:77]), model.predict(probe)[:77])
    assert model.predict(probe[:0]).shape == (0,)


@pytest.mark.parametrize(
    "settings",
    [
        *[{"objective": "binary"}, {"zero_as_missing": True}],
        {"num_leaves": 100, "min_data_in_leaf": 1},
    ],
)
def test_models_of_another_kind_are_refused(sample, settings):
    features, targets = sample
    label = targets[:, 0] > 0.5 if "objective" in settings else targets[:, 0]
    data = lightgbm.Dataset(features, label)
    text = lightgbm.train({"verbose": -1, **settings}, data, 2).model_to_string()
    with pytest.raises(ValueError, match=r"regression|trees of 100 leaves|zero as a missing"):
        TreeModel([text])


def test_a_calibration_moves_the_score_alone_and_keeps_its_order(metric, sample, tmp_path):
    given, points = metric.predict(sample[0]), [[0, 0], [0.4, 0.2], [0.6, 0.5], [1, 1]]
    model = SPScore("paper", metric.heads, calibration=points)
    found = model.predict(sample[0])
    np.testing.assert_array_equal(found[:, :-1], given[:, :-1])
    np.testing.assert_array_equal(np.argsort(found[:, -1]), np.argsort(given[:, -1]))
    assert model.calibrated(np.array([0.2, 0.5, 0.8])) == pytest.approx([0.1, 0.35, 0.75])
    model.save(tmp_path)
    np.testing.assert_array_equal(SPScore.load(tmp_path).predict(sample[0]), found)
    assert model.digest != metric.digest


# Signature


def test_signature(metric, sample):
    assert len(metric.digest) == 10
    assert metric.signature(SEGMENTER) == (
        "SPScore-zh|v:0.4.0|tier:paper|norm:nfkc+visible+ws|seg:jieba-rjieba-0.2.2|"
        f"feat:acs,spa,pmd,wpa,lis,sbleu,sl,lr|model:lightgbm-{metric.digest}"
    )
    ltp = SimpleNamespace(name="ltp-small", version="4.2")
    assert metric.signature(ltp) != metric.signature(SEGMENTER)
    tables = {"vec": "0123456789", "lm": "abcdef0123"}
    core = fitted(sample, ("sl", "acs"), "core", resources=tables).signature(SEGMENTER)
    assert "|tier:core|" in core
    assert "|vec:0123456789|lm:abcdef0123|model:lightgbm-" in core


# Invalid models


@pytest.mark.parametrize(
    "change",
    [
        *({"format": 99}, {"tier": "best"}, {"columns": ["acs", "lr"]}, {"heads": ["structure"]}),
        *({"normalisation": "nfd"}, {"digest": "0123456789"}),
    ],
)
def test_a_description_that_does_not_fit(metric, tmp_path, change):
    metric.save(tmp_path)
    path = tmp_path / "spscore.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=rf"^[^\n]*{path}[^\n]*$"):
        SPScore.load(tmp_path)


def test_files_that_are_gone_or_changed_are_refused(metric, tmp_path):
    metric.save(tmp_path)
    path = tmp_path / "fluency" / "lightgbm-0.txt"
    path.write_text(path.read_text().replace("leaf_value=", "leaf_value= ", 1))
    with pytest.raises(ValueError, match=r"spscore\.json"):
        SPScore.load(tmp_path)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"fluency/lightgbm-0\.txt"):
        SPScore.load(tmp_path)


def test_tables_that_the_model_was_not_fitted_with(sample, tmp_path):
    columns = ("sl", "acs")
    fitted(sample, columns, "core", resources=Resources.load().digests()).save(tmp_path)
    assert SPScore.load(tmp_path).tier == "core"
    fitted(sample, columns, "core", resources={"vec": "0123456789", "lm": "abcd"}).save(tmp_path)
    with pytest.raises(ValueError, match=r"spscore\.json: .*0123456789"):
        SPScore.load(tmp_path)


# The shipped models


MARKS = {"full": [pytest.mark.torch]}
SHIPS = [pytest.param(t, marks=MARKS.get(t, ())) for t in TIERS if (SHIPPED / t).exists()]


@pytest.mark.parametrize("tier", SHIPS)
def test_the_shipped_models(tier):
    """Shipped models must load, be small, keep their constraints, and order clear cases rightly."""
    metric, segmenter = SPScore.load(tier), load_segmenter("jieba")
    assert metric.tier == tier
    assert metric.columns == TIERS[tier]
    assert metric.signature().endswith(f"-{metric.digest}")
    assert metric.segmenter == f"{segmenter.name}-{segmenter.version}"
    most = 30_000_000 if tier == "full" else 10_000_000
    assert sum(path.stat().st_size for path in (SHIPPED / tier).rglob("*.*")) < most
    source = "由于连日暴雨,市政府决定从明天起关闭所有的公园和学校,直到天气好转为止。"
    rewrite = "因为连续几天下大雨,市政府决定明天开始关闭全部公园与学校,等天气变好再开放。"
    unrelated = "他把那本旧书放回书架的最上层,然后关上灯,轻轻地走出了房间。"
    bad = [source, source[: len(source) // 2], rewrite[: len(rewrite) // 2], unrelated]
    scores = metric.score([source] * 5, [rewrite, *bad])
    assert scores[0] > scores[1:].max()
    features = metric.extract([source] * 5, [rewrite, *bad])[0]
    for head in metric.heads.values():
        known = [name for name in head.columns if name in metric.columns]
        if list(head.columns) == known:
            assert_monotone(head.model, features[:, [metric.columns.index(name) for name in known]])


def test_score_takes_lists_and_arrow_and_keeps_nulls_missing():
    metric = SPScore.load()
    source, paraphrase = ["今天天气很好", None, "我们走吧"], ["今日天气不错", "什么", None]
    scores = metric.score(source, paraphrase)
    assert scores.dtype == np.float32
    np.testing.assert_array_equal(np.isnan(scores), [False, True, True])
    arrow = metric.score(pa.array(source), pa.chunked_array([paraphrase[:1], paraphrase[1:]]))
    np.testing.assert_array_equal(arrow, scores)
    judged = metric.judge(source, paraphrase)
    assert tuple(judged.columns) == OUTPUTS
    np.testing.assert_array_equal(judged["spscore"], scores)
    assert judged.isna().all(axis=1).tolist() == [False, True, True]
    alone = [metric.score([a], [b])[0] for a, b in zip(source, paraphrase, strict=True)]
    np.testing.assert_array_equal(scores, alone)  # rows are independent
    with pytest.raises(ValueError, match="3 sources, but 2 paraphrases"):
        metric.score(source, paraphrase[:2])


def test_judge_keeps_the_index_of_a_series_and_takes_no_sentence():
    metric = SPScore.load()
    frame = pd.DataFrame({"a": ["他来了。", "她买了书。"], "b": ["他到了。", np.nan]}, [9, 4])
    judged = metric.judge(frame["a"], frame["b"])
    assert list(judged.index) == [9, 4]
    assert judged["spscore"].notna().tolist() == [True, False]
    with pytest.raises(ValueError, match="different indexes"):
        metric.judge(frame["a"], frame["b"].reset_index(drop=True))
    with pytest.raises(TypeError, match="expected a list of sentences"):
        metric.judge("他来了", "他到了")
    with pytest.raises(TypeError):
        metric.explain(["他来了"], ["他到了"])
