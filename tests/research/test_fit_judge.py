"""research/fit_judge.py on a tiny model: it learns, resumes, and becomes what the product reads."""

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file
from shared import ROOT
from tiny_causal import tiny_adapter

from gaixie.research import fit_judge
from gaixie.research.fit_judge import CORRECTED, Learner, Pair, group_of, groups_of
from gaixie.research.pair_encoder.examples import equal, ranked, unequal
from gaixie.research.ratings.rated import RATINGS
from gaixie.training import make_writer
from gaixie.udfs.paraphrase.judge import JUDGED, Judge

DATA = ROOT.parent / "shared/data"
SOURCE, GOOD, BAD = "下雨了，运动会推迟。", "运动会因雨改期。", "运动会照常举行。"
GROUPS = [
    (SOURCE, [Pair(BAD, {"meaning": 0.1}), Pair(GOOD, {"meaning": 0.9, "fluency": 1.0})]),
    (GOOD, [Pair(SOURCE, {"meaning": 0.8}), Pair(BAD, {"meaning": 0.2, "good": 0.0})]),
]


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Returns a base, an adapter of it, and the folder of the base's packages."""
    model, _ = tiny_adapter(tmp_path, [SOURCE, GOOD, BAD], monkeypatch)
    model.unload().save_pretrained(tmp_path / "base")
    return tmp_path / "base", tmp_path / "adapter", tmp_path


def fitted(folders, name: str, steps: int) -> Learner:
    learner, output = Learner(*folders[:2], layers=1), folders[2] / name
    for _ in range(learner.resume(output), steps):
        learner.backward(GROUPS)
        learner.update(1e-2)
    learner.save(output, steps)
    return learner


def test_it_learns_and_a_stop_changes_nothing(folders) -> None:
    learner = fitted(folders, "whole", 20)
    bad, good, source, other = learner.judge(GROUPS)[:, JUDGED.index("meaning")]
    assert good > bad + 0.2
    assert source > other + 0.2
    fitted(folders, "parted", 9)
    fitted(folders, "parted", 20)
    changes = [load_file(folders[2] / n / "adapter_model.safetensors") for n in ("whole", "parted")]
    assert all(torch.equal(weights, changes[1][name]) for name, weights in changes[0].items())


def test_the_product_judges_as_the_training_does(folders, capsys) -> None:
    """And a paraphrase beside others of its source as it does alone."""
    learner, output = fitted(folders, "judge", 20), folders[2] / "made"
    line = ["--adapter", str(folders[2] / "judge"), "--output", str(output)]
    assert make_writer.main([*line, "--parts", str(folders[2])]) == 0
    pairs = [(source, one.text) for source, own in GROUPS for one in own]
    found = Judge.load(output, "float32")(*zip(*pairs, strict=True))
    assert found == pytest.approx(learner.logits(GROUPS).detach().numpy(), abs=0.05)


def test_an_example_as_a_group() -> None:
    source, (right, wrong) = group_of(ranked(equal(SOURCE, GOOD), unequal(SOURCE, BAD)))
    assert (source, right.text, wrong.text) == (SOURCE, GOOD, BAD)
    assert right.targets == {"good": 1.0, "meaning": 0.97, "fluency": 0.97}
    assert wrong.targets == {"good": 0, "meaning": 0.25, "fluency": 0.97}


def test_a_correction_is_right_and_its_draft_as_rated() -> None:
    row = {"source": SOURCE, "paraphrase": BAD} | dict.fromkeys(RATINGS, 0.4)
    [(_, found)] = groups_of(pd.DataFrame([row | {"corrected": GOOD}, row | {"corrected": None}]))
    rated = Pair(BAD, dict.fromkeys(RATINGS, 0.4) | {"good": 0.0})
    assert found == [rated, Pair(GOOD, CORRECTED), rated]


@pytest.mark.long
@pytest.mark.skipif(not DATA.is_dir(), reason=f"needs the rated pairs in {DATA}")
def test_it_fits_to_the_sets_and_draws_the_same_again(folders, capsys) -> None:
    path, output = ROOT / "research/ratings/drafts.jsonl", folders[2] / "out"
    line = [str(DATA), *map(str, folders[:2]), "--drafts", str(path), "--layers", "1"]
    assert fit_judge.main([*line, "--steps", "2", "--output", str(output)]) == 0
    assert "rated pairs, meaning: " in capsys.readouterr().out
    sampler = fit_judge.Sampler(DATA, pd.read_json(path, lines=True))
    learner = Learner(*folders[:2], 1)

    def packs(seed: int):
        sampler.random.seed(seed)
        return [sampler.pack(learner) for _ in range(30)]

    assert packs(1) == packs(1) != packs(2)
