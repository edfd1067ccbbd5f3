"""A Chinese encoder that reads source and paraphrase together: the fifth eye of tier ``full``.

    encoder = PairEncoder.load("models/pair-encoder")
    encoder.judge(sources, paraphrases)    # float32 (rows, 5): four judgements and the score

The network is a BERT (bge-small-zh-v1.5 unless another was taken) over ``[CLS] source [SEP] paraphrase
[SEP]``. From its last layer come the state of [CLS], the mean states of both sentences, their
difference and product, and for every token of the paraphrase how likely something is wrong there.
``research/fitting/pair_encoder.py`` trains it.

A folder holds ``pair_encoder.json`` (format, version, outputs, digest), ``config.json`` and
``tokenizer.json`` of the BERT, and ``weights.npz``: matrices in 8 bits with a scale a row, 24 MB for
bge-small-zh. torch and transformers are imported when a model is loaded, not before.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import torch

FORMAT_VERSION = 1
DESCRIPTION, CONFIG, TOKENIZER, WEIGHTS = (
    "pair_encoder.json",
    "config.json",
    "tokenizer.json",
    "weights.npz",
)
TASKS = (
    *("structure", "synonyms", "meaning", "fluency", "overall"),
    *("same", "similar", "correct", "quality", "faithful", "natural", "human"),
)
"""What the network of tier full predicts: the five ratings, then what other sets judge."""
MAXIMUM_TOKENS = 400
"""Of both sentences together; what is longer is cut, the longer sentence first."""
HOW_TO_MAKE = "python research/fit_spscore.py --tier full makes it"


class Batch(NamedTuple):
    """Encoded pairs, padded to one length: tensors of shape (pairs, tokens)."""

    ids: Any
    types: Any
    mask: Any
    source: Any
    """1.0 where a token is of the source, likewise paraphrase."""
    paraphrase: Any


def pair_network(config: dict[str, Any], tasks: int) -> Any:
    """The network, with random weights: a ``torch.nn.Module``.

    Called with a :class:`Batch`, it gives (logits (pairs, tasks), logits of tokens (pairs, tokens)).
    """
    import torch
    from torch import nn
    from transformers import BertConfig, BertModel

    class PairNetwork(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = BertModel(BertConfig(**config), add_pooling_layer=False)
            width = self.encoder.config.hidden_size
            self.token = nn.Linear(width, 1)
            self.mix = nn.Linear(5 * width + 2, width)
            self.dropout = nn.Dropout(0.1)
            self.tasks = nn.Linear(width, tasks)

        def forward(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
            states = self.encoder(
                input_ids=batch.ids, token_type_ids=batch.types, attention_mask=batch.mask
            ).last_hidden_state
            wrong = self.token(states).squeeze(-1).float()
            states = states.float()
            a, b = (_mean(states, side) for side in (batch.source, batch.paraphrase))
            doubt = torch.sigmoid(wrong) * batch.paraphrase
            length = batch.paraphrase.sum(1).clamp(min=1)
            doubts = torch.stack([doubt.max(1).values, doubt.sum(1) / length], 1)
            pooled = torch.cat([states[:, 0], a, b, (a - b).abs(), a * b, doubts], 1)
            mixed = torch.tanh(self.mix(self.dropout(pooled)))
            return self.tasks(self.dropout(mixed)).float(), wrong

    def _mean(states: torch.Tensor, side: torch.Tensor) -> torch.Tensor:
        return (states * side.unsqueeze(-1)).sum(1) / side.sum(1, keepdim=True).clamp(min=1)

    return PairNetwork()


class PairEncoder:
    """A trained network with its tokenizer, on one device. Get one from :meth:`load`."""

    def __init__(
        self, network: Any, tokenizer: Any, tasks: Sequence[str], digest: str, device: str
    ) -> None:
        self.network, self.tokenizer, self.tasks = network, tokenizer, tuple(tasks)
        self.digest, self.device = digest, device

    @classmethod
    def load(cls, folder: str | Path, device: str = "auto") -> PairEncoder:
        """The encoder of a folder. device: ``auto`` is the GPU where there is one.

        Raises ImportError without torch or transformers, FileNotFoundError or ValueError of one
        line for a folder that holds no such model, is damaged or of another version.
        """
        folder = Path(folder)
        check_folder(folder)
        import torch
        from tokenizers import Tokenizer

        description = _description(folder)
        config = json.loads((folder / CONFIG).read_text("utf-8"))
        network = pair_network(config, len(description["tasks"]))
        network.load_state_dict(read_weights(folder / WEIGHTS))
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        network = network.to(device).eval()
        return cls(network, tokenizer, description["tasks"], description["digest"], device)

    def judge(
        self, source: Sequence[str], paraphrase: Sequence[str], batch_tokens: int | None = None
    ) -> np.ndarray:
        """Structure, synonyms, meaning, fluency and score: float32 in [0, 1], shape (rows, 5)."""
        return self.predict(source, paraphrase, batch_tokens)[:, :5]

    def predict(
        self, source: Sequence[str], paraphrase: Sequence[str], batch_tokens: int | None = None
    ) -> np.ndarray:
        """Every task: float32 in [0, 1], shape (rows, tasks). Sentences are taken as normalised.

        batch_tokens: tokens in a batch, padding included; None is 4,096 on the CPU, 65,536 elsewhere.
        """
        import torch

        limit = batch_tokens or (4096 if self.device == "cpu" else 65536)
        encoded = encode(self.tokenizer, source, paraphrase, most_tokens(self.network))
        out = np.empty((len(encoded), len(self.tasks)), np.float32)
        with torch.inference_mode(), torch.autocast(self.device, torch.bfloat16):
            for rows in batches([len(pair.ids) for pair in encoded], limit):
                batch = collate([encoded[row] for row in rows])
                batch = Batch(*(tensor.to(self.device) for tensor in batch))
                out[rows] = torch.sigmoid(self.network(batch)[0]).cpu().numpy()
        return out


def most_tokens(network: Any) -> int:
    """Tokens of a pair that a network reads."""
    return min(MAXIMUM_TOKENS, network.encoder.config.max_position_embeddings)


def encode(
    tokenizer: Any, source: Sequence[str], paraphrase: Sequence[str], most: int
) -> list[Any]:
    """``tokenizers.Encoding`` of each pair, of at most so many tokens."""
    tokenizer.enable_truncation(most, strategy="longest_first")
    tokenizer.no_padding()
    return tokenizer.encode_batch(list(zip(source, paraphrase, strict=True)))


def batches(lengths: Sequence[int], limit: int) -> Iterator[list[int]]:
    """Rows of like length, at most limit tokens with their padding (a longer pair comes alone)."""
    rows: list[int] = []
    for row in sorted(range(len(lengths)), key=lengths.__getitem__):
        if rows and (len(rows) + 1) * lengths[row] > limit:
            yield rows
            rows = []
        rows.append(row)
    if rows:
        yield rows


def collate(encoded: Sequence[Any]) -> Batch:
    """A batch of ``tokenizers.Encoding``, padded with zeros."""
    import torch

    longest = max(len(pair.ids) for pair in encoded)
    arrays = np.zeros((5, len(encoded), longest), np.float32)
    for row, pair in enumerate(encoded):
        length = len(pair.ids)
        sides = np.array([-1 if side is None else side for side in pair.sequence_ids])
        arrays[:, row, :length] = pair.ids, pair.type_ids, np.ones(length), sides == 0, sides == 1
    ids, types, mask, source, paraphrase = map(torch.from_numpy, arrays)
    return Batch(ids.long(), types.long(), mask, source, paraphrase)


def write_folder(
    folder: Path,
    network: Any,
    config: dict[str, Any],
    tokenizer: Any,
    tasks: Sequence[str],
    summary: dict[str, Any],
) -> None:
    """Writes what :meth:`PairEncoder.load` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    write_weights(folder / WEIGHTS, network.state_dict())
    (folder / CONFIG).write_text(json.dumps(config, indent=2) + "\n", "utf-8")
    tokenizer.no_padding()
    tokenizer.no_truncation()
    tokenizer.save(str(folder / TOKENIZER))
    description = {
        "format": FORMAT_VERSION,
        "tasks": list(tasks),
        "digest": _digest(folder),
        "summary": summary,
    }
    text = json.dumps(description, ensure_ascii=False, indent=2)
    (folder / DESCRIPTION).write_text(text + "\n", "utf-8")


