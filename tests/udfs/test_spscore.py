"""SPScore-zh: fit, predict, save, load, signature; the trees' tables against LightGBM itself."""

import json
import subprocess
import sys
from types import SimpleNamespace

import lightgbm
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from udfs.features import FEATURES
from udfs.spscore import DEFAULT_FOLDER, SPScore
from udfs.spscore.contrasts import KINDS, edit_distance, make_contrasts
from udfs.spscore.fit import bootstrap_interval, cross_validate, group_folds, spearman
from udfs.spscore.trees import TreeModel, predict_trees, read_trees
from udfs.text.segment import load_segmenter

SMALL = {
    "lightgbm": {"num_iterations": 20, "min_data_in_leaf": 5},
    "neural": {"hidden": (8,), "max_iter": 40, "batch_size": 32},
}
SEGMENTER = SimpleNamespace(name="jieba", version="rjieba-0.2.2")


def features_like(rng, rows):
    """Random features in their usual ranges, one in ten missing."""
    features = rng.random((rows, len(FEATURES))).astype(np.float32)
    features[:, FEATURES.index("sl")] = rng.integers(1, 200, rows)
    features[rng.random(features.shape) < 0.1] = np.nan
    features[rng.random(features.shape) < 0.1] = 0
    return features


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(0)
    features = features_like(rng, 600)
    target = np.clip(np.nan_to_num(features[:, 5]) * 0.7 + 0.3 * rng.random(600), 0, 1)
    return features, target


@pytest.fixture(scope="module", params=["lightgbm", "neural"])
def metric(request, sample):
    backend = request.param
    return SPScore.fit(*sample, backend=backend, seeds=2, parameters=SMALL[backend])


def test_a_fit_learns_and_is_deterministic(metric, sample):
    features, target = sample
    assert spearman(metric.predict(features), target) > 0.5
    backend = metric.model.backend
    again = SPScore.fit(*sample, backend=backend, seeds=2, parameters=SMALL[backend])
    assert again.digest() == metric.digest()
    other = SPScore.fit(*sample, backend=backend, seeds=1, parameters=SMALL[backend])
    assert other.digest() != metric.digest()


def test_saved_and_loaded_is_the_same(metric, sample, tmp_path):
    metric.save(tmp_path)
    loaded = SPScore.load(tmp_path)
    np.testing.assert_array_equal(loaded.predict(sample[0]), metric.predict(sample[0]))
    assert loaded.signature(SEGMENTER) == metric.signature(SEGMENTER)
    assert not list(tmp_path.glob("*.pkl"))


def test_saving_over_another_backend_leaves_none_of_its_files(sample, tmp_path):
    for backend in ("lightgbm", "neural"):
        SPScore.fit(*sample, backend=backend, seeds=2, parameters=SMALL[backend]).save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["network.npz", "spscore.json"]


@settings(max_examples=60, deadline=None)
@given(
    hnp.arrays(
        np.float32,
        st.tuples(st.integers(0, 5), st.just(len(FEATURES))),
        elements=st.floats(width=32),
    )
)
def test_any_features_give_a_score_in_range(metric, features):
    scores = metric.predict(features)
    assert scores.dtype == np.float32
    assert scores.shape == (len(features),)
    assert np.all((scores >= 0) & (scores <= 1))


def test_another_shape_is_an_error(metric):
    with pytest.raises(ValueError, match=r"shape \(3, 7\): expected \(rows, 8\)"):
        metric.predict(np.zeros((3, 7)))


@pytest.mark.parametrize("leaves", [2, 7, 31])
@pytest.mark.parametrize("missing", [{}, {"zero_as_missing": True}, {"use_missing": False}])
def test_tables_equal_lightgbm(leaves, missing):
    """NaN, zero as missing, no missing at all; infinities; more leaves than a byte has bits."""
    rng = np.random.default_rng(leaves)
    features = features_like(rng, 2000)
    target = np.nan_to_num(features[:, 0] * features[:, 6], nan=9.0) + rng.random(2000)
    boosters = [
        lightgbm.train(
            {"num_leaves": leaves, "verbose": -1, "num_threads": 1, "seed": seed, **missing},
            lightgbm.Dataset(features, target),
            15 + seed,
        )
        for seed in range(2)
    ]
    tables = read_trees([booster.model_to_string() for booster in boosters])
    probe = np.concatenate([features_like(rng, 3000), features[:200] * np.float32(-1)])
    special = np.array([np.inf, -np.inf, np.nan, 0, -0.0, 1e-36, -1e-36, 1e-30], np.float32)
    probe[:500] = rng.choice(special, (500, len(FEATURES)))
    expected = np.mean([booster.predict(probe, num_threads=1) for booster in boosters], axis=0)
    np.testing.assert_allclose(predict_trees(probe, *tables), expected, rtol=0, atol=1e-12)


