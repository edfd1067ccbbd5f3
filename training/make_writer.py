"""Makes what gaixie paraphrase needs, the writer and the judge: a base and our adapters, in eight
bits.

  python training/make_writer.py                  the adapters that ship, on their base
  python training/make_writer.py --adapter adapters/own --output writers/own
  gaixie paraphrase --model writers/own "…"

Downloads the base (1.1 GB) unless --parts has it, and needs 8 GB of memory, four minutes and 2.4 GB
of disk; PyTorch is not needed. The judge goes into the folder ``judge`` inside the writer's.
--adapter is a folder of PEFT for a base of kind Qwen2 that modeling/base_files.py knows; its
tokenizer's tokens are kept, and the judge that ships reads its drafts. From an adapter of
research/fit_judge.py it makes a judge. (A model of training/curriculum.py is whole:
ct2-transformers-converter --model … --quantization int8 --copy_files tokenizer.json.) Exit codes: 0
done, 2 something to fix (one line says what).
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
from ctranslate2.specs import common_spec
from pydantic import Field

from gaixie.training.modeling.base_files import PACKAGES, assemble
from gaixie.udfs.command_line import make_parser, run_command, say
from gaixie.udfs.paraphrase.judge import DESCRIPTION, JUDGE
from gaixie.udfs.paraphrase.paraphraser import writer_folder
from gaixie.udfs.paraphrase.prompt import END
from gaixie.udfs.paraphrase.writer import MODEL, TOKENIZER
from gaixie.udfs.storage.settings import Options, add_options, options_of

MODELS = Path(__file__).parents[1] / "udfs/models"
CONFIG, CHANGES, HEAD = "adapter_config.json", "adapter_model.safetensors", "head"
ADAPTED = {f"attn_{name}": f"self_attn.{name[0]}_proj" for name in ("q", "k", "v", "output")}
ADAPTED |= {f"ffn_{name}": f"mlp.{name}_proj" for name in ("gate", "up", "down")}
"""The linear layers of a block: their names in the file of the base and in PEFT."""


class Writing(Options):
    """What is put together, and where it goes."""

    adapter: Path | None = None
    """Folder of an adapter and its tokenizer, instead of the two that ship."""
    output: Path = Field(default_factory=writer_folder, title="FOLDER")
    """Folder that gaixie paraphrase reads; by default the one where it looks."""
    parts: Path | None = None
    """Folder that has, or gets, the file of the base's weights; by default a temporary one."""


def main(argv: list[str] | None = None) -> int:
    """Runs the script and returns its exit code."""
    parser = make_parser("make_writer.py", __doc__)
    add_options(parser, Writing)
    args = parser.parse_args(argv)
    return run_command("make_writer", lambda: make(options_of(Writing, args)))


def make(options: Writing) -> None:
    """Runs the command: merges, converts, publishes the folder at once."""
    import gguf  # noqa: F401  (before the download)
    import safetensors  # noqa: F401

    if options.output.exists():
        raise ValueError(f"{options.output}: is there already; move it away")
    shipped = {".": MODELS / "writer-zh", JUDGE: MODELS / "judge-zh"}
    adapters = {".": options.adapter} if options.adapter else shipped
    bases = {place: _base_of(adapter) for place, adapter in adapters.items()}
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="gaixie-", dir=options.output.parent) as work:
        made = Path(work, "made")
        for place, adapter in adapters.items():
            weights = assemble(bases[place], options.parts or Path(work))
            say(f"merging {bases[place]} with {adapter.name}, in eight bits: some two minutes")
            AdaptedQwen(weights, adapter).convert(str(made / place), quantization="int8")
            for name in {TOKENIZER, DESCRIPTION} & {path.name for path in adapter.iterdir()}:
                shutil.copy(adapter / name, made / place)
        size = sum(file.stat().st_size for file in made.rglob(MODEL))
        made.rename(options.output)
    print(f"{options.output}: {size / 1e9:.2f} GB")


def _base_of(adapter: Path) -> str:
    """Returns the name of an adapter's base. Raises ValueError if it is no such folder."""
    for name in (CONFIG, CHANGES, TOKENIZER):
        if not (adapter / name).is_file():
            raise ValueError(f"{adapter}: has no {name}")
    base = json.loads((adapter / CONFIG).read_text("utf-8"))["base_model_name_or_path"]
    if base not in PACKAGES:
        raise ValueError(f"{adapter}: its base is {base}, not one of {', '.join(PACKAGES)}")
    return base


