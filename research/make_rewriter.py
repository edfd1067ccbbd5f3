"""Makes the rewriter, an encoder-decoder meant to write candidates for gaixie paraphrase.

  python research/make_rewriter.py prepare DATA --versions VERSIONS --output material.npz
  python research/make_rewriter.py train material.npz --seconds 400 --output trained
  python research/make_rewriter.py export trained

prepare  gathers pairs and their tokens. DATA has the sets that research/rewriter/data.py names;
         VERSIONS is versions.jsonl in the work folder of research/make_pair_encoder.py
train    trains for --seconds, on a GPU if there is one; it needs only torch and transformers
export   writes the model with eight-bit weights for CTranslate2

Exit codes: 0 done, 2 something to fix (one line says what).
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

from gaixie.udfs.command_line import make_parser, run_command, say

OWN = Path(__file__).with_name("pair_encoder")
GROUPS = Path(__file__).with_name("rewriter") / "groups.jsonl"
MODELS = Path(__file__).parents[1] / "udfs/models"
VOCABULARY = 22_376
TIED = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")
"""Weights tied to the shared embedding."""


def main(argv: list[str] | None = None) -> int:
    """Runs the script and returns its exit code."""
    args = _arguments(argv)
    work = {"prepare": prepare, "train": train, "export": export}[args.command]
    return run_command("make_rewriter", partial(work, args))


def prepare(args: argparse.Namespace) -> None:
    """Gathers texts and pairs, and writes them with their tokens."""
    from tokenizers import Tokenizer

    from gaixie.research.pair_encoder.examples import held_out as held_out_group
    from gaixie.research.pair_encoder.ratings import read_json_lines
    from gaixie.research.pair_encoder.versions import held_out
    from gaixie.research.rewriter.data import collect, edited_sentences, without_idioms
    from gaixie.research.rewriter.material import save

    rows = map(json.loads, args.versions.read_text("utf-8").splitlines())
    versions = [texts for key, texts in rows if not held_out(key)]
    paths = [args.data / "written_groups.jsonl", OWN / "written_groups.jsonl", GROUPS]
    groups = [row for path in paths for row in read_json_lines(path)]
    written = [row["texts"] for row in groups if not held_out_group(row["group"])]
    rewritten = read_json_lines(OWN / "rewritten.jsonl")
    written += [[r["source"], *r["same"]] for r in rewritten if not held_out_group(r["group"])]
    kept = {text for row in groups if held_out_group(row["group"]) for text in row["texts"]}
    say("editing plain sentences: ten minutes, on one core")
    collector = collect(versions, written, without_idioms(args.data), edited_sentences(args.data))
    if kept & collector.texts.keys():
        raise ValueError("a sentence that is kept for the test is among the others")
    tokenizer = Tokenizer.from_file(str(MODELS / "pair-encoder-zh/tokenizer.json"))
    tokenizer.no_truncation()
    material = collector.material(tokenizer)
    save(material, args.output)
    counts = [int((material.kinds == kind).sum()) for kind in range(4)]
    print(f"{len(material.ends):,} texts, {len(material.tokens):,} tokens")
    print("pairs: translated {:,}, written {:,}, plain {:,}, edited {:,}".format(*counts))


def train(args: argparse.Namespace) -> None:
    """Trains the rewriter and writes its weights in parts."""
    import torch

    from gaixie.research.rewriter.material import load
    from gaixie.research.rewriter.training import Batches, start, train, watch

    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model: Any = start(args.bert, VOCABULARY)
    batches = Batches(load(args.material), VOCABULARY, device, args.seed)
    print(f"{sum(own.numel() for own in model.parameters()):,} weights, {device}", flush=True)
    if args.read:
        from gaixie.research.rewriter.reading import choose, load_network

        print(choose(batches, load_network(args.bert, args.parts)), flush=True)
    for said in train(model, batches, args.seconds, args.tokens, args.compile):
        print(said, flush=True)
    write_weights(model, args.output)
    print(watch(model.to(device, torch.bfloat16), batches, args.tokens), flush=True)


def write_weights(model: Any, folder: Path) -> None:
    """Writes a model's weights in bfloat16, in parts small enough to copy between machines."""
    import torch

    from gaixie.research.pair_encoder.parts import write_state

    state = model.state_dict()
    write_state({k: v.to(torch.bfloat16).cpu() for k, v in state.items() if k not in TIED}, folder)


def read_weights(folder: Path) -> dict[str, Any]:
    """Reads, in float32, what write_weights wrote."""
    from gaixie.research.pair_encoder.parts import read_state

    state = {name: own.float() for name, own in read_state(folder).items()}
    return state | dict.fromkeys(TIED, state["model.shared.weight"])


def export(args: argparse.Namespace) -> None:
    """Writes a folder that ctranslate2.Translator loads."""
    from ctranslate2.converters.transformers import BartLoader
    from tokenizers import AddedToken, Tokenizer
    from transformers import BartForConditionalGeneration, PreTrainedTokenizerFast

    from gaixie.research.pair_encoder.exported import round_to_seven_bits
    from gaixie.research.rewriter.material import PREFIXES
    from gaixie.research.rewriter.training import configuration

    state = read_weights(args.trained)
    model = BartForConditionalGeneration(configuration(state))
    model.load_state_dict(state, strict=False)
    own = Tokenizer.from_file(str(MODELS / "pair-encoder-zh/tokenizer.json"))
    own.add_tokens([AddedToken(f"<{k}>", special=True) for k in range(PREFIXES)])
    names = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=own, **names)
    model.config.normalize_before = False  # BartLoader reads it; transformers no longer has it
    spec = BartLoader()(model, tokenizer)
    spec.validate()
    spec.optimize(quantization="int8_float16")  # float16 is for everything but matrices
    args.output.mkdir(parents=True, exist_ok=True)
    spec.save(str(args.output))
    round_to_seven_bits(args.output / "model.bin")


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("make_rewriter.py", __doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    own = commands.add_parser("prepare", help="gather pairs and their tokens")
    own.add_argument("data", metavar="DATA", type=Path)
    own.add_argument("--versions", type=Path, required=True, help="versions.jsonl")
    own.add_argument("--output", type=Path, default=Path("out/rewriter/material.npz"))
    own = commands.add_parser("train", help="train on a device")
    own.add_argument("material", metavar="FILE", type=Path)
    own.add_argument("--bert", type=Path, default=Path("out/pair-encoder/start"))
    own.add_argument("--seconds", type=float, default=400)
    own.add_argument("--tokens", type=int, default=49_152, help="of a batch (%(default)s)")
    own.add_argument("--seed", type=int, default=7)
    own.add_argument("--read", action="store_true", help="leave out what the encoder doubts")
    own.add_argument("--parts", type=Path, help="of the encoder, by train_pair_encoder.py")
    own.add_argument("--compile", action="store_true")
    own.add_argument("--output", type=Path, default=Path("out/rewriter/trained"))
    own = commands.add_parser("export", help="write it for CTranslate2")
    own.add_argument("trained", metavar="FOLDER", type=Path)
    own.add_argument("--output", type=Path, default=Path("out/rewriter/exported"))
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