def write_weights(path: Path, weights: Mapping[str, torch.Tensor]) -> None:
    """Matrices as int8 with a float32 scale for each row, all else as float16, in one .npz."""
    arrays = {}
    for name, tensor in weights.items():
        values = tensor.detach().float().cpu().numpy()
        if values.ndim == 2 and values.size > 10_000:
            scale = np.maximum(np.abs(values).max(axis=1, keepdims=True), 1e-8) / 127
            arrays[name] = np.round(values / scale).astype(np.int8)
            arrays[f"{name}|scale"] = scale.astype(np.float32)
        elif values.dtype.kind == "f" and tensor.is_floating_point():
            arrays[name] = values.astype(np.float16)
    np.savez_compressed(path, **arrays)


def read_weights(path: Path) -> dict[str, torch.Tensor]:
    """What write_weights wrote, as float32 tensors by name. ValueError for a damaged file."""
    import torch

    try:
        with np.load(path, allow_pickle=False) as arrays:
            weights = {}
            for name in arrays.files:
                if name.endswith("|scale"):
                    continue
                values = arrays[name].astype(np.float32)
                if f"{name}|scale" in arrays.files:
                    values *= arrays[f"{name}|scale"]
                weights[name] = torch.from_numpy(values)
            return weights
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"{path}: expected the weights of a pair encoder ({error})") from None


@cache
def load_pair_encoder(folder: str, device: str = "auto") -> PairEncoder:
    """PairEncoder.load, once in a process."""
    return PairEncoder.load(folder, device)


def check_folder(folder: Path) -> str:
    """The digest of a pair encoder that can be used here; nothing is loaded.

    Raises what PairEncoder.load raises.
    """
    for package in ("torch", "transformers"):
        if importlib.util.find_spec(package) is None:
            raise ImportError(f"tier full needs {package}: pip install 'gaixie[metrics]'")
    return _description(folder)["digest"]


def _description(folder: Path) -> dict[str, Any]:
    path = folder / DESCRIPTION
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file; expected a pair encoder; {HOW_TO_MAKE}")
    try:
        description = json.loads(path.read_text("utf-8"))
        version, digest = description["format"], description["digest"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: expected the description of a pair encoder ({error})") from None
    if version != FORMAT_VERSION:
        raise ValueError(f"{path}: format {version!r}, but this version reads {FORMAT_VERSION}")
    for name in (CONFIG, TOKENIZER, WEIGHTS):
        if not (folder / name).is_file():
            raise FileNotFoundError(f"{folder / name}: no such file; {path} lists it")
    if _digest(folder) != digest:
        raise ValueError(f"{path}: digest {digest}, but the files have {_digest(folder)}: damaged")
    return description


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for name in (CONFIG, TOKENIZER, WEIGHTS):
        digest.update((folder / name).read_bytes())
    return digest.hexdigest()[:10]
