"""Constrains the search so that a paraphrase keeps its source's entities.

The paper's tokenizer puts a token such as <date_1> in place of an entity, and trusts the model to
copy it. Here the search enforces this: a paraphrase has every indexed token of its source, none
more often than the source has it, and no others.
"""

from collections.abc import Sequence

import torch
from transformers import LogitsProcessor


class EntityConstraint(LogitsProcessor):
    """Sets the scores of tokens that may not come next to minus infinity.

    If a line would end before it has all entities, the missing ones take the end's score. Once only
    the missing ones still fit into the limit, nothing else may come.
    """

    def __init__(
        self, ids: Sequence[Sequence[int]], entities: range, ends: Sequence[int], limit: int
    ):
        """ids: tokens of each source. entities: ids of indexed tokens. ends: ids of tokens that end
        a line. limit: maximum new tokens, including the end."""
        rows = [[index for index in row if index in entities] for row in ids]
        self._allowed = torch.zeros(len(ids), len(entities), dtype=torch.int64)
        for row, own in enumerate(rows):
            for index in own:
                self._allowed[row, index - entities.start] += 1
        self._entities, self._ends, self._limit = entities, torch.tensor(ends), limit
        self._most = max((len({*own}) for own in rows), default=0)

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """input_ids: (lines, tokens so far), with a source's lines next to each other. scores:
        (lines, vocabulary)."""
        lines, written = input_ids.shape
        if self._allowed.device != input_ids.device:  # once
            self._allowed = self._allowed.to(input_ids.device)
            self._ends = self._ends.to(input_ids.device)
        allowed = self._allowed.repeat_interleave(lines // len(self._allowed), 0)
        first, count = self._entities.start, len(self._entities)
        places = input_ids - first
        inside = (places >= 0) & (places < count)
        used = torch.zeros_like(allowed)
        used.scatter_add_(1, places.clamp(0, count - 1), inside.long())
        missing = (allowed > 0) & (used == 0)
        left = missing.sum(1)

        scores = scores.clone()
        never = float("-inf")
        of_entities = scores[:, first : first + count]
        of_entities[used >= allowed] = never
        open_ = (left > 0) & ~torch.isin(input_ids[:, 1:], self._ends).any(1)
        end = scores[:, self._ends].amax(1, keepdim=True)
        wanted = missing & open_[:, None]
        of_entities[:] = torch.where(wanted, torch.maximum(of_entities, end), of_entities)
        scores[:, self._ends] = scores[:, self._ends].masked_fill(open_[:, None], never)
        # The start token is not a new one; the end takes one.
        room = self._limit - (written - 1) - 1
        if self._most >= room:  # known without asking the device
            late = open_ & (left >= room)
            only = torch.full_like(scores, never)
            only[:, first : first + count] = of_entities.masked_fill(~wanted, never)
            scores = torch.where(late[:, None], only, scores)
        return scores
