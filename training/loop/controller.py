"""Decides from its evaluations when a stage is fitted and the next begins: Figure 3 of the paper.

Source: Chinese Sentence Paraphrasing, section 5.3 and Figure 3. A stage trains until its model is
fitted, then the next, harder stage starts from the best weights. Each evaluation has two values:
the accuracy of token prediction on validation pairs, and the mean SPScore-zh of paraphrases
generated from validation sources.

    accuracy ≤ limits.accuracy       the text is not readable, its score means nothing → continue
    score > best + min_delta         → save best
    otherwise                        a miss → continue; `patience` in a row: the stage is fitted
    fitted, or max_steps used up     → end stage

Where this departs from the paper or fills it in: evaluations use validation sources, where Figure 3
uses the test set, so that the test set stays unseen. An unreadable evaluation is no miss and ends
no row of misses, so only max_steps ends a stage that stays unreadable. The first readable score of
a stage is its best. A score that is better by min_delta or less is a miss, and is not kept.

Nothing here trains, saves or reads a clock: equal evaluations decide the same on every process.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gaixie.training.settings import Limits

CONTINUE, SAVE_BEST, END_STAGE = "continue", "save best", "end stage"


class Evaluation(NamedTuple):
    """What one evaluation of a stage found."""

    step: int
    """Optimiser steps of the stage so far."""
    accuracy: float
    """Accuracy of token prediction, 0 to 1."""
    score: float | None
    """Mean SPScore-zh; may be None where the accuracy is too low for it to count."""


@dataclass(frozen=True)
class Decision:
    """What to do after an evaluation, and why: a line of history.jsonl."""

    action: str
    """CONTINUE, SAVE_BEST or END_STAGE."""
    reason: str
    evaluation: int
    """Number of the evaluation in its stage, from 1."""
    step: int
    accuracy: float
    score: float | None
    best: float | None
    """Best score of the stage so far; None: there are no best weights to restore."""
    best_evaluation: int | None
    improved: bool
    """Whether the current weights are the stage's best: save them, even if the stage ends."""


def decide(limits: Limits, max_steps: int, evaluations: Sequence[Evaluation]) -> Decision:
    """Returns what to do after the last of a stage's evaluations, of which there is at least one.

    max_steps: the stage's budget of steps.
    """
    best, best_number, misses = None, None, 0
    for number, (_, accuracy, score) in enumerate(evaluations, 1):
        improved = False
        if accuracy <= limits.accuracy or score is None:
            finding = f"accuracy {accuracy:.4f} is not above {limits.accuracy:g}: not readable yet"
        elif best is None or score > best + limits.min_delta:
            before = "is the stage's first" if best is None else f"is above {best:.4f}"
            finding = f"mean SPScore-zh {score:.4f} {before}"
            best, best_number, misses, improved = score, number, 0, True
        else:
            misses += 1
            row = f"{misses} of {limits.patience} in a row"
            finding = f"mean SPScore-zh {score:.4f} is no improvement on {best:.4f}, {row}"
    action, reason, last = SAVE_BEST if improved else CONTINUE, finding, evaluations[-1]
    ended = None
    if misses >= limits.patience:
        ended = "is fitted"
    elif last.step >= max_steps:
        ended = f"has used its budget of {max_steps:,} steps"
    if ended:
        weights = "it was never readable, so the current weights stay"
        if best is not None:
            weights = f"the best weights are those of evaluation {best_number}, {best:.4f}"
        action, reason = END_STAGE, f"{finding}; the stage {ended}; {weights}"
    return Decision(action, reason, number, *last, best, best_number, improved)
