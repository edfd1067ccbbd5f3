"""Prints, for a dry run, sample requests to an endpoint and an estimate for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from statistics import fmean

from gaixie.jobs.pairs.llm.method import LlmSettings
from gaixie.jobs.pairs.llm.prompts import Prompt
from gaixie.jobs.pairs.llm.record import Measured
from gaixie.udfs.command_line import in_time

EXAMPLES = 5

ASSUMED = (Measured(0, 0.6, 0.6, 2.0), Measured(0, 1.0, 1.0, 2.0))
"""Defaults before any answer: 0.6 to 1 token a character, as current vocabularies cut Chinese, and
2 s."""


def preview(
    settings: LlmSettings,
    model: str,
    sentences: Sequence[str],
    total: float,
    measured: Measured | None,
) -> None:
    """Prints up to EXAMPLES requests, and the estimate.

    sentences: the first fit ones. total: estimated fit sentences of the whole input. measured:
    figures from the model's recorded answers.
    """
    prompt, size = Prompt(settings), settings.sentences_per_request
    groups = [sentences[k : k + size] for k in range(0, len(sentences), size)]
    asked = [prompt.messages(group, settings.variants[0][0]) for group in groups]
    for number, messages in enumerate(asked[:EXAMPLES], 1):
        for message in messages:
            print(f"request {number}, {message['role']}:\n{message['content']}\n")
    if not asked:
        print("no estimate: no sentence is fit")
        return
    requests = total * len(settings.variants) / size
    prompts = requests * fmean(sum(len(m["content"]) for m in messages) for messages in asked)
    answers = requests * size * fmean(map(len, sentences))  # answers as long as their sentences
    rates, told = [*ASSUMED], "assumed, since no answer of this model is recorded"
    if measured:
        rates, told = [measured], f"measured in {measured.requests:,} recorded requests to {model}"
    tokens_in = [prompts * rate.tokens_in for rate in rates]
    tokens_out = [answers * rate.tokens_out for rate in rates]
    of_in, of_out = zip(*((rate.tokens_in, rate.tokens_out) for rate in rates), strict=True)
    seconds = rates[-1].seconds
    print(
        f"estimate: about {total:,.0f} sentences, {requests:,.0f} requests, {_range(tokens_in)} "
        f"tokens in, {_range(tokens_out)} out ({_range(of_in, '.2f')} and {_range(of_out, '.2f')} "
        f"a character, {seconds:.1f} s a request: {told})"
    )
    costs = map(settings.cost, tokens_in, tokens_out)
    known = [cost for cost in costs if cost is not None]
    money = _range(known, ",.2f") if known else "unknown without price_in and price_out"
    minutes = max(
        requests * seconds / settings.concurrency / 60,
        requests / (settings.requests_per_minute or inf),
        (tokens_in[-1] + tokens_out[-1]) / (settings.tokens_per_minute or inf),
    )
    print(f"cost: {money}; time: {in_time(60 * minutes)} at these limits")


def _range(values: Sequence[float], form: str = ",.0f") -> str:
    """Formats one value, or the first and the last of several."""
    return " to ".join(dict.fromkeys(f"{value:{form}}" for value in values))
