"""Trims the vocabulary of a pretrained causal model to the tokens that some text uses.

Kept are the tokens that occur often enough, the special tokens that are asked for, all byte tokens,
and every token from which merges make a kept one. So text of kept tokens is encoded as before, and
any other character falls back to smaller tokens, at last to its bytes: no text is lost.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import islice
from typing import Any

from tokenizers import Tokenizer, pre_tokenizers
from transformers import PreTrainedTokenizerFast

SPECIAL = ("bos_token", "eos_token", "pad_token", "unk_token")
BATCH = 10_000


def trim(
    model: Any, tokenizer: Any, texts: Iterable[str], least: int
) -> tuple[Any, PreTrainedTokenizerFast]:
    """Returns the model, changed in place, and a new tokenizer.

    tokenizer: a fast one, with BPE. least: occurrences in texts from which a token is kept.

    Raises ValueError for a tokenizer of another kind.
    """
    given = json.loads(tokenizer.backend_tokenizer.to_str())
    if given["model"]["type"] != "BPE":
        raise ValueError(f"a tokenizer of kind {given['model']['type']}: expected BPE")
    special = {name: getattr(tokenizer, name) for name in SPECIAL}
    kept = _kept(tokenizer, given, texts, least, {*special.values()} - {None})
    rows = [index for index, _ in kept]
    changed = _renumbered(given, {token: number for number, (_, token) in enumerate(kept)})
    trimmed = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(changed)),
        model_max_length=tokenizer.model_max_length,
        **special,
    )
    return _with_rows(model, rows, trimmed), trimmed


def trim_like(model: Any, tokenizer: Any, other: Any) -> tuple[Any, Any]:
    """Returns the model, changed in place to another's tokens, and the other tokenizer.

    Raises ValueError if the other has a token that the model does not have.
    """
    known, wanted = tokenizer.get_vocab(), other.get_vocab()
    if lacking := sorted(wanted.keys() - known.keys()):
        raise ValueError(f"the base has no token {lacking[0]!r}")
    rows = [known[token] for token in sorted(wanted, key=wanted.__getitem__)]
    return _with_rows(model, rows, other), other


def _kept(
    tokenizer: Any, given: dict[str, Any], texts: Iterable[str], least: int, special: set[str]
) -> list[tuple[int, str]]:
    """Returns (old id, token) of the tokens that are kept, in the order of their ids."""
    counts: Counter[int] = Counter()
    rest = iter(texts)
    while part := [*islice(rest, BATCH)]:
        for one in tokenizer.backend_tokenizer.encode_batch(part, add_special_tokens=False):
            counts.update(one.ids)
    ids: dict[str, int] = given["model"]["vocab"]
    tokens = {index: token for token, index in ids.items()}
    alphabet = [*pre_tokenizers.ByteLevel.alphabet(), *(f"<0x{byte:02X}>" for byte in range(256))]
    wanted = {
        tokens[index] for index, times in counts.items() if times >= least and index in tokens
    }
    wanted |= {*alphabet} & ids.keys()
    parts: defaultdict[str, list[str]] = defaultdict(list)
    for pair in _merges(given):
        parts["".join(pair)].extend(pair)
    todo = [*wanted]
    while todo:
        new = {*parts[todo.pop()]} - wanted
        wanted |= new
        todo += new
    known = ids | {one["content"]: one["id"] for one in given["added_tokens"]}
    every = {token: ids[token] for token in wanted}
    every |= {token: known[token] for token in special}
    return sorted((index, token) for token, index in every.items())


def _merges(given: dict[str, Any]) -> list[tuple[str, str]]:
    """Returns the merges of a tokenizer.json, which has them as pairs or as "a b"."""
    merges = given["model"]["merges"]
    return [tuple(one.split(" ") if isinstance(one, str) else one) for one in merges]


def _renumbered(given: dict[str, Any], ids: dict[str, int]) -> dict[str, Any]:
    """Returns a tokenizer.json with these tokens alone."""
    merges = [pair for pair in _merges(given) if {*pair, "".join(pair)} <= ids.keys()]
    kept = (one for one in given["added_tokens"] if one["content"] in ids)
    added = [one | {"id": ids[one["content"]]} for one in kept]
    return given | {
        "added_tokens": added,
        "post_processor": None,  # it may name tokens by their old ids; the prompt adds none
        "model": given["model"] | {"vocab": ids, "merges": merges},
    }


def _with_rows(model: Any, rows: list[int], tokenizer: Any) -> Any:
    """Returns the model with these rows of its embedding and its output layer alone."""
    read, write = model.get_input_embeddings(), model.get_output_embeddings()
    tied = read.weight is write.weight
    old = [layer.weight.data[rows].clone() for layer in (read, write)]
    model.resize_token_embeddings(len(rows))
    model.get_input_embeddings().weight.data.copy_(old[0])
    if not tied:
        model.get_output_embeddings().weight.data.copy_(old[1])
    for config in (model.config, model.generation_config):
        for name in ("bos_token_id", "eos_token_id", "pad_token_id"):
            setattr(config, name, getattr(tokenizer, name))
    return model
