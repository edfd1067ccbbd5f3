"""Loads transformers models that write text, and samples from them."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gaixie.jobs.errors import JobError
from gaixie.udfs.metrics import encoder
from gaixie.udfs.storage.local_copy import fetch, remote

if TYPE_CHECKING:
    import torch
    from pyspark import SparkContext

TOO_MANY_TOKENS = "too_many_tokens"
"""Reason: the sentence is longer than the model or the settings allow."""
CUT_OFF = "cut_off"
"""Reason: the model's text did not end within the maximum length."""


class Model:
    """A model on one device.

    name: a folder, local or of an object store, or a name in the Hugging Face cache. causal:
    whether it continues texts, instead of turning one sequence into another. Raises ValueError or
    OSError of one line if it cannot be loaded.
    """

    def __init__(self, name: str, causal: bool, device: str, precision: str, threads: int = 1):
        import torch
        import transformers

        self.name, self.device = name, encoder.choose_device(device)
        if self.device == "cpu":
            torch.set_num_threads(threads)
        self.tokenizer, self.config = load_vocabulary(name, causal)
        auto = transformers.AutoModelForCausalLM if causal else transformers.AutoModelForSeq2SeqLM
        with encoder.loading(folder := model_folder(name)):
            network = encoder.load_network(auto, folder, self.config)
        self.network = network.to(self.device, getattr(torch, precision))

    def generate(self, ids: torch.Tensor, mask: torch.Tensor, longest: int, **options: Any) -> Any:
        """Returns the token ids that the model writes, at most longest for each row of ids."""
        import torch

        with torch.inference_mode():
            return self.network.generate(
                input_ids=ids.to(self.device),
                attention_mask=mask.to(self.device).long(),
                do_sample=False,
                max_length=None,
                max_new_tokens=longest,
                **options,
            )


class Draw:
    """A logits processor that keeps one token of the nucleus, sampled with each text's own seed.

    Source: Holtzman et al. 2020, *The Curious Case of Neural Text Degeneration*, nucleus sampling.
    """

    def __init__(self, seeds: Sequence[int], temperature: float, top_p: float) -> None:
        import numpy as np

        self._draws = [np.random.default_rng(seed) for seed in seeds]
        self._temperature, self._top_p = temperature, top_p

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Sets all but one of each row of scores, logits of shape (texts, vocabulary), to -inf."""
        import torch

        shares = (scores.double() / self._temperature).softmax(dim=-1)
        shares, tokens = shares.sort(dim=-1, descending=True, stable=True)
        sums = shares.cumsum(dim=-1)
        nucleus = ((sums - shares) < self._top_p).sum(dim=-1, keepdim=True)
        drawn = torch.tensor([[draw.random()] for draw in self._draws], device=scores.device)
        chosen = torch.searchsorted(sums, drawn * sums.gather(1, nucleus - 1), right=True)
        token = tokens.gather(1, chosen.clamp(max=nucleus - 1))
        return torch.full_like(scores, -torch.inf).scatter(1, token, 0.0)


@cache
def model_folder(model: str) -> str:
    """Returns the path that transformers loads; copies a model of an object store to this host once
    a process.

    On the hosts of its workers, Spark has already copied it: see share_models.
    """
    if not remote(model):
        return model
    from pyspark import SparkFiles

    if SparkFiles._is_running_on_worker:
        return SparkFiles.get(model.rstrip("/").rpartition("/")[2])
    return str(fetch(model, Path(tempfile.mkdtemp(prefix="gaixie-model-"))))


def share_models(context: SparkContext, models: Iterable[str]) -> None:
    """Makes each executor fetch the models of object stores before its first task."""
    for model in models:
        if remote(model):
            context.addFile(model.rstrip("/"), recursive=True)


def load_vocabulary(model: str, causal: bool = False) -> tuple[Any, Any]:
    """Returns a model's tokenizer and configuration. Raises ValueError or OSError of one line."""
    import transformers

    folder = model_folder(model)
    try:
        with encoder.loading(folder):
            config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
            auto = transformers.AutoTokenizer
            if not causal:
                tokenizer = encoder.load_tokenizer(folder)
            elif (
                tokenizer := auto.from_pretrained(folder, local_files_only=True)
            ).pad_token is None:
                tokenizer.pad_token = tokenizer.eos_token  # as many hub models do; it is masked
    except ImportError as error:
        needed = re.search(r"(sentencepiece|sacremoses|tiktoken)", str(error), re.IGNORECASE)
        name = needed[0].lower() if needed else str(error).split("\n")[0]
        hint = f"its tokenizer needs the package {name}: pip install 'gaixie[translation]'"
        raise ValueError(f"{model}: {hint}") from None
    if config.is_encoder_decoder == causal:
        wanted = "causal language" if causal else "sequence-to-sequence"
        raise ValueError(f"{model}: is a {config.model_type}, not a {wanted} model")
    return tokenizer, config


@contextmanager
def refused() -> Iterator[None]:
    """Turns errors about a model or table in the block into user errors."""
    try:
        yield
    except (OSError, ValueError, ImportError) as error:
        raise JobError(str(error)) from error
