"""Computes the controller's inputs: token accuracy and mean SPScore-zh on a stage's validation
pairs.

Each rank takes a stripe. The ranks' counts and sums are gathered and added up in one order, so
every rank has the same two numbers, to the last bit. Stripes are padded with rows that do not
count, since under ZeRO-3 every rank must call the model equally often.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from accelerate import Accelerator

from gaixie.training.data.stage_loader import PairEncoder
from gaixie.training.loop.step import predict
from gaixie.training.modeling.generator import Decoding, Generator, has_text, most_new
from gaixie.training.settings import Evaluation
from gaixie.udfs.metrics import Metric, Pairs

SAMPLES = 3


@dataclass(frozen=True)
class Found:
    """The results of an evaluation."""

    accuracy: float
    """Share of the stage's label tokens predicted from those before them; 0 to 1."""
    score: float | None
    """Mean SPScore-zh of generated paraphrases; None if nothing was generated."""
    samples: list[list[str]]
    """A few (source, paraphrase) pairs generated on the main process."""


def validate(
    accelerator: Accelerator,
    model: torch.nn.Module,
    encode: PairEncoder,
    pairs: pa.Table,
    sources: pa.ChunkedArray,
    settings: Evaluation,
    readable: float,
    metric: Metric,
    micro_pairs: int,
) -> Found:
    """Returns accuracy on pairs and, above an accuracy of `readable`, the score of paraphrases of
    the first settings.generate sources. All ranks call it with the same arguments.

    micro_pairs: pairs that fit into memory with all their logits, as in training.
    """
    model.eval()
    try:
        # A compiled model would be compiled again for all shapes of generation.
        with torch.no_grad(), torch.compiler.set_stance("force_eager"):
            accuracy = token_accuracy(accelerator, model, encode, pairs, micro_pairs)
            if accuracy <= readable:
                return Found(accuracy, None, [])
            sources = sources.slice(0, settings.generate)
            try:
                own = mean_score(accelerator, model, encode, sources, settings, metric)
            except torch.OutOfMemoryError:
                raise MemoryError("out of GPU memory: lower evaluation.batch_size") from None
            return Found(accuracy, *own)
    finally:
        model.train()


def token_accuracy(
    accelerator: Accelerator,
    model: torch.nn.Module,
    encode: PairEncoder,
    pairs: pa.Table,
    batch_size: int,
) -> float:
    """Returns the share of label tokens that the model predicts from those before them, over all
    ranks."""
    # Sorted by length, so that a batch has little padding.
    lengths = pc.utf8_length(pairs["source"]).to_numpy()
    rows, counts = stripe(accelerator, np.argsort(lengths, kind="stable"))
    right = total = 0
    for start in range(0, len(rows), batch_size):
        part = pairs.take(rows[start : start + batch_size])
        columns = (part[name].to_pylist() for name in ("source", "paraphrase"))
        # A sentence's noise is seeded by its place, so it is the same at every evaluation.
        options = {"noise": rows[start : start + batch_size].tolist()} if encode.noise else {}
        batch = encode(*columns, **options)
        with accelerator.autocast():
            logits, labels = predict(accelerator, model, batch)
        valid = counts[start + batch["places"] // batch["labels"].shape[1]]
        right += int(((logits.argmax(-1) == labels).cpu() & valid).sum())
        total += int(valid.sum())
    right, total = add_up(accelerator, right, total)
    return right / total


def mean_score(
    accelerator: Accelerator,
    model: torch.nn.Module,
    encode: PairEncoder,
    sources: pa.ChunkedArray,
    settings: Evaluation,
    metric: Metric,
) -> tuple[float, list[list[str]]]:
    """Returns the mean score of the paraphrases of sources over all ranks, and a few samples of
    this rank.

    Every rank calls the model's generate() equally often, each time with sources that share one
    limit of new tokens: under ZeRO-3, one rank's call is a call of all. Sources without text do not
    count.
    """
    generator = Generator(accelerator.unwrap_model(model), encode.tokenizer)
    decoding = Decoding(settings.num_beams, degree=settings.degree, batch_size=settings.batch_size)
    texts = [text for text in sources.to_pylist() if has_text(text)]
    lengths = [len(ids) for ids in encode.tokenizer(texts, verbose=False)["input_ids"]]
    own: list[str] = []
    written: list[str] = []
    counts: list[bool] = []
    order = sorted(range(len(texts)), key=lengths.__getitem__)
    for limit, group in groupby(order, lambda k: settings.max_new_tokens or most_new(lengths[k])):
        places, counted = stripe(accelerator, np.array([*group]))
        part = [texts[place] for place in places]
        with accelerator.autocast():
            rows = generator.candidates(part, replace(decoding, max_new_tokens=limit), scored=False)
        written += [row[0].text if row else "" for row in rows]
        own += part
        counts += counted.tolist()
    scores = np.nan_to_num(metric.sentence_scores(Pairs.of(own, written)))  # an empty text has none
    total = float(scores[np.array(counts, bool)].sum())
    score, count = add_up(accelerator, total, sum(counts))
    samples = [[*pair] for pair in zip(own, written, strict=True)]
    return score / max(count, 1), samples[:: max(len(samples) // SAMPLES, 1)][:SAMPLES]


def stripe(accelerator: Accelerator, order: np.ndarray) -> tuple[np.ndarray, torch.Tensor]:
    """Returns this rank's rows, equally many on each rank, and which of them count."""
    world, rank = accelerator.num_processes, accelerator.process_index
    places = np.arange(rank, -(-len(order) // world) * world, world)
    return order[np.minimum(places, len(order) - 1)], torch.from_numpy(places < len(order))


def add_up(accelerator: Accelerator, *values: float) -> list[Any]:
    """Returns the sums of values over all ranks, the same on each."""
    own = torch.tensor([values], dtype=torch.float64, device=accelerator.device)
    return accelerator.gather(own).cpu().numpy().sum(axis=0).tolist()
