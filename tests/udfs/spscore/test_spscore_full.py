"""Tier full: core's features and the pair encoder, which reads only what core scores well."""

import shutil

import numpy as np
import pytest

from gaixie.research.fitting.recipe import fit_model
from gaixie.udfs.meaning import pair_encoder
from gaixie.udfs.meaning.core_features import CORE_FEATURES, Resources
from gaixie.udfs.spscore import OUTPUTS, TIERS, Head, SPScore
from gaixie.udfs.spscore.model import CORE_OUTPUTS, ENCODER_FEATURES

FIRST = len(CORE_FEATURES) + len(CORE_OUTPUTS)
"""Index of the encoder's first column."""
SOURCES = [
    "今天天气很好,我们去公园散步。",
    "他昨天买了三本书,其中一本是小说。",
    "今天天气很好,我们去公园散步。",
]
PARAPHRASES = [
    "天气不错,今天咱们到公园走走吧。",
    "三本书是他昨天买的,有一本小说。",
    "今天天气很好,我们去公园散步。",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "full"
    features = np.random.default_rng(0).random((300, len(TIERS["full"]))).astype(np.float32)
    heads = {}  # each output is the encoder's own rating, which shows what the heads read
    for k, (output, name) in enumerate(zip(OUTPUTS, ENCODER_FEATURES, strict=False), FIRST):
        fit = fit_model(features[:, [k]], features[:, k], names=[name], seeds=1)
        heads[output] = Head(fit, (name,))
    model = SPScore("full", heads, resources=Resources.load().digests())
    model.bind()
    model.save(folder)
    return folder


def test_a_saved_model_reads_with_its_encoder(folder):
    model, core = SPScore.load(folder), SPScore.load("core")
    encoder = pair_encoder.PairEncoder.load()
    features = model.extract(SOURCES, PARAPHRASES)[0]
    read = encoder.predict(SOURCES, PARAPHRASES)
    np.testing.assert_allclose(features[:, FIRST:], read, atol=0.01)
    of_core = core.outputs(SOURCES, PARAPHRASES)
    np.testing.assert_array_equal(features[:, len(CORE_FEATURES) : FIRST], of_core)
    outputs = model.outputs(SOURCES, PARAPHRASES)
    assert outputs.shape == (3, 5)
    assert ((outputs >= 0) & (outputs <= 1)).all()
    assert "tier:full|" in model.signature()
    assert f"enc:{encoder.digest}|core:{core.digest}|" in model.signature()


def test_what_core_scores_too_low_is_not_read(folder):
    model, core = SPScore.load(folder), SPScore.load("core")
    model.read_from = float(np.median(core.score(SOURCES, PARAPHRASES)))
    features = model.extract(SOURCES, PARAPHRASES)[0]
    unread = np.isnan(features[:, -1])
    assert unread.tolist() == (core.score(SOURCES, PARAPHRASES) < model.read_from).tolist()
    assert unread.any()
    assert not unread.all()
    found, of_core = model.predict(features), core.outputs(SOURCES, PARAPHRASES)
    np.testing.assert_array_equal(found[unread], of_core[unread])
    assert "tier:full>=" in model.signature()


def test_it_reads_the_core_model_beside_it(folder, tmp_path):
    own = shutil.copytree(folder, tmp_path / "full")
    core = SPScore.load("core")
    swapped = dict(zip(OUTPUTS, [core.heads[name] for name in reversed(OUTPUTS)], strict=True))
    other = SPScore("core", swapped, core.segmenter, core.resources)
    other.save(tmp_path / "core")
    with pytest.raises(ValueError, match=r"spscore\.json: .*core"):
        SPScore.load(own)
    model = SPScore.load(folder)
    model.bind(tmp_path / "core")
    model.save(own)
    features = SPScore.load(own).extract(SOURCES, PARAPHRASES)[0]
    found = features[:, len(CORE_FEATURES) : FIRST]
    np.testing.assert_array_equal(found, other.outputs(SOURCES, PARAPHRASES))
