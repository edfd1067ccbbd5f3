"""Decides from evaluations when the curriculum goes on to the next stage: Figure 3 of the paper.

Source: Chinese Sentence Paraphrasing, section 5.3 and Figure 3. A stage trains until its model is
fitted, then the next, harder stage starts from the best model so far. Each evaluation has two
values: the accuracy of token prediction on validation pairs, and the mean SPScore-zh of paraphrases
generated from validation sources.

    accuracy ≤ settings.accuracy     the text is not readable, its score means nothing → continue
    score > best + min_delta         → save best
    otherwise                        a miss → continue; `patience` in a row: the stage is fitted
    fitted, or a budget used up      → next stage; after the last stage → finish

Where this departs from the paper or fills it in: evaluations use validation sources, where Figure 3
uses the test set, so that the test set stays unseen. An unreadable evaluation is no miss and ends
no row of misses, so only a budget ends a stage that stays unreadable. The first readable score of a
stage is its best. A score that is better by min_delta or less is a miss, and is not kept.

Nothing here trains, saves or reads a clock. `evaluate` maps a state and an evaluation to the next
state and a decision, so ranks with the same values decide the same.

  state = State()
  state, decision = evaluate(settings, state, step, seconds, accuracy, score)
  if decision.improved: …                       # save the current weights as the stage's best
  if decision.action in (NEXT_STAGE, FINISH): … # restore the best weights, if there are any
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gaixie.training.settings import ControllerSettings

ACTIONS = ("continue", "save best", "next stage", "finish")
CONTINUE, SAVE_BEST, NEXT_STAGE, FINISH = ACTIONS


@dataclass(frozen=True)
class State:
    """The state of a run between two evaluations."""

    stage: int = 1
    evaluation: int = 0
    """Evaluations so far, over all stages."""
    step: int = 0
    """Step of the last evaluation; seconds is its time."""
    seconds: float = 0.0
    stage_step: int = 0
    """Step at which the stage began; stage_seconds is its time."""
    stage_seconds: float = 0.0
    best: float | None = None
    """The stage's best score; None before its first readable evaluation."""
    best_evaluation: int | None = None
    misses: int = 0
    """Readable evaluations since the best."""
    finished: bool = False


@dataclass(frozen=True)
class Decision:
    """What to do after an evaluation, and why: a line of history.jsonl."""

    action: str
    """One of ACTIONS."""
    reason: str
    stage: int
    """The stage that was evaluated; "next stage" leads to the one after it."""
    evaluation: int
    """Number of the evaluation, from 1, over all stages."""
    step: int
    seconds: float
    accuracy: float
    score: float | None
    """Mean SPScore-zh."""
    best: float | None
    """Best score of the stage, including this evaluation; None if there are no best weights to
    restore."""
    best_evaluation: int | None
    improved: bool
    """Whether the current weights are the stage's best: save them, even if the stage ends."""


def evaluate(
    settings: ControllerSettings,
    state: State,
    step: int,
    seconds: float,
    accuracy: float,
    score: float | None,
) -> tuple[State, Decision]:
    """Returns the state after an evaluation, and what to do.

    step, seconds: of the whole run so far; they never decrease, even after best weights are
    restored or the run is resumed. accuracy: 0 to 1. score: mean SPScore-zh; may be None at an
    accuracy below which it does not count.
    """
    number = state.evaluation + 1
    state = replace(state, evaluation=number, step=step, seconds=seconds)
    improved = False
    if accuracy <= settings.accuracy or score is None:
        finding = f"accuracy {accuracy:.4f} is not above {settings.accuracy:g}: not readable yet"
    elif improved := state.best is None or score > state.best + settings.min_delta:
        before = "is the stage's first" if state.best is None else f"is above {state.best:.4f}"
        finding = f"mean SPScore-zh {score:.4f} {before}"
        state = replace(state, best=score, best_evaluation=number, misses=0)
    else:
        state = replace(state, misses=state.misses + 1)
        finding = (
            f"mean SPScore-zh {score:.4f} is no improvement on {state.best:.4f}, "
            f"{state.misses} of {settings.patience} in a row"
        )
    action, reason = SAVE_BEST if improved else CONTINUE, finding
    if ended := _end_of_stage(settings, state):
        action = FINISH if state.stage == settings.stages else NEXT_STAGE
        reason = f"{finding}; stage {state.stage} {ended}; {_weights(state)}"
    decision = Decision(
        *(action, reason, state.stage, number, step, seconds, accuracy, score),
        *(state.best, state.best_evaluation, improved),
    )
    if action == FINISH:
        state = replace(state, finished=True)
    elif action == NEXT_STAGE:
        state = State(
            state.stage + 1, number, step, seconds, stage_step=step, stage_seconds=seconds
        )
    return state, decision


def _end_of_stage(settings: ControllerSettings, state: State) -> str | None:
    """Returns how the stage has ended, in words; None while it goes on."""
    if state.misses >= settings.patience:
        return "is fitted"
    steps, seconds = state.step - state.stage_step, state.seconds - state.stage_seconds
    if settings.max_steps is not None and steps >= settings.max_steps:
        return f"has used its budget of {settings.max_steps:,} steps"
    if settings.max_seconds is not None and seconds >= settings.max_seconds:
        return f"has used its budget of {settings.max_seconds:,g} seconds"
    return None


def _weights(state: State) -> str:
    """Returns, in words, which weights an ended stage leaves."""
    if state.best is None:
        return "it was never readable, so the current weights stay"
    return f"the best weights are those of evaluation {state.best_evaluation}, {state.best:.4f}"
