"""The curriculum's state machine must follow every path of the figure, and a plain reference."""

from itertools import pairwise

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaixie.training.loop.controller import (
    ACTIONS,
    CONTINUE,
    FINISH,
    NEXT_STAGE,
    SAVE_BEST,
    State,
    evaluate,
)
from gaixie.training.settings import ControllerSettings


def follow(settings: ControllerSettings, evaluations, state: State | None = None):
    """Returns (last state, decisions) after evaluations (step, seconds, accuracy, score)."""
    state, decisions = state or State(), []
    for one in evaluations:
        if state.finished:
            break
        state, decision = evaluate(settings, state, *one)
        decisions.append(decision)
    return state, decisions


def steps(*values: tuple[float, float | None]):
    """Returns evaluations every 10 steps and 5 seconds, from (accuracy, score)."""
    return [(10 * k, 5.0 * k, *one) for k, one in enumerate(values, 1)]


def test_all_of_the_figure():
    settings = ControllerSettings(stages=2, patience=2, min_delta=0.01)
    values = [
        (0.2, None),  # not readable: no score is needed
        (0.5, 0.9),  # nor used: accuracy must exceed the threshold
        (0.501, 0.40),
        (0.7, 0.405),  # better, but only by min_delta
        (0.7, 0.45),
        (0.7, 0.46),  # exactly min_delta or less: 1st miss
        (0.4, 0.99),  # not readable: no miss
        (0.7, 0.44),  # 2nd miss in a row
        (0.6, 0.10),  # stage 2: its first score is its best, whatever stage 1's was
        (0.6, 0.10),
        (0.6, 0.09),
    ]
    state, decisions = follow(settings, steps(*values))
    actions = [decision.action for decision in decisions]
    assert actions == [
        *(CONTINUE, CONTINUE, SAVE_BEST, CONTINUE, SAVE_BEST, CONTINUE, CONTINUE, NEXT_STAGE),
        *(SAVE_BEST, CONTINUE, FINISH),
    ]
    assert [decision.stage for decision in decisions] == [1] * 8 + [2] * 3
    assert [decision.evaluation for decision in decisions] == [*range(1, 12)]
    assert [decision.best for decision in decisions] == [
        *(None, None, 0.40, 0.40, 0.45, 0.45, 0.45, 0.45, 0.10, 0.10, 0.10)
    ]
    assert [decision.best_evaluation for decision in decisions][-4:] == [5, 9, 9, 9]
    assert [k for k, decision in enumerate(decisions, 1) if decision.improved] == [3, 5, 9]
    assert (state.finished, state.stage, state.best) == (True, 2, 0.10)


@pytest.mark.parametrize(
    ("budget", "words"),
    [({"max_steps": 30}, "30 steps"), ({"max_seconds": 15}, "15 seconds")],
    ids=["steps", "seconds"],
)
def test_a_budget_ends_each_stage(budget, words):
    settings = ControllerSettings(stages=2, patience=9, **budget)
    values = [(0.6, 0.1), (0.6, 0.2), (0.6, 0.15), *[(0.1, 0)] * 9]
    _, decisions = follow(settings, steps(*values))
    assert [decision.action for decision in decisions] == [
        *(SAVE_BEST, SAVE_BEST, NEXT_STAGE, CONTINUE, CONTINUE, FINISH)
    ]
    assert f"stage 1 has used its budget of {words}" in decisions[2].reason
    assert "the best weights are those of evaluation 2, 0.2000" in decisions[2].reason
    assert decisions[2].best == 0.2
    # Stage 2 counts its own steps, and was never readable: nothing to restore.
    assert f"stage 2 has used its budget of {words}" in decisions[5].reason
    assert "it was never readable, so the current weights stay" in decisions[5].reason
    assert (decisions[5].best, decisions[5].best_evaluation) == (None, None)


# Properties, over any settings and evaluations

SETTINGS = st.builds(
    ControllerSettings,
    stages=st.integers(1, 4),
    accuracy=st.sampled_from([0.0, 0.5, 1.0]),
    patience=st.integers(1, 4),
    min_delta=st.sampled_from([0.0, 0.05, 0.3]),
    max_steps=st.none() | st.integers(1, 60),
    max_seconds=st.none() | st.floats(0.1, 60),
)
# Few distinct values, so that ties and edges occur.
SCORES = st.sampled_from([0.0, 0.1, 0.15, 0.2, 0.5, 0.8]) | st.floats(-1, 2)


@st.composite
def histories(draw):
    step, seconds, found = 0, 0.0, []
    for _ in range(draw(st.integers(0, 40))):
        step += draw(st.integers(0, 20))
        seconds += draw(st.floats(0, 20))
        found.append(
            (step, seconds, draw(st.sampled_from([0.0, 0.3, 0.5, 0.9, 1.0])), draw(SCORES))
        )
    return found


def stages_of(settings: ControllerSettings, history) -> list[int]:
    """Returns the stage of each evaluation from the whole history, as a plain reference.

    A stage is the shortest stretch of evaluations, after the previous stage, with a reason to end.
    """
    stages: list[int] = []
    for stage in range(1, settings.stages + 1):
        begin = len(stages)
        since = history[begin - 1][:2] if begin else (0, 0.0)
        for end in range(begin + 1, len(history) + 1):
            stages.append(stage)
            if ends(settings, history[begin:end], *since):
                break
    return stages


def ends(settings: ControllerSettings, stretch, step: int, seconds: float) -> bool:
    scores = [score for _, _, accuracy, score in stretch if accuracy > settings.accuracy]
    places = [0]  # places of successive bests among readable scores
    for k, score in enumerate(scores):
        if k and score > scores[places[-1]] + settings.min_delta:
            places.append(k)
    fitted = bool(scores) and len(scores) - 1 - places[-1] >= settings.patience
    out_of_steps = settings.max_steps and stretch[-1][0] - step >= settings.max_steps
    out_of_time = settings.max_seconds and stretch[-1][1] - seconds >= settings.max_seconds
    return bool(fitted or out_of_steps or out_of_time)


@hypothesis.settings(deadline=None)
@given(SETTINGS, histories())
def test_switches_as_the_plain_reference(settings, history):
    _, decisions = follow(settings, history)
    assert [decision.stage for decision in decisions] == stages_of(settings, history)


@hypothesis.settings(deadline=None)
@given(SETTINGS, histories())
def test_stages_go_up_and_the_best_never_falls(settings, history):
    state, decisions = follow(settings, history)
    assert all(decision.action in ACTIONS for decision in decisions)
    for number, (a, b) in enumerate(pairwise(decisions), 1):
        assert b.evaluation == number + 1
        assert b.stage == a.stage + (a.action == NEXT_STAGE)
        if a.stage == b.stage and a.best is not None:
            assert b.best >= a.best
        assert a.action != FINISH
    for decision in decisions:
        assert decision.improved == (decision.best_evaluation == decision.evaluation)
        assert (decision.action == SAVE_BEST) <= decision.improved
        assert (decision.best is None) == (decision.best_evaluation is None)
    finish = decisions and decisions[-1].action == FINISH
    assert state.finished == bool(finish)
