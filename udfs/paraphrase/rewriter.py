"""Writes whole candidates: a small encoder-decoder, run by CTranslate2 with eight-bit weights.

    rewriter = Rewriter.load()
    rewriter.candidates(["…"], degrees=(3, 5), count=4)      # some texts for each

It reads ``<s> kind degree source </s>`` in the pieces of the pair encoder's vocabulary and writes
the paraphrase. What it writes is no more than a candidate: the pair encoder judges it.
``research/make_rewriter.py`` trains it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from gaixie.udfs.meaning.pair_encoder import SHIPPED as PAIR_ENCODER
from gaixie.udfs.meaning.pair_encoder import TOKENIZER
from gaixie.udfs.text.punctuation import CHINESE, restore

SHIPPED = Path(__file__).parents[1] / "models/rewriter-zh"
KIND, DEGREES = "<1>", ("<4>", "<5>", "<6>", "<7>", "<8>")
"""Prefixes of a source: as people write; how much is to change, from little to all."""
LONGEST = 96
"""Tokens of a source; a longer one gets no candidates."""
BATCH_TOKENS = 2_048
SPACE = re.compile(rf"(?<=[{CHINESE}]) +| +(?=[{CHINESE}])")


class Rewriter:
    """The model and its tokenizer. Get one from :meth:`load`."""

    def __init__(self, folder: Path, threads: int):
        import ctranslate2
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(PAIR_ENCODER / TOKENIZER))
        self._tokenizer.no_truncation()
        self._translator = ctranslate2.Translator(
            str(folder), compute_type="int8", inter_threads=threads, intra_threads=1
        )

    @classmethod
    @cache
    def load(cls, folder: Path = SHIPPED, threads: int | None = None) -> Rewriter:
        """The model of a folder, by default the one that ships."""
        return cls(folder, threads or len(os.sched_getaffinity(0)))

    def candidates(
        self, texts: Sequence[str], degrees: Sequence[int], count: int
    ) -> list[list[str]]:
        """For each text the ``count`` best of the search for each degree, without what equals it
        or another; none for a text of more than LONGEST tokens."""
        encoded = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        rows = [k for k, own in enumerate(encoded) if 0 < len(own.ids) <= LONGEST]
        prompts = [
            ["<s>", KIND, DEGREES[degree - 1], *map(self._piece, encoded[k].ids), "</s>"]
            for k in rows
            for degree in degrees
        ]
        found: list[dict[str, None]] = [{} for _ in texts]
        if prompts:
            results = self._translator.translate_batch(
                prompts,
                max_batch_size=BATCH_TOKENS,
                batch_type="tokens",
                beam_size=count,
                num_hypotheses=count,
                max_decoding_length=LONGEST + 16,
                disable_unk=True,
            )
            for place, result in enumerate(results):
                row = rows[place // len(degrees)]
                for pieces in result.hypotheses:
                    found[row].setdefault(_text(pieces, texts[row]))
        return [
            [one for one in own if one and one != text]
            for text, own in zip(texts, found, strict=True)
        ]

    def _piece(self, token: int) -> str:
        return str(self._tokenizer.id_to_token(token))


def _text(pieces: Sequence[str], source: str) -> str:
    """The text of pieces, with the punctuation of Chinese print."""
    text = "".join(pieces).replace("▁", " ").strip()
    return restore(SPACE.sub("", text), source)
