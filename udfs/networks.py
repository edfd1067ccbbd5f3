"""Loads pretrained networks and tokenizers, for metrics, jobs and training; pads their batches.

A model is a folder that ``transformers`` loads, or a name in the Hugging Face cache (``hf download
NAME`` puts it there; nothing is downloaded here, because every worker of a cluster would do so). A
folder takes precedence.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

WEIGHTS = ("*.safetensors", "*.bin")
VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model")


@functools.cache
def model_signature(model: str) -> str:
    """Identifies a model in a signature: by its folder's name and 8 digits of a digest.

    The digest covers weights, configuration and vocabulary. A name in the hub's cache identifies
    itself.
    """
    folder = Path(model)
    if not folder.is_dir():
        return model
    digest = hashlib.sha256()
    for path in _files(folder, (*WEIGHTS, *VOCABULARIES)):
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    digest.update((folder / "config.json").read_bytes())
    return f"{folder.absolute().name}@{digest.hexdigest()[:8]}"


def _files(folder: Path, patterns: Sequence[str]) -> list[Path]:
    return sorted({path for pattern in patterns for path in folder.glob(pattern)})


def choose_device(device: str) -> str:
    """Returns the device for ``auto``, and any other name unchanged."""
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return device


def pad(ids: list[list[int]], filler: int, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns (token numbers, mask of true tokens), both (rows, longest row)."""
    import torch

    lengths = torch.tensor([len(row) for row in ids])
    mask = torch.arange(int(lengths.max())) < lengths.unsqueeze(1)
    padded = torch.full(mask.shape, filler)
    padded[mask] = torch.tensor([token for row in ids for token in row])
    return padded.to(device), mask.to(device)


def load_network(kind: Any, model: str, config: Any) -> Any:
    """Loads a network of an Auto class, in float32, ready for inference.

    Raises ValueError if weights are missing, except those of a pooler, which nothing here reads.
    """
    import torch

    options = {"config": config, "dtype": torch.float32, "output_loading_info": True}
    network, report = kind.from_pretrained(model, local_files_only=True, **options)
    if missing := sorted(key for key in report["missing_keys"] if "pooler" not in key):
        raise ValueError(f"its weights lack {missing[0]}, and {len(missing) - 1:,} others")
    return network.eval()


def load_tokenizer(model: str) -> Any:
    """Loads a model's tokenizer. Raises ValueError if a folder has none, or if it cannot pad.

    If its files are missing, transformers gives some classes a tokenizer with an empty vocabulary.
    """
    import transformers

    folder = Path(model)
    if folder.is_dir() and not _files(folder, VOCABULARIES):
        raise ValueError("it has no tokenizer")
    tokenizer = transformers.AutoTokenizer.from_pretrained(model, local_files_only=True)
    if tokenizer.pad_token_id is None:
        raise ValueError("its tokenizer has no padding token")
    return tokenizer


@contextmanager
def loading(model: str, hint: str = "") -> Iterator[None]:
    """Turns what transformers raises in the block into one line that names the model.

    hint: advice if there is no such model. Suppresses warnings and progress bars: warnings of
    unused layers do not matter, and missing weights are an error here.
    """
    from safetensors import SafetensorError
    from transformers.utils import logging

    folder = Path(model)
    if not folder.is_dir() and not _in_hub_cache(model):
        missing = f"{model}: no such folder, nor a model in the Hugging Face cache"
        raise FileNotFoundError(f"{missing} (hf download fills it)" + f"; {hint}" * bool(hint))
    if folder.is_dir() and not (folder / "config.json").is_file():
        raise ValueError(f"{model}: not a model folder: it has no config.json")
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    except (OSError, ValueError, RuntimeError, KeyError, SafetensorError) as error:
        line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ValueError(f"{model}: cannot be loaded: {line}") from error
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def _in_hub_cache(model: str) -> bool:
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        return isinstance(try_to_load_from_cache(model, "config.json"), str)
    except HFValidationError:  # a path that cannot be a name on the hub
        return False
