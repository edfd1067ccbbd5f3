"""Translates sentences with any sequence-to-sequence model of transformers, in batches of like
length.

A model is a folder, local or of an object store, or a name in the Hugging Face cache. Its
configuration tells which of three kinds it is:

- m2m100, NLLB and mBART: one model for all languages, which special tokens name; - Marian
(opus-mt): one model for each direction, so its name has {source} and {target} in it; - T5 and
others that need an instruction: the setting prefix, with {source} and {target}.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field
from xxhash import xxh3_64_intdigest

from gaixie.jobs.pairs import models
from gaixie.jobs.pairs.method import Free, Group
from gaixie.jobs.pairs.models import CUT_OFF, TOO_MANY_TOKENS, Draw, Model, refused
from gaixie.jobs.pairs.writing import Sentences
from gaixie.udfs.meaning.pair_encoder import batches
from gaixie.udfs.metrics import encoder
from gaixie.udfs.text.normalise import normalise

CHINESE = "zh"

EMPTY = "empty_translation"
COPIED = "copied_translation"
"""Reason: the translation into another language equals its source."""
WRONG_LANGUAGE = "wrong_language"
"""Reason: less than half of the translation's letters are in the language's script."""

_ROWS = Path(__file__).with_name("languages.tsv").read_text("utf-8").splitlines()
LANGUAGES = {row[0]: row[1:] for row in (line.split("\t") for line in _ROWS[1:])}
"""Scripts and the NLLB name by ISO 639-1 code; a script is how its Unicode character names
begin."""

CPU_TOKENS, GPU_TOKENS = 1024, 16_384
"""Tokens of a batch with padding, times beams."""


class TranslationSettings(Group):
    """translation in conf/pairs.yaml."""

    beams: int = Field(default=4, ge=1)
    sample: bool = False
    """sample (temperature, top_p) instead of searching with beams"""
    temperature: float = Field(default=1.0, gt=0)
    top_p: float = Field(default=0.9, gt=0, le=1)
    max_tokens: int = Field(default=200, ge=1)
    """maximum tokens of a sentence; longer ones go to quarantine"""
    max_ratio: float = Field(default=3.0, gt=0)
    """maximum tokens of a translation: this many times those of its source, plus 20"""
    prefix: str = ""
    languages: dict[str, str] = Field(default_factory=dict)
    """the model's own names of languages, by language"""
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    batch_tokens: Annotated[int | None, Free()] = Field(default=None, ge=1)
    device: Annotated[str, Free()] = "auto"
    threads: Annotated[int, Free()] = Field(default=1, ge=1)


class Translation(NamedTuple):
    """A translation, or the reason why it failed; text is the model's output."""

    text: str | None
    reason: str | None


class Step(NamedTuple):
    """One of the translations that a sentence goes through."""

    model: str
    settings: TranslationSettings
    source: str
    target: str

    @property
    def name(self) -> str:
        """Returns the model of this direction, with languages in place of {source} and {target}."""
        return directed(self.model, self.source, self.target)

    def check(self) -> None:
        """Raises JobError if the model lacks a part or a language; loads no weights."""
        with refused():
            tokenizer, config = models.load_vocabulary(self.name)
            for language in (self.source, self.target) if names_languages(config) else ():
                language_token(tokenizer, self.name, language, self.settings.languages)

    def translate(self, texts: Sequence[str], seed: int) -> list[Translation]:
        """Translates each text. Within one language, a text may stay unchanged."""
        translator = load_translator(self.name, self.settings)
        made = translator.translate(texts, self.source, self.target, seed)
        if self.source != self.target:
            return made
        return [item._replace(reason=None) if item.reason == COPIED else item for item in made]

    def go_on(self, made: Sequence[Translation], seed: int) -> list[Translation]:
        """Translates those that no earlier step has failed."""
        good = [item.text or "" for item in made if item.reason is None]
        translated = iter(self.translate(good, seed))
        return [item if item.reason else next(translated) for item in made]


class Translating(Sentences):
    """A method that translates."""

    @property
    def steps(self) -> list[Step]:
        """Returns all translations that the method makes."""
        raise NotImplementedError

    def check(self, dry_run: bool = False) -> None:
        for step in self.steps:
            step.check()

    def models(self) -> list[str]:
        return list(dict.fromkeys(step.name for step in self.steps))

    def version(self) -> str:
        """Returns the names and digests of the models."""
        signatures = (encoder.model_signature(models.model_folder(name)) for name in self.models())
        return " ".join(dict.fromkeys(signatures))


def directed(text: str, source: str, target: str) -> str:
    """Replaces {source} and {target} by languages."""
    return text.replace("{source}", source).replace("{target}", target)