def test_a_constant_target_gives_a_constant_score(sample):
    features, _ = sample
    metric = SPScore.fit(features, np.full(len(features), 0.25), seeds=1)
    np.testing.assert_allclose(metric.predict(features), 0.25, atol=1e-6)


def test_models_of_another_kind_are_refused(sample):
    features, target = sample
    data = lightgbm.Dataset(features, target > 0.5)
    text = lightgbm.train({"objective": "binary", "verbose": -1}, data, 2).model_to_string()
    with pytest.raises(ValueError, match="objective=regression"):
        TreeModel([text])


def test_signature(metric):
    digest = metric.digest()
    assert len(digest) == 10
    assert metric.signature(SEGMENTER) == (
        "SPScore-zh|v:0.1.0|norm:nfkc+ws|seg:jieba-rjieba-0.2.2|"
        f"feat:acs,spa,pmd,wpa,lis,sbleu,sl,lr|model:{metric.model.backend}-{digest}"
    )


def test_signature_changes_with_the_model_and_the_segmenter(metric, sample):
    features, target = sample
    backend = metric.model.backend
    other = SPScore.fit(features, 1 - target, backend=backend, parameters=SMALL[backend])
    assert other.signature(SEGMENTER) != metric.signature(SEGMENTER)
    ltp = SimpleNamespace(name="ltp-small", version="4.2")
    assert metric.signature(ltp) != metric.signature(SEGMENTER)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"backend": "svm"}, "backend 'svm': expected 'lightgbm' or 'neural'"),
        ({"target": np.full(600, 2.0)}, r"target: expected values in \[0, 1\]"),
        ({"target": np.full(600, np.nan)}, r"target: expected values in \[0, 1\]"),
        ({"target": np.zeros(3)}, r"expected \(rows, 8\)"),
        ({"weight": np.full(600, -1.0)}, "weight: expected finite values"),
        ({"weight": np.zeros(600)}, "not all zero"),
        ({"parameters": {"leaves": 3}}, "parameter 'leaves' of lightgbm: expected one of"),
        ({"seeds": 0}, "0 seeds"),
        ({"features": np.zeros((0, 8)), "target": np.zeros(0)}, "0 rows"),
    ],
)
def test_what_cannot_be_fitted(sample, change, message):
    arguments = {"features": sample[0], "target": sample[1], **change}
    with pytest.raises(ValueError, match=message):
        SPScore.fit(**arguments)


