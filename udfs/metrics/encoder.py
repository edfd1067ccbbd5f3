"""Computes token embeddings and sentence vectors of a pretrained encoder, in batches by length.

A model is a folder that ``transformers`` loads, or a name in the Hugging Face cache (``hf download
NAME`` puts it there; nothing is downloaded here, because every worker of a cluster would do so). A
folder takes precedence; ``python research/make_encoder.py --output models/e5-small`` makes one
without a network.

Texts are truncated at the model's maximum. The shape of a batch changes the last bits of matrix
products, so scores of one text agree to about six digits, not exactly.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gaixie.udfs.meaning.pair_encoder import batches

if TYPE_CHECKING:
    import torch

DEFAULT_MODEL = "models/e5-small"
HOW_TO_MAKE = f"python research/make_encoder.py --output {DEFAULT_MODEL} makes it"
Precision = Literal["float32", "bfloat16"]
WEIGHTS = ("*.safetensors", "*.bin")
VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model")


@dataclass(frozen=True)
class TokenEmbeddings:
    """Embeddings of the tokens of some texts, special tokens included."""

    vectors: torch.Tensor
    """(tokens, width) float32, of length 1, text after text, on the encoder's device."""
    offsets: np.ndarray
    """(texts + 1,) int64: text k has the rows from offsets[k] up to offsets[k + 1]."""
    ids: np.ndarray
    """(tokens,) int64: the tokens' numbers in the vocabulary."""

    def __getitem__(self, text: int) -> torch.Tensor:
        """Returns the rows of a text's tokens."""
        return self.vectors[self.offsets[text] : self.offsets[text + 1]]

    def token_ids(self, text: int) -> np.ndarray:
        """Returns the numbers of a text's tokens."""
        return self.ids[self.offsets[text] : self.offsets[text + 1]]


