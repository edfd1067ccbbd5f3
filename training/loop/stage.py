"""Trains one stage with transformers.Trainer: its loss, batches and evaluation.

One optimiser step learns from one batch of the seeded order, whatever the number of processes and
the size of what a process holds at once: the loss is the mean over all label tokens of the batch.
"""

import os
import signal
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate.utils import broadcast_object_list, gather_object, parse_flag_from_env
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader
from transformers import EvalPrediction, Trainer, TrainingArguments
from transformers.trainer_callback import PrinterCallback

from gaixie.training.loop.pairs import LikeLengths, PairFile, lengths, pair_file
from gaixie.training.modeling.collator import IGNORED, Collator
from gaixie.training.modeling.generator import Generator
from gaixie.training.modeling.model import on_cpu
from gaixie.training.settings import Decoding, Settings
from gaixie.udfs.metrics import Metric, Pairs

SAMPLES = 3
"""Paraphrases that each evaluation shows."""


def training_arguments(settings: Settings, stage: int) -> TrainingArguments:
    """Returns Trainer's arguments of a stage. Raises ValueError for values that do not fit."""
    world, batch = int(os.environ.get("WORLD_SIZE", 1)), settings.batch
    if batch.pairs % world:
        raise ValueError(f"batch.pairs: {batch.pairs} cannot be divided among {world} processes")
    share = batch.pairs // world
    micro = max(k for k in range(1, min(share, batch.micro_pairs) + 1) if share % k == 0)
    given, gpu = settings.arguments(stage), not on_cpu()
    if given["bf16"] == "auto":
        given["bf16"] = gpu and torch.cuda.is_bf16_supported()
    fixed: dict[str, Any] = {
        "output_dir": str(Path(settings.output, f"stage-{stage}")),
        "per_device_train_batch_size": micro,
        "gradient_accumulation_steps": share // micro,
        "eval_strategy": "steps",
        "save_strategy": "steps",
        "remove_unused_columns": False,
        "label_names": ["labels"],
        "logging_nan_inf_filter": False,
        "use_cpu": not gpu and not parse_flag_from_env("ACCELERATE_USE_DEEPSPEED"),
        "seed": settings.seed,
    }
    chosen = {"disable_tqdm": True, "per_device_eval_batch_size": micro} | given
    try:
        return TrainingArguments(**fixed, **chosen)
    except (TypeError, ValueError, ImportError) as error:
        raise ValueError(f"trainer (stage {stage}): {' '.join(str(error).split())}") from None


def token_loss(
    outputs: Any,
    labels: torch.Tensor,
    num_items_in_batch: torch.Tensor | None = None,
    label_smoothing: float = 0.0,
) -> torch.Tensor:
    """Returns the sum of the losses of the label tokens, divided by the number of label tokens of
    the whole batch; without that number, the mean."""
    losses = cross_entropy(
        outputs["logits"].float().flatten(0, 1),
        labels.flatten(),
        ignore_index=IGNORED,
        label_smoothing=label_smoothing,
        reduction="sum",
    )
    here = (labels != IGNORED).sum()
    return losses / (here if num_items_in_batch is None else num_items_in_batch)


def count_right(logits: Any, labels: torch.Tensor) -> torch.Tensor:
    """Returns the label tokens that were predicted, and all, of each pair: shape (pairs, 2)."""
    logits = logits[0] if isinstance(logits, tuple) else logits
    there = labels != IGNORED
    right = (logits.argmax(-1) == labels) & there
    return torch.stack([right.sum(1), there.sum(1)], 1)


