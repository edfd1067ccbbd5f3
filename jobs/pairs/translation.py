"""Translates sentences with models of transformers: m2m100, or one Marian model a direction.

A model is a folder, at the same path on every host, or a name in the Hugging Face cache. m2m100
reads and writes all languages, which its tokens __zh__ … name; a Marian model (opus-mt) has a
language pair in its name, so the setting says {source} and {target} there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from pydantic import Field
from pyspark.sql import DataFrame

from gaixie.jobs.corpus.session import cores
from gaixie.jobs.pairs.method import Candidate, Method
from gaixie.jobs.pairs.pieces import write_pieces
from gaixie.udfs import networks
from gaixie.udfs.command_line import as_user_error
from gaixie.udfs.meaning.pair_encoder import batches
from gaixie.udfs.text.normalise import normalise

if TYPE_CHECKING:
    from gaixie.jobs.pairs.build import PairsBuild

CHINESE = "zh"

TOO_MANY_TOKENS = "too_many_tokens"
"""Reason: the sentence is longer than the model or the settings allow."""
CUT_OFF = "cut_off"
"""Reason: the translation did not end within the maximum length."""
EMPTY = "empty_translation"
COPIED = "copied_translation"
"""Reason: the translation into another language equals its source."""

PIECES = 512
"""Maximum pieces in progress at once."""

CPU_TOKENS, GPU_TOKENS = 1024, 16_384
"""Tokens of a batch with padding, times beams."""


class Translation(NamedTuple):
    """A translation, or the reason why it failed; text is the model's output."""

    text: str | None
    reason: str | None


class Translating(Method):
    """The settings of a method that translates."""

    beams: int = Field(4, ge=1)
    """width of the beam search"""
    max_tokens: int = Field(200, ge=1)
    """maximum tokens of a sentence; longer ones go to quarantine"""
    max_ratio: float = Field(3.0, gt=0)
    """maximum tokens of a translation: this many times those of its source, plus 20"""
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    batch_tokens: int | None = Field(None, ge=1)
    """tokens of a batch with padding, times beams; by default 1024 on the CPU, 16384 on a GPU"""
    device: str = "auto"
    """auto: the GPU if there is one"""
    threads: int = Field(1, ge=1)
    """CPU threads of a task"""
    piece_sentences: int = Field(2000, ge=1)
    """sentences of a piece: a killed job loses the pieces under way"""

    without_effect: ClassVar[set[str]] = {"device", "threads"}
    reads: ClassVar[str] = "source"
    """What the model gets: the sentence, or the foreign one that it belongs to."""

    @property
    def directions_of_models(self) -> list[Direction]:
        """Returns all translations that the method makes."""
        raise NotImplementedError

    def candidates(self, sentences: Sequence[str]) -> Iterable[Candidate]:
        """Yields candidates of each sentence."""
        raise NotImplementedError

    def check(self) -> None:
        """Raises UserError if a model lacks a part or a language; loads no weights."""
        for model, *languages, _ in self.directions_of_models:
            with as_user_error():
                tokenizer, config = load_vocabulary(model)
                for language in languages if config.model_type == "m2m_100" else ():
                    language_token(tokenizer, model, language)

    def make(self, build: PairsBuild, fit: DataFrame) -> DataFrame:
        """Lets the executors translate, a piece on each core."""
        at_once = min(cores(build.spark), PIECES)
        return write_pieces(build, fit, self.candidates, self.piece_sentences, at_once, self.reads)

    def digests(self) -> str:
        """Returns the names and digests of the models."""
        models = (direction.model for direction in self.directions_of_models)
        return " ".join(dict.fromkeys(map(networks.model_signature, models)))

    def translate(self, way: Direction, texts: Sequence[str]) -> list[Translation]:
        """Returns a translation of each text. Within one language, a text may stay unchanged.

        Texts of like length share a batch.
        """
        translator = load_translator(way.model, self.device, self.precision, self.threads)
        made = [Translation(None, TOO_MANY_TOKENS)] * len(texts)
        ids = translator.token_ids([way.prefix + text for text in texts], way.source)
        longest = min(self.max_tokens, translator.longest)
        short = [row for row, tokens in enumerate(ids) if len(tokens) <= longest]
        default = CPU_TOKENS if translator.device == "cpu" else GPU_TOKENS
        size = (self.batch_tokens or default) // self.beams
        for batch in batches([len(ids[row]) for row in short], size):
            rows = [short[k] for k in batch]
            found = translator.generate([ids[row] for row in rows], self, way.target)
            for row, (text, ended) in zip(rows, found, strict=True):
                made[row] = checked(texts[row], text, ended, way.source == way.target)
        return made

    def go_on(self, way: Direction, made: Sequence[Translation]) -> list[Translation]:
        """Translates those that no earlier translation has failed."""
        good = [item.text or "" for item in made if item.reason is None]
        translated = iter(self.translate(way, good))
        return [item if item.reason else next(translated) for item in made]


