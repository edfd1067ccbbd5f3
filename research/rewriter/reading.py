"""Removes translated pairs that the pair encoder doubts."""

from __future__ import annotations

from pathlib import Path

import torch

from gaixie.research.rewriter.material import KINDS
from gaixie.research.rewriter.training import BOS, END, PAD, Batches
from gaixie.udfs.meaning.pair_encoder import TASKS

SAME = 0.5
"""Minimum probability that both sides say the same."""
SHARE = 0.65
"""Share to keep of the pairs that reach SAME: those whose paraphrase reads best."""
TOKENS = 65_536


@torch.no_grad()
def choose(batches: Batches, network: torch.nn.Module) -> str:
    """Drops pairs from ``batches``. Returns a line that says how many are left."""
    network.to(batches.device).eval()
    before = after = 0
    known = []
    for (bucket, kind), rows in batches.rows.items():
        if KINDS[kind] == "translated" and len(rows):
            known.append(((bucket, kind), rows, _read(batches, network, rows)))
    if not known:
        return "no translated pairs"
    same, fluent = torch.cat([own for *_, own in known]).T
    least = fluent[same >= SAME].quantile(1 - SHARE) if (same >= SAME).any() else 0.0
    for key, rows, own in known:
        kept = rows[(own[:, 0] >= SAME) & (own[:, 1] >= least)]
        before, after = before + len(rows), after + len(kept)
        batches.rows[key] = kept
    batches.shuffle(*(key for key, *_ in known))
    return (
        f"of {before:,} translated pairs {int((same >= SAME).sum()):,} say the same, "
        f"{after:,} read well (fluent from {float(least):.2f})"
    )


def _read(batches: Batches, network: torch.nn.Module, rows: torch.Tensor) -> torch.Tensor:
    """Returns the probabilities of the same meaning and of a fluent paraphrase, (pairs, 2)."""
    columns = [TASKS.index("same"), TASKS.index("fluent")]
    lengths = batches.lengths[batches.pairs[rows]]
    total = lengths.sum(1) + 4
    order = total.argsort()
    found = torch.zeros(len(rows), 2, device=batches.device)
    # Reads as many pairs at once as fit into TOKENS when padded to the longest.
    place = 0
    sizes = total[order].tolist()
    while place < len(rows):
        size = max(1, TOKENS // sizes[min(place + TOKENS // sizes[place], len(sizes)) - 1])
        chosen = order[place : place + size]
        with torch.autocast(batches.device.type, torch.bfloat16, batches.device.type == "cuda"):
            logits, _ = network(*_inputs(batches, rows[chosen]))
        found[chosen] = logits[:, columns].float().sigmoid()
        place += size
    return found


def _inputs(
    batches: Batches, rows: torch.Tensor
) -> tuple[dict[str, torch.Tensor], torch.Tensor, torch.Tensor]:
    """Returns PairNetwork's inputs for ``<s> source </s> paraphrase </s>``."""
    source, paraphrase = batches.pairs[rows].T
    first, second = batches.lengths[source][:, None], batches.lengths[paraphrase][:, None]
    width = int((first + second).max()) + 3
    place = torch.arange(width, device=batches.device)
    a = (place > 0) & (place <= first)
    b = (place > first + 1) & (place <= first + 1 + second)
    left = batches.starts[source][:, None] + place - 1
    right = batches.starts[paraphrase][:, None] + place - first - 2
    last = len(batches.tokens) - 1
    cells = torch.where(a, left, torch.where(b, right, 0)).clamp(0, last)
    ids = batches.tokens[cells].long()
    ids = torch.where(a | b, ids, END)
    ids[:, 0] = BOS
    there = place <= first + second + 2
    inputs = {
        "input_ids": torch.where(there, ids, PAD),
        "token_type_ids": ((place > first + 1) & there).long(),
        "attention_mask": there.long(),
    }
    return inputs, a.float(), b.float()


def load_network(start: Path, parts: Path | None) -> torch.nn.Module:
    """Loads the pair encoder from its start folder, with the weights of a training, if given."""
    from gaixie.research.pair_encoder.parts import read_parts
    from gaixie.research.pair_encoder.training import PairNetwork

    network = PairNetwork(str(start), "sdpa", 0.0)
    if parts is not None:
        read_parts(network, parts)
    return network