def test_missing_folder_and_file(tmp_path, sample):
    with pytest.raises(FileNotFoundError, match=r"nowhere/spscore\.json: no such file"):
        SPScore.load(tmp_path / "nowhere")
    SPScore.fit(*sample, seeds=2, parameters=SMALL["lightgbm"]).save(tmp_path)
    (tmp_path / "lightgbm-1.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"lightgbm-1\.txt: no such file"):
        SPScore.load(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 99}, "format 99, but this version reads 1"),
        ({"features": ["acs", "lr"]}, "features acs,lr, expected acs,spa"),
        ({"normalisation": "nfd"}, "normalisation 'nfd', expected 'nfkc"),
        ({"backend": "svm"}, "unknown back-end 'svm'"),
        ({"digest": "0123456789"}, "digest 0123456789, but lightgbm-0.txt has"),
    ],
)
def test_a_description_that_does_not_fit(sample, tmp_path, change, message):
    SPScore.fit(*sample, seeds=1, parameters=SMALL["lightgbm"]).save(tmp_path)
    path = tmp_path / "spscore.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=message) as error:
        SPScore.load(tmp_path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_description_that_is_no_json_or_lacks_a_key(tmp_path):
    (tmp_path / "spscore.json").write_text("{")
    with pytest.raises(ValueError, match=r"spscore\.json: expected JSON"):
        SPScore.load(tmp_path)
    (tmp_path / "spscore.json").write_text("{}")
    with pytest.raises(ValueError, match=r"spscore\.json: expected the key 'backend'"):
        SPScore.load(tmp_path)


def test_a_changed_model_file_is_refused(sample, tmp_path):
    SPScore.fit(*sample, seeds=1, parameters=SMALL["lightgbm"]).save(tmp_path)
    path = tmp_path / "lightgbm-0.txt"
    path.write_text(path.read_text().replace("leaf_value=", "leaf_value= ", 1))
    with pytest.raises(ValueError, match="not those that were saved"):
        SPScore.load(tmp_path)


def test_the_shipped_model():
    """It loads, its digest matches, it is small, and it orders what nobody would dispute."""
    metric, segmenter = SPScore.load(), load_segmenter("jieba")
    description = json.loads((DEFAULT_FOLDER / "spscore.json").read_text())
    assert metric.signature(segmenter).endswith(f"lightgbm-{description['digest']}")
    assert metric.segmenter == f"{segmenter.name}-{segmenter.version}"
    assert sum(path.stat().st_size for path in DEFAULT_FOLDER.iterdir()) < 1_500_000
    source = "由于连日暴雨,市政府决定从明天起关闭所有的公园和学校,直到天气好转为止。"
    rewrite = "因为连续几天下大雨,市政府决定明天开始关闭全部公园与学校,等天气变好再开放。"
    unrelated = "他把那本旧书放回书架的最上层,然后关上灯,轻轻地走出了房间。"
    bad = [source, source[: len(source) // 2], rewrite[: len(rewrite) // 2], unrelated]
    scores = metric.score([source] * 5, [rewrite, *bad], segmenter)
    assert scores[0] > scores[1:].max()
    assert scores[0] > 0.5


def test_score_takes_lists_and_arrow_and_keeps_nulls_missing():
    metric, segmenter = SPScore.load(), load_segmenter("jieba")
    source, paraphrase = ["今天天气很好", None, "我们走吧"], ["今日天气不错", "什么", None]
    scores = metric.score(source, paraphrase, segmenter)
    assert scores.dtype == np.float32
    np.testing.assert_array_equal(np.isnan(scores), [False, True, True])
    arrow = metric.score(
        pa.array(source), pa.chunked_array([paraphrase[:1], paraphrase[1:]]), segmenter
    )
    np.testing.assert_array_equal(arrow, scores)


def test_import_is_light():
    code = (
        "import sys, udfs.spscore; "
        "print([m for m in ('pyspark', 'torch', 'lightgbm', 'sklearn') if m in sys.modules])"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert output.stdout.strip() == "[]"


@given(st.lists(st.integers(0, 12), min_size=30), st.one_of(st.none(), st.integers(0, 5)))
def test_a_group_is_never_on_both_sides(groups, seed):
    folds = min(4, len(set(groups)))
    if folds < 2:
        return
    tested = []
    for fitted, held_out in group_folds(groups, folds, seed):
        assert not {groups[k] for k in fitted} & {groups[k] for k in held_out}
        tested += held_out.tolist()
    assert sorted(tested) == list(range(len(groups)))


def test_too_few_groups():
    with pytest.raises(ValueError, match="2 groups and 3 folds"):
        list(group_folds(["a", "b", "a"], 3))


def test_extra_rows_of_a_held_out_group_are_not_fitted_on(monkeypatch):
    """The feature acs carries the group's number, so that each fit shows what it saw."""
    groups = np.repeat(np.arange(6), 4)
    features = np.zeros((24, 8), np.float32)
    features[:, 0] = groups
    seen = []

    def fit(features, target, weight, **_):
        seen.append(set(features[:, 0].tolist()))
        return SimpleNamespace(predict=lambda rows: rows[:, 0])

    monkeypatch.setattr("udfs.spscore.fit.SPScore", SimpleNamespace(fit=fit))
    extra = (features, np.zeros(24), np.ones(24))
    cross_validate(features, np.zeros(24), groups, extra=extra, extra_groups=groups, folds=3)
    assert [len(numbers) for numbers in seen] == [4, 4, 4]


def test_bootstrap_interval_holds_the_mean():
    values = np.random.default_rng(0).normal(3, 1, 400)
    low, high = bootstrap_interval(lambda column: column.mean(), (values,), np.arange(400))
    assert low < values.mean() < high
    assert 0.15 < high - low < 0.25


@settings(max_examples=50)
@given(st.text("甲乙丙丁123,。a ", min_size=1, max_size=30), st.text("甲乙丙丁", max_size=20))
def test_contrasts_are_reproducible_and_differ_from_the_source(source, paraphrase):
    made = make_contrasts(source, paraphrase, "别的句子", list, seed=3)
    assert made == make_contrasts(source, paraphrase, "别的句子", list, seed=3)
    assert set(made) <= set(KINDS)
    assert all(text and (kind == "copy" or text != source) for kind, text in made.items())
    if "edit" in made:
        assert edit_distance(source, made["edit"]) == 1
    if "words_shuffled" in made:
        assert sorted(made["words_shuffled"]) == sorted(source)
    if "swapped_numbers" in made:
        assert len(made["swapped_numbers"]) == len(source)


def test_an_unknown_contrast():
    with pytest.raises(ValueError, match="contrast 'typo': expected one of copy"):
        make_contrasts("甲", "乙", "丙", list, kinds=["typo"])


@given(st.text("ab", max_size=7), st.text("ab", max_size=7))
def test_edit_distance(a, b):
    def plain(i, j):
        if not i or not j:
            return i + j
        same = a[i - 1] == b[j - 1]
        return min(plain(i - 1, j) + 1, plain(i, j - 1) + 1, plain(i - 1, j - 1) + (not same))

    assert edit_distance(a, b) == plain(len(a), len(b))