class Direction(NamedTuple):
    """One of the translations that a sentence goes through. prefix: the model's instruction."""

    model: str
    source: str
    target: str
    prefix: str = ""

    @classmethod
    def of(cls, model: str, source: str, target: str, prefix: str = "") -> Direction:
        """Returns a translation by a model, with languages in place of {source} and {target}."""
        name = model.replace("{source}", source).replace("{target}", target)
        return cls(name, source, target, prefix)


class Translator:
    """A model and its tokenizer on one device."""

    def __init__(self, model: str, device: str, precision: str, threads: int):
        import torch
        import transformers

        self.name, self.device = model, networks.choose_device(device)
        if self.device == "cpu":
            torch.set_num_threads(threads)
        self.tokenizer, config = load_vocabulary(model)
        self.has_languages = config.model_type == "m2m_100"
        with networks.loading(model):
            network = networks.load_network(transformers.AutoModelForSeq2SeqLM, model, config)
        self.network = network.to(self.device, getattr(torch, precision))
        positions = getattr(config, "max_position_embeddings", self.tokenizer.model_max_length)
        self.longest = min(self.tokenizer.model_max_length, positions)

    def token_ids(self, texts: Sequence[str], language: str) -> list[list[int]]:
        """Returns the token ids of each text, with those that name the language and end the
        text."""
        if not texts:
            return []
        given = {"verbose": False, "add_special_tokens": not self.has_languages}
        ids = self.tokenizer(list(texts), **given)["input_ids"]
        if not self.has_languages:
            return ids
        first = language_token(self.tokenizer, self.name, language)
        return [[first, *row, self.tokenizer.eos_token_id] for row in ids]

    def generate(
        self, ids: list[list[int]], settings: Translating, target: str
    ) -> list[tuple[str, bool]]:
        """Returns (translation, whether it ended) for texts of like length."""
        import torch

        longest = int(max(map(len, ids)) * settings.max_ratio) + 20
        options: dict[str, Any] = {"num_beams": settings.beams, "do_sample": False}
        options |= {"max_length": None, "max_new_tokens": longest}
        if self.has_languages:
            options["forced_bos_token_id"] = language_token(self.tokenizer, self.name, target)
        batch, mask = networks.pad(ids, self.tokenizer.pad_token_id, self.device)
        with torch.inference_mode():
            output = self.network.generate(input_ids=batch, attention_mask=mask.long(), **options)
        ended = (output[:, 1:longest] == self.tokenizer.eos_token_id).any(dim=1).tolist()
        behind = output[:, 1 + self.has_languages :]
        texts = self.tokenizer.batch_decode(behind, skip_special_tokens=True)
        return [(text.strip(), end) for text, end in zip(texts, ended, strict=True)]


load_translator = cache(Translator)
"""Returns a translator, loaded once in a process."""


def load_vocabulary(model: str) -> tuple[Any, Any]:
    """Returns a model's tokenizer and configuration. Raises ValueError or OSError of one line."""
    import transformers

    try:
        with networks.loading(model):
            config = transformers.AutoConfig.from_pretrained(model, local_files_only=True)
            tokenizer = networks.load_tokenizer(model)
    except ImportError as error:
        needed = re.search(r"(sentencepiece|sacremoses|tiktoken)", str(error), re.IGNORECASE)
        name = needed[0].lower() if needed else str(error).split("\n")[0]
        hint = f"its tokenizer needs the package {name}: pip install 'gaixie[translation]'"
        raise ValueError(f"{model}: {hint}") from None
    if not config.is_encoder_decoder:
        raise ValueError(f"{model}: is a {config.model_type}, not a sequence-to-sequence model")
    return tokenizer, config


def language_token(tokenizer: Any, model: str, language: str) -> int:
    """Returns the id of the token that names a language. Raises ValueError if there is none."""
    number = tokenizer.convert_tokens_to_ids(f"__{language}__")
    if number in (None, tokenizer.unk_token_id):
        raise ValueError(f"{model}: no language '{language}' in its vocabulary")
    return number


def checked(text: str, made: str, ended: bool, same_language: bool) -> Translation:
    """Returns a text's translation, checked, given whether it ended."""
    if not made:
        return Translation(None, EMPTY)
    if not ended:
        return Translation(made, CUT_OFF)
    copied = not same_language and normalise(made) == normalise(text)
    return Translation(made, COPIED if copied else None)
