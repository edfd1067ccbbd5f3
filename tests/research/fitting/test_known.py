"""Counterparts without a rating: their targets, and the groups that are left out."""

import json

import numpy as np
import pandas as pd

from gaixie.research.fitting.data import known_rows, pairs_for_core, pairs_for_full
from gaixie.research.pair_encoder import sets
from gaixie.research.pair_encoder.sets import for_heads, held_out
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.text.segmenters import load_segmenter


def write_groups(folder, texts: dict[int, list[str]], broken: str) -> None:
    """Writes groups and their counterparts, but no free rewrites."""
    kinds = ("negation", "roles", "fact", "scope", "salad")
    rows = {
        sets.GROUPS: [{"group": number, "texts": own} for number, own in texts.items()],
        sets.BROKEN: [{"group": number, **dict.fromkeys(kinds, broken)} for number in texts],
        sets.REWRITTEN[0]: [],
    }
    for name, own in rows.items():
        (folder / name).write_text("\n".join(map(json.dumps, own)), "utf-8")


def test_a_kind_has_the_mean_of_its_rated_pairs_and_held_out_groups_stay_out(tmp_path, monkeypatch):
    monkeypatch.setattr(sets, "HERE", tmp_path)
    texts = {n: [f"第{n}位客人昨天来过这里{k}次。" for k in range(5)] for n in (1, 7, 8)}
    write_groups(tmp_path, texts, "没有人来过这里。")
    own = {"source": ["别的句子。", "第8位客人昨天来过这里0次。", "又一句。"], "group": [*"abc"]}
    own |= {"kind": ["written_S1", "written_negation", "written_negation"]}
    own |= {"meaning": [1.0, 0.2, 0.4], "overall": [0.4, 0.1, 0.2]}
    rated = pd.DataFrame(own).assign(structure=0.5, synonyms=0.5, fluency=0.5)
    rows = known_rows(pairs_for_core(tmp_path), 0.25, rated, load_segmenter("jieba"))
    # Group 7 is held out; kinds that nobody rated have no target.
    assert rows.kinds.tolist() == ["written_S1", "written_negation"] * 2
    np.testing.assert_allclose(rows.targets[:, OUTPUTS.index("meaning")], [1.0, 0.3] * 2)
    np.testing.assert_allclose(rows.targets[:, OUTPUTS.index("spscore")], [0.4, 0.15] * 2)
    assert np.isnan(rows.targets[:, OUTPUTS.index("fluency")]).all()
    assert rows.groups[2] == "b" != rows.groups[0]
    np.testing.assert_allclose(rows.weight.sum(), 0.25 * 3)


def test_tier_full_learns_from_groups_that_the_encoder_has_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(sets, "HERE", tmp_path)
    texts = {n: [f"{n}甲{k}" for k in range(5)] for n in (6, *range(30_000, 30_008))}
    write_groups(tmp_path, texts, "坏")
    sources = {source for source, _, _ in pairs_for_full()}
    assert sources == {f"{number}甲0" for number in range(30_000, 30_008) if for_heads(number)}
    assert len(sources) == 2
    assert not any(for_heads(number) and held_out(number) for number in range(30_000, 31_000))
