"""training/learn_preferences.py on a tiny model: better drafts become likelier, and it resumes."""

import pandas as pd
import torch
from safetensors.torch import load_file
from tiny_causal import tiny_adapter

from gaixie.training import learn_preferences
from gaixie.training.learn_preferences import Drafts, Learner, preferences
from gaixie.training.modeling.adapting import Pack

GOOD, BAD = "运动会因雨改期", "运动会照常举行"


def test_a_text_sees_its_prompt_and_itself_alone() -> None:
    pack = Pack.of([([11, 12], [[13], [14, 15]]), ([16], [[17]])])
    assert pack.ids.tolist() == [*range(11, 18)]
    assert pack.places.tolist() == [0, 1, 2, 2, 3, 0, 1]
    assert pack.spans == [(1, 2, 3), (1, 3, 5), (5, 6, 7)]
    seen = ["1000000", "1100000", "1110000", "1101000", "1101100", "0000010", "0000011"]
    assert ["".join(str(int(cell == 0)) for cell in row) for row in pack.mask] == seen


def test_a_draft_is_not_preferred_for_changing_less() -> None:
    row = {"source": "下雨了运动会推迟", "code": 4}
    good, bad = {"accepted": 0.9, "overall": 2.0}, {"accepted": 0.1, "overall": 1.0}
    light, *bold = ({"paraphrase": text} for text in ("下雨了，运动会推迟", GOOD, BAD))
    drafts = [row | bold[0] | good, row | bold[1] | bad]
    assert [own.texts for own in preferences(pd.DataFrame(drafts))] == [[GOOD, BAD]]
    assert preferences(pd.DataFrame([row | light | good, drafts[1]])) == []
    mended = [drafts[1] | {"corrected": "运动会推迟，因为下雨"}] * 3
    one, other = sorted((own.texts for own in preferences(pd.DataFrame(mended))), key=len)
    assert other == 2 * one == ["运动会推迟，因为下雨", BAD] * 2


def test_better_drafts_become_likelier_and_a_stop_changes_nothing(tmp_path, monkeypatch, capsys):
    base, adapter = tmp_path / "base", tmp_path / "adapter"
    model, _ = tiny_adapter(tmp_path, [GOOD, BAD, "下雨了运动会推迟"], monkeypatch)
    model.unload().save_pretrained(base)
    texts = [Drafts("下雨了运动会推迟", "4", [GOOD, BAD])]
    before, _ = Learner(base, adapter).log_probabilities(texts)
    own, good = {"source": texts[0].source, "code": 4}, {"meaning": 5, "fluency": 4, "overall": 3}
    rows = [
        own | {"paraphrase": GOOD} | good,
        own | {"paraphrase": BAD, "accepted": 0.2, "overall": 1},
    ]
    drafts, pairs = tmp_path / "drafts.jsonl", tmp_path / "pairs.parquet"
    pd.DataFrame(rows).to_json(drafts, orient="records", lines=True, force_ascii=False)
    pd.DataFrame([{"source": BAD, "paraphrase": GOOD, "code": "正式"}]).to_parquet(pairs)
    # The other two losses, which also prefer the better draft, are left out.
    for name, value in {"RATE": 1e-2, "WARM_UP": 1, "NLL": 0.0, "WRITTEN": 0.0}.items():
        monkeypatch.setattr(learn_preferences, name, value)

    def run(name, steps):
        asked = [str(base), str(adapter), str(drafts), "--pairs", str(pairs)]
        options = ["--steps", str(steps), "--output", str(tmp_path / name)]
        assert learn_preferences.main([*asked, *options]) == 0
        return load_file(tmp_path / name / "adapter_model.safetensors")

    whole = run("whole", 4)
    assert "75% of 8 held" in capsys.readouterr().err  # nothing had changed in the first step
    run("parted", 2)
    for name, weights in run("parted", 4).items():
        assert torch.equal(weights, whole[name])
    after, _ = Learner(base, tmp_path / "whole").log_probabilities(texts)
    assert after[0] - after[1] > before[0] - before[1] + 0.1