class StageTrainer(Trainer):
    """Trainer of one stage, whose pairs are in files. metric: scores what evaluations generate."""

    def __init__(
        self,
        settings: Settings,
        stage: int,
        args: TrainingArguments,
        model: Any,
        tokenizer: Any,
        metric: Metric,
    ):
        self.settings, self.stage, self.metric = settings, stage, metric
        self.tokenizer = tokenizer
        self.samples: list[list[str]] = []
        """Some sources with their paraphrases, of the last evaluation."""
        config, output = model.config, Path(settings.output)
        first = config.decoder_start_token_id if config.is_encoder_decoder else None
        smoothing, args.label_smoothing_factor = args.label_smoothing_factor, 0.0
        super().__init__(
            model,
            args,
            data_collator=Collator(tokenizer, settings.max_length, first, settings.data.codes),
            train_dataset=PairFile(pair_file(output, stage, "train")),
            eval_dataset=PairFile(pair_file(output, stage, "validation")),
            compute_loss_func=partial(token_loss, label_smoothing=smoothing),
            compute_metrics=self.measure,
            preprocess_logits_for_metrics=count_right,
        )
        self.remove_callback(PrinterCallback)
        # Some of each stage in turn: the same in all stages, so that their scores compare.
        stages = range(1, len(settings.curriculum) + 1)
        tables = (PairFile(pair_file(output, one, "validation")).table for one in stages)
        texts = chain.from_iterable(zip_longest(*(t["source"].to_pylist() for t in tables)))
        self.sources = [*dict.fromkeys(filter(None, texts))][: settings.evaluation.generate]
        """What each evaluation paraphrases, once the accuracy is high enough."""

    def get_train_dataloader(self) -> DataLoader:
        """Returns the batches of all steps of the stage, as one epoch of Trainer's."""
        args, data, pairs = self.args, self.train_dataset, self.settings.batch.pairs
        assert isinstance(data, PairFile)
        seed = [self.settings.seed, self.stage]
        loader = DataLoader(
            data,
            sampler=LikeLengths(lengths(data.table), pairs, args.max_steps, seed),
            batch_size=args.per_device_train_batch_size,
            collate_fn=self.data_collator,
            num_workers=args.dataloader_num_workers,
            pin_memory=args.dataloader_pin_memory,
            worker_init_fn=_ignore_signals,
        )
        return self.accelerator.prepare(loader)

    def measure(self, prediction: EvalPrediction) -> dict[str, float]:
        """Returns the accuracy and, if the text is readable, the mean SPScore-zh of generated
        paraphrases. All processes call it and get the same."""
        right, total = np.asarray(prediction.predictions).sum(0)
        found = {"accuracy": float(right / total)}
        if found["accuracy"] > self.settings.controller.accuracy:
            found["spscore"] = self.paraphrase()
        return found

    def paraphrase(self) -> float:
        """Returns the mean SPScore-zh of paraphrases of the sources, each process writing its
        share.

        Under ZeRO-3 all processes must call the model equally often: shares are filled up, and one
        limit of new tokens serves all.
        """
        settings, world = self.settings.evaluation, self.accelerator.num_processes
        share = -(-len(self.sources) // world)
        places = range(self.accelerator.process_index, share * world, world)
        sources = [self.sources[min(place, len(self.sources) - 1)] for place in places]
        own = settings.model_dump(include={"code", "batch_size", "max_new_tokens"})
        decoding = Decoding(beams=1, **own)
        generator = Generator(self.accelerator.unwrap_model(self.model), self.tokenizer)
        with self.accelerator.autocast():
            texts = [row[0] if row else "" for row in generator.candidates(sources, decoding)]
        found = dict(gather_object([*zip(places, texts, strict=True)]))
        written = [found[place] for place in range(len(self.sources))]
        self.samples = [[*one] for one in zip(self.sources, written, strict=True)][:SAMPLES]
        scores = self.metric.sentence_scores(Pairs.of(self.sources, written))
        # An empty text has no score.
        return broadcast_object_list([float(np.nan_to_num(scores).mean())])[0]


def _ignore_signals(_: int) -> None:
    """A scheduler's SIGTERM reaches the whole group, as Ctrl-C does; the run ends its workers."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
