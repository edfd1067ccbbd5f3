"""Cut points must give the stages that a sort of the pairs gives, and warn of empty stages."""

from collections import Counter

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from gaixie.jobs.scoring.report import warnings_of
from gaixie.jobs.scoring.settings import Cuts
from gaixie.jobs.scoring.sorting import Cells, cut_stages
from gaixie.udfs.spscore.stages import SCORE_BINS, stage

UNIT = st.floats(0, 1, width=32)
PAIRS = st.lists(st.tuples(UNIT, UNIT), min_size=1, max_size=300)
SHARES = st.lists(st.floats(0, 1), min_size=3, max_size=3).map(sorted)


def cells_of(scores: np.ndarray, held: np.ndarray) -> Cells:
    bins = np.floor(scores.astype(np.float64) * SCORE_BINS + 0.5).astype(int)
    return Counter(("llm", int(place), bool(low)) for place, low in zip(bins, held, strict=True))


@example([(0.99999, 0.0)], [0.0, 0.0, 1.0], 0.0)  # in the last bin
@given(PAIRS, SHARES, UNIT)
def test_stages_by_quantiles(pairs, shares, least):
    """Among pairs that keep the least meaning, a higher score must never get a lower stage; each
    share must lie below its cut point; no other pair may be in stages 2 and 3."""
    scores, meaning = np.array(pairs, np.float32).T
    held = meaning < np.float32(least)
    rule = Cuts(quantiles=tuple(shares), min_meaning=least)
    found = cut_stages(cells_of(scores, held), {"llm": rule})
    cuts = found.cuts["llm"]
    stages = stage(scores, cuts, meaning, least)
    assert not (stages[held] > 1).any()
    kept, of_kept = scores[~held], stages[~held]
    order = np.argsort(kept, kind="stable")
    assert (np.diff(of_kept[order]) >= 0).all()
    if not len(kept):
        assert np.isnan(cuts).all()
        return
    bins = np.floor(kept.astype(np.float64) * SCORE_BINS + 0.5)
    for share, cut in zip(shares, cuts, strict=True):
        below = (kept < np.float32(cut)).mean()
        assert below >= share - 1e-9
        # No more than the pairs of one bin, a ten-thousandth wide, are too many.
        at_cut = bins == bins[kept < np.float32(cut)].max() if below else bins < 0
        assert below - at_cut.mean() < share or below == 0
    counts = {number: pairs for (_, number), pairs in found.counts().items()}
    assert counts == Counter(stages.tolist())


def test_a_stage_with_almost_no_pairs_gets_a_warning():
    counts = {"llm": (40, 20, 20, 20), "parallel": (0, 997, 3, 0), "human": (0, 0, 0, 0)}
    stages = {origin: dict(enumerate(of)) for origin, of in counts.items()}
    lines = [*warnings_of(stages, {})]
    assert [int(line.split()[1]) for line in lines] == [2, 3]
    assert all("cuts.parallel" in line for line in lines)


def test_an_origin_mostly_in_quarantine_gets_a_warning():
    counts = {"llm": (0, 10, 10, 10), "human": (0, 30, 30, 30)}
    stages = {origin: dict(enumerate(of)) for origin, of in counts.items()}
    quarantine = {"llm": {"too_short": 29, "identical": 5}, "human": {"too_short": 89}}
    [line] = warnings_of(stages, quarantine)
    assert line.startswith("34 rows of llm")
    assert "29 are too_short; --min-characters" in line