class AdaptedQwen(ctranslate2.converters.Converter):
    """A Qwen2 model of a GGUF file with the changes of a LoRA adapter, for CTranslate2.

    Each linear layer becomes W + (α / r) B A (Hu et al. 2021, *LoRA*, section 4.1). If the
    adapter's settings name its ``layers``, those above are left out; if it has a ``head``, of shape
    (outputs, dimensions), the model gives its outputs instead of the tokens'.
    """

    def __init__(self, weights: Path, adapter: Path):
        import gguf
        from safetensors.numpy import load_file

        self._file = gguf.GGUFReader(weights)
        self._tensors = {one.name: one for one in self._file.tensors}
        self._dequantise = gguf.quants.dequantize
        self._changes = load_file(adapter / CHANGES)
        settings = json.loads((adapter / CONFIG).read_text("utf-8"))
        self._layers = settings.get("layers", self._value("block_count"))
        self._scale = settings["lora_alpha"] / settings["r"]
        tokenizer = json.loads((adapter / TOKENIZER).read_text("utf-8"))
        added = {one["content"]: one["id"] for one in tokenizer["added_tokens"]}
        numbers = tokenizer["model"]["vocab"] | added
        self._tokens = sorted(numbers, key=numbers.__getitem__)

    def _load(self) -> Any:
        """Returns the specification that CTranslate2 saves."""
        heads, own = self._value("attention.head_count"), self._value("attention.head_count_kv")
        spec = ctranslate2.specs.TransformerDecoderModelSpec.from_config(
            self._layers,
            heads,
            activation=common_spec.Activation.SWISH,
            ffn_glu=True,
            rms_norm=True,
            rotary_dim=0,
            rotary_interleave=False,
            rotary_base=self._value("rope.freq_base"),
            num_heads_kv=own if own != heads else None,
        )
        decoder = spec.decoder
        decoder.scale_embeddings = False
        rows, output = self._rows(), "output.weight"
        decoder.embeddings.weight = self._tensor("token_embd.weight")[rows]
        tied = output not in self._tensors
        if HEAD in self._changes:
            decoder.projection.weight = self._changes[HEAD].astype(np.float32)
        else:
            decoder.projection.weight = self._tensor("token_embd.weight" if tied else output)[rows]
        decoder.layer_norm.gamma = self._tensor("output_norm.weight")
        for number, layer in enumerate(decoder.layer):
            self._fill(number, layer)
        spec.register_vocabulary(self._tokens)
        spec.config.bos_token = spec.config.eos_token = END
        spec.config.unk_token = ""
        spec.config.layer_norm_epsilon = self._value("attention.layer_norm_rms_epsilon")
        return spec

    def _fill(self, number: int, layer: Any) -> None:
        """Sets the weights of a block."""
        attention, ffn = layer.self_attention, layer.ffn
        attention.layer_norm.gamma = self._tensor(f"blk.{number}.attn_norm.weight")
        ffn.layer_norm.gamma = self._tensor(f"blk.{number}.ffn_norm.weight")
        read = [f"attn_{name}" for name in "qkv"]
        attention.linear[0].weight = np.concatenate([self._linear(number, name) for name in read])
        shifts = [self._tensor(f"blk.{number}.{name}.bias") for name in read]
        attention.linear[0].bias = np.concatenate(shifts)
        attention.linear[1].weight = self._linear(number, "attn_output")
        ffn.linear_0.weight = self._linear(number, "ffn_gate")
        ffn.linear_0_noact.weight = self._linear(number, "ffn_up")
        ffn.linear_1.weight = self._linear(number, "ffn_down")

    def _linear(self, number: int, name: str) -> np.ndarray:
        """Returns the weights of a linear layer with their change, (outputs, inputs) float32."""
        weight = self._tensor(f"blk.{number}.{name}.weight")
        of = f"base_model.model.model.layers.{number}.{ADAPTED[name]}.lora_"
        if f"{of}A.weight" in self._changes:
            a, b = (self._changes[f"{of}{side}.weight"].astype(np.float32) for side in "AB")
            weight = weight + self._scale * (b @ a)
        return weight

    def _tensor(self, name: str) -> np.ndarray:
        tensor = self._tensors[name]
        return np.asarray(self._dequantise(tensor.data, tensor.tensor_type), np.float32)

    def _rows(self) -> list[int]:
        """Returns the number of each kept token in the base."""
        known = {token: row for row, token in enumerate(self._value("tokenizer.ggml.tokens"))}
        if lacking := sorted({*self._tokens} - {*known}):
            raise ValueError(f"the base has no token {lacking[0]!r}")
        return [known[token] for token in self._tokens]

    def _value(self, name: str) -> Any:
        """Returns an entry of the file's header, of the tokenizer or of the model."""
        whole = name if name.startswith("tokenizer") else f"qwen2.{name}"
        return self._file.fields[whole].contents()


if __name__ == "__main__":
    sys.exit(main())
