"""Runs a paraphraser in CTranslate2, a C++ engine that is several times as fast on a CPU.

    export("runs/first/model", "exported", "int8")
    generator = load_generator("exported")       # writes and scores as the model does, on all cores

An exported folder holds the engine's model and vocabulary, and the tokenizer's files. The weights
are float32 or rounded to eight bits; the engine has its own search. What it samples depends on the
seed of the process's first call.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from gaixie.training.modeling.generator import Generator
from gaixie.training.modeling.tokenizer import EntityAlignedTokenizer
from gaixie.udfs.metrics.encoder import loading

WEIGHTS, ABOUT = "model.bin", "export.json"
HOW_TO_INSTALL = "pip install 'gaixie[export]' installs CTranslate2"


def is_exported(folder: str) -> bool:
    """Returns whether a folder was made by export."""
    return Path(folder, ABOUT).is_file() and Path(folder, WEIGHTS).is_file()


def export(model: Any, tokenizer: Any, output: Path, quantization: str = "int8") -> None:
    """Writes the folder. Do not use the model's weights afterwards: the engine scales them.

    Raises ValueError for a model that is not BART, or has a tokenizer other than ours.
    """
    engine()
    from ctranslate2.converters.transformers import BartLoader

    if model.config.model_type != "bart" or not isinstance(tokenizer, EntityAlignedTokenizer):
        raise ValueError(f"{model.config.model_type}: expected a BART with Gaixie's tokenizer")
    model.config.normalize_before = False  # transformers no longer has this setting
    spec = BartLoader()(model.float(), tokenizer)
    spec.validate()
    spec.optimize(quantization=quantization)
    output.mkdir(parents=True, exist_ok=True)
    spec.save(str(output))
    tokenizer.save_pretrained(output)
    config = model.config
    about = {
        "quantization": quantization,
        "max_position_embeddings": config.max_position_embeddings,
        "decoder_start_token_id": config.decoder_start_token_id,
        "degrees": getattr(config, "degrees", False),
    }
    (output / ABOUT).write_text(json.dumps(about, indent=2) + "\n", "utf-8")


def engine() -> Any:
    """Returns the module ctranslate2. Raises ImportError that says what to install."""
    try:
        import ctranslate2
    except ImportError as error:
        raise ImportError(f"ctranslate2 is missing: {HOW_TO_INSTALL}") from error
    return ctranslate2


@cache
def load_exported(folder: str, device: str = "auto") -> tuple[Any, Any]:
    """Returns (engine with the model's configuration, tokenizer) of an exported folder.

    Raises OSError or ValueError, in one line, if the folder is damaged.
    """
    with loading(folder):
        about = json.loads(Path(folder, ABOUT).read_text("utf-8"))
        tokenizer = EntityAlignedTokenizer.from_pretrained(folder)
        try:
            translator = engine().Translator(
                folder, device=device, compute_type=about["quantization"]
            )
        except RuntimeError as error:
            raise ValueError(str(error)) from error
    return SimpleNamespace(translator=translator, config=SimpleNamespace(**about)), tokenizer


class ExportedGenerator(Generator):
    """Generator over an exported model; only candidates of like score may come in another order."""

    def _write(
        self, ids: Sequence[Sequence[int]], limit: int, arguments: dict[str, Any]
    ) -> list[list[int]]:
        options = {"beam_size": arguments["num_beams"]}
        if arguments["do_sample"]:
            options |= {
                "sampling_topk": 0,
                "sampling_topp": arguments["top_p"],
                "sampling_temperature": arguments["temperature"],
            }
        results = self.model.translator.translate_batch(
            [self.tokenizer.convert_ids_to_tokens(row) for row in ids],
            num_hypotheses=arguments["num_return_sequences"],
            max_decoding_length=limit,
            max_input_length=0,
            **options,
        )
        lines = []
        for result in results:
            for tokens in result.hypotheses:
                line = [self._start, *self.tokenizer.convert_tokens_to_ids(tokens)]
                lines.append(line + [self.tokenizer.eos_token_id] * (len(tokens) < limit))
        return lines

    def _score(self, ids: Sequence[Sequence[int]], lines: Sequence[Sequence[int]]) -> list[float]:
        end = self.tokenizer.eos_token_id
        targets = [[token for token in line[1:] if token != end] for line in lines]
        results = self.model.translator.score_batch(
            [self.tokenizer.convert_ids_to_tokens(row) for row in ids],
            [self.tokenizer.convert_ids_to_tokens(row) for row in targets],
            max_input_length=0,
        )
        return [sum(result.log_probs) / len(result.log_probs) for result in results]

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        yield

    def _seed(self, seed: int) -> None:
        engine().set_random_seed(seed)