class Encoder:
    """A pretrained encoder on one device; ``load_encoder`` gives one for each process.

    model: folder or cached name. layer: the layer whose output is used, from 1; None is the last.
    Layers above it are not computed. device: ``auto`` is the GPU if there is one.
    precision: float32, or bfloat16 (autocast: faster on a GPU, two to three digits). batch_tokens:
    tokens in a batch, padding included; None is 1,024 on the CPU, 16,384 elsewhere.

    Raises OSError or ValueError, in one line, if the model cannot be loaded or has no such layer.
    """

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        layer: int | None = None,
        device: str = "auto",
        precision: Precision = "float32",
        batch_tokens: int | None = None,
    ) -> None:
        import transformers

        self.device = choose_device(device)
        self.precision = precision
        self.batch_tokens = batch_tokens or (1024 if self.device == "cpu" else 16384)
        with loading(model, HOW_TO_MAKE):
            config = transformers.AutoConfig.from_pretrained(model, local_files_only=True)
            self.tokenizer = load_tokenizer(model)
            last = config.num_hidden_layers
            if layer is not None and not 1 <= layer <= last:
                raise ValueError(f"no layer {layer}: the model's layers are 1 to {last}")
            self.layer = layer or last
            config.num_hidden_layers = self.layer
            self.network = load_network(transformers.AutoModel, model, config).to(self.device)
        if config.is_encoder_decoder:
            self.network = self.network.get_encoder()
        positions = getattr(config, "max_position_embeddings", self.tokenizer.model_max_length)
        self.max_tokens = min(self.tokenizer.model_max_length, positions)
        self.keep_tokens = 0
        """Tokens whose embeddings are cached, width × 4 bytes each, so that several metrics read a
        text once. A full cache is emptied."""
        self._kept: dict[str, tuple[torch.Tensor, np.ndarray]] = {}

    def token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Returns each text's token numbers, special tokens included, at most max_tokens."""
        if not texts:
            return []
        return self.tokenizer(list(texts), truncation=True, max_length=self.max_tokens)["input_ids"]

    def token_embeddings(self, texts: Sequence[str]) -> TokenEmbeddings:
        """Returns contextual embeddings of every token."""
        import torch

        if not self.keep_tokens or not texts:
            return self._embed(texts)
        new = [text for text in dict.fromkeys(texts) if text not in self._kept]
        embedded = self._embed(new)
        here = {text: (embedded[k], embedded.token_ids(k)) for k, text in enumerate(new)}
        rows = [here[text] if text in here else self._kept[text] for text in texts]
        if sum(len(ids) for _, ids in (*self._kept.values(), *here.values())) > self.keep_tokens:
            self._kept.clear()
        self._kept |= here
        offsets = np.cumsum([0, *(len(ids) for _, ids in rows)])
        vectors = torch.cat([vectors for vectors, _ in rows])
        return TokenEmbeddings(vectors, offsets, np.concatenate([ids for _, ids in rows]))

    def _embed(self, texts: Sequence[str]) -> TokenEmbeddings:
        import torch

        ids = self.token_ids(texts)
        offsets = np.cumsum([0, *map(len, ids)])
        width = self.network.config.hidden_size
        vectors = torch.empty((int(offsets[-1]), width), device=self.device)
        for rows, hidden, mask in self._batches(ids):
            order = np.concatenate([np.arange(offsets[row], offsets[row + 1]) for row in rows])
            unit = torch.nn.functional.normalize(hidden[mask], dim=-1)
            vectors[torch.from_numpy(order).to(self.device)] = unit
        return TokenEmbeddings(
            vectors, offsets, np.array([i for row in ids for i in row], np.int64)
        )

    def sentence_vectors(self, texts: Sequence[str]) -> np.ndarray:
        """Returns the mean of each text's token embeddings, at length 1: (texts, width) float32."""
        import torch

        ids = self.token_ids(texts)
        vectors = np.empty((len(ids), self.network.config.hidden_size), np.float32)
        for rows, hidden, mask in self._batches(ids):
            sums = (hidden * mask.unsqueeze(-1)).sum(dim=1)  # they have the direction of the means
            vectors[rows] = torch.nn.functional.normalize(sums, dim=-1).cpu().numpy()
        return vectors

    def _batches(
        self, ids: list[list[int]]
    ) -> Iterator[tuple[list[int], torch.Tensor, torch.Tensor]]:
        """Yields (rows, hidden states (rows, tokens, width) float32, mask (rows, tokens))."""
        import torch

        enabled, kind = self.precision == "bfloat16", self.device.partition(":")[0]
        for rows in batches([len(row) for row in ids], self.batch_tokens):
            batch, mask = pad([ids[row] for row in rows], self.tokenizer.pad_token_id, self.device)
            with torch.inference_mode(), torch.autocast(kind, torch.bfloat16, enabled=enabled):
                hidden = self.network(input_ids=batch, attention_mask=mask.long())
            yield rows, hidden.last_hidden_state.float(), mask


@functools.cache
def load_encoder(
    model: str, layer: int | None = None, device: str = "auto", precision: Precision = "float32"
) -> Encoder:
    """Loads the encoder with these settings, once in a process. Raises as ``Encoder`` does."""
    return Encoder(model, layer, device, precision)


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


def distinct(*columns: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """Returns the distinct texts, and the index of each text in them: int64, (columns, rows)."""
    numbers: dict[str, int] = {}
    rows = [[numbers.setdefault(text, len(numbers)) for text in column] for column in columns]
    return list(numbers), np.array(rows, np.int64)


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


# Loading


def load_network(kind: Any, model: str, config: Any) -> Any:
    """Loads a network of an Auto class, in float32, ready for inference.

    Raises ValueError if weights are missing, except those of a pooler, which nothing here reads.
    """
    import torch

    options = {"config": config, "dtype": torch.float32, "output_loading_info": True}
    network, report = kind.from_pretrained(model, local_files_only=True, **options)
    missing = sorted(key for key in report["missing_keys"] if "pooler" not in key)
    if missing:
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
        raise FileNotFoundError(
            "; ".join(filter(None, [f"{missing} (hf download fills it)", hint]))
        )
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
