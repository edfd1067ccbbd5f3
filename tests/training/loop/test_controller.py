"""The decision must follow every path of the figure, and a plain reference."""

from hypothesis import given
from hypothesis import strategies as st

from gaixie.training.loop import controller
from gaixie.training.loop.controller import Decision, Evaluation, decide
from gaixie.training.settings import Limits


def follow(limits: Limits, evaluations: list[Evaluation], max_steps: int = 999) -> list[Decision]:
    """Returns the decision after each evaluation, up to the one that ends the stage."""
    decisions: list[Decision] = []
    for end in range(1, len(evaluations) + 1):
        decisions.append(decide(limits, max_steps, evaluations[:end]))
        if decisions[-1].action == controller.END_STAGE:
            break
    return decisions


def steps(*values: tuple[float, float | None]) -> list[Evaluation]:
    """Returns evaluations every 10 steps, from (accuracy, score)."""
    return [Evaluation(10 * k, *one) for k, one in enumerate(values, 1)]


def test_all_of_the_figure():
    values = [
        (0.2, None),  # not readable: no score is needed
        (0.5, 0.9),  # nor used: accuracy must exceed the threshold
        (0.501, 0.40),
        (0.7, 0.405),  # better, but only by min_delta
        (0.7, 0.45),
        (0.7, 0.46),  # exactly min_delta or less: 1st miss
        (0.4, 0.99),  # not readable: no miss
        (0.7, 0.44),  # 2nd miss in a row
    ]
    decisions = follow(Limits(patience=2, min_delta=0.01), steps(*values))
    on, best = controller.CONTINUE, controller.SAVE_BEST
    actions = [on, on, best, on, best, on, on, controller.END_STAGE]
    assert [decision.action for decision in decisions] == actions
    assert [decision.evaluation for decision in decisions] == [*range(1, 9)]
    bests = [None, None, 0.40, 0.40, 0.45, 0.45, 0.45, 0.45]
    assert [decision.best for decision in decisions] == bests
    assert decisions[-1].best_evaluation == 5
    assert [k for k, decision in enumerate(decisions, 1) if decision.improved] == [3, 5]


def test_its_budget_ends_a_stage():
    limits = Limits(patience=9)
    *_, last = follow(limits, steps((0.6, 0.1), (0.6, 0.2), (0.6, 0.15), (0.6, 0.3)), 30)
    assert (last.action, last.evaluation, last.best) == (controller.END_STAGE, 3, 0.2)
    assert "has used its budget of 30 steps" in last.reason
    assert "the best weights are those of evaluation 2, 0.2000" in last.reason
    *_, last = follow(limits, steps(*[(0.1, 0)] * 4), 30)
    assert (last.action, last.best, last.best_evaluation) == (controller.END_STAGE, None, None)
    assert "it was never readable, so the current weights stay" in last.reason


# Properties, over any limits and evaluations

LIMITS = st.builds(
    Limits,
    accuracy=st.sampled_from([0.0, 0.5, 1.0]),
    patience=st.integers(1, 4),
    min_delta=st.sampled_from([0.0, 0.05, 0.3]),
)
# Few distinct values, so that ties and edges occur.
SCORES = st.sampled_from([0.0, 0.1, 0.15, 0.2, 0.5, 0.8]) | st.floats(-1, 2)


@st.composite
def histories(draw):
    step, found = 0, []
    for _ in range(draw(st.integers(0, 25))):
        step += draw(st.integers(0, 20))
        accuracy = draw(st.sampled_from([0.0, 0.3, 0.5, 0.9, 1.0]))
        found.append(Evaluation(step, accuracy, draw(SCORES)))
    return found


def bests(limits: Limits, evaluations: list[Evaluation]) -> list[int]:
    """Returns the numbers of the successive bests among the readable evaluations."""
    found: list[int] = []
    for k, one in enumerate(evaluations, 1):
        if one.accuracy > limits.accuracy:
            before = evaluations[found[-1] - 1].score if found else None
            if before is None or one.score > before + limits.min_delta:
                found.append(k)
    return found


@given(LIMITS, st.integers(1, 200), histories())
def test_decides_as_the_plain_reference(limits, max_steps, history):
    decisions = follow(limits, history, max_steps)
    for end, decision in enumerate(decisions, 1):
        found = bests(limits, history[:end])
        number = found[-1] if found else None
        assert decision.best_evaluation == number
        assert decision.best == (None if number is None else history[number - 1].score)
        assert decision.improved == (number == end)
        since = history[number:end] if found else []
        misses = sum(one.accuracy > limits.accuracy for one in since)
        if misses >= limits.patience or history[end - 1].step >= max_steps:
            assert decision.action == controller.END_STAGE
        else:
            going_on = controller.SAVE_BEST if number == end else controller.CONTINUE
            assert decision.action == going_on