class Translator(Model):
    """A model that translates; load_translator gives one for each process."""

    def __init__(self, model: str, settings: TranslationSettings) -> None:
        super().__init__(model, False, settings.device, settings.precision, settings.threads)
        self.settings = settings
        self._read = min(settings.max_tokens, _longest(self.tokenizer, self.config))
        tokens = settings.batch_tokens or (CPU_TOKENS if self.device == "cpu" else GPU_TOKENS)
        self._batch_tokens = tokens if settings.sample else tokens // settings.beams

    def translate(
        self, texts: Sequence[str], source: str, target: str, seed: int = 0
    ) -> list[Translation]:
        """Returns a translation of each text; languages are ISO 639-1.

        seed: with the text, decides what is sampled; neither its batch nor its place matters.
        """
        made: list[Translation] = [Translation(None, TOO_MANY_TOKENS)] * len(texts)
        ids = self.token_ids(texts, source, target)
        short = [row for row, tokens in enumerate(ids) if len(tokens) <= self._read]
        for batch in batches([len(ids[row]) for row in short], self._batch_tokens):
            rows = [short[k] for k in batch]
            seeds = [_seed(seed, source, target, texts[row]) for row in rows]
            found = self._generate([ids[row] for row in rows], target, seeds)
            for row, translation in zip(rows, found, strict=True):
                made[row] = judged(texts[row], translation, target)
        return made

    def token_ids(
        self, texts: Sequence[str], source: str, target: str = CHINESE
    ) -> list[list[int]]:
        """Returns the token ids of each text, with those that name the language and end the
        text."""
        languages = self.settings.languages
        if not names_languages(self.config):
            names = languages.get(source, source), languages.get(target, target)
            prefix = directed(self.settings.prefix, *names)
            return self._ids([prefix + text for text in texts])
        name = language_token(self.tokenizer, self.name, source, languages)
        if hasattr(self.tokenizer, "src_lang"):
            self.tokenizer.src_lang = name.strip("_")
            return self._ids(texts)
        first, last = self.tokenizer.convert_tokens_to_ids(name), self.tokenizer.eos_token_id
        return [[first, *ids, last] for ids in self._ids(texts, add_special_tokens=False)]

    def _ids(self, texts: Sequence[str], **given: bool) -> list[list[int]]:
        return self.tokenizer(list(texts), verbose=False, **given)["input_ids"] if texts else []

    def _generate(
        self, ids: list[list[int]], target: str, seeds: list[int]
    ) -> list[tuple[str, bool]]:
        """Returns (translation, whether it ended) for texts of like length."""
        settings, beams = self.settings, 1 if self.settings.sample else self.settings.beams
        first: dict[str, int] = {}
        if names_languages(self.config):
            name = language_token(self.tokenizer, self.name, target, settings.languages)
            first["forced_bos_token_id"] = self.tokenizer.convert_tokens_to_ids(name)
        draws = [Draw(seeds, settings.temperature, settings.top_p)] if settings.sample else []
        longest = int(max(map(len, ids)) * settings.max_ratio) + 20
        batch, mask = encoder.pad(ids, self.tokenizer.pad_token_id, self.device)
        output = self.generate(
            batch, mask, longest, num_beams=beams, logits_processor=draws, **first
        )
        ended = (output[:, 1:longest] == self.tokenizer.eos_token_id).any(dim=1).tolist()
        # Some tokenizers do not mark their language tokens as special.
        behind = output[:, 1 + len(first) :]
        texts = self.tokenizer.batch_decode(behind, skip_special_tokens=True)
        return [(text.strip(), end) for text, end in zip(texts, ended, strict=True)]


@lru_cache(maxsize=4)
def load_translator(model: str, settings: TranslationSettings) -> Translator:
    """Returns the translator of these settings, loaded once in a process. Raises as Translator
    does."""
    return Translator(model, settings)


def names_languages(config: Any) -> bool:
    """Returns whether special tokens name the languages."""
    return config.model_type in ("m2m_100", "mbart")


def language_token(tokenizer: Any, model: str, language: str, given: dict[str, str]) -> str:
    """Returns the token that names a language. Raises ValueError if the vocabulary has none."""
    nllb = LANGUAGES.get(language, ["", ""])[1]
    names = [given[language]] if language in given else [f"__{language}__", nllb]
    if language in tokenizer.all_special_tokens:  # otherwise it may be a piece of a word
        names.append(language)
    for name in names:
        if name and tokenizer.convert_tokens_to_ids(name) not in (None, tokenizer.unk_token_id):
            return name
    hint = f"--set translation.languages.{language}=NAME gives the model's name for it"
    raise ValueError(f"{model}: no language '{language}' in its vocabulary; {hint}")


def _longest(tokenizer: Any, config: Any) -> int:
    positions = getattr(config, "max_position_embeddings", None) or tokenizer.model_max_length
    return min(tokenizer.model_max_length, positions)


def judged(text: str, translation: tuple[str, bool], target: str) -> Translation:
    """Returns a text's translation, checked, given whether it ended."""
    made, ended = translation
    if not made:
        return Translation(None, EMPTY)
    if not ended:
        return Translation(made, CUT_OFF)
    if normalise(made) == normalise(text):
        return Translation(made, COPIED)
    return Translation(made, None if is_language(made, target) else WRONG_LANGUAGE)


def is_language(text: str, language: str) -> bool:
    """Returns whether at least half of the letters are in the language's script; for a language
    without a known script, whether less than half are Chinese."""
    letters = [unicodedata.name(c, "").partition(" ")[0] for c in text if c.isalpha()]
    if not letters:
        return False
    if language not in LANGUAGES:
        return letters.count("CJK") * 2 < len(letters)
    scripts = LANGUAGES[language][0].split()
    return 2 * sum(name in scripts for name in letters) >= len(letters)


def _seed(seed: int, source: str, target: str, text: str) -> int:
    return xxh3_64_intdigest(f"{source} {target} {text}".encode(), seed % 2**64)
