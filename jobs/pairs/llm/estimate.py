"""What a dry run shows of questions to an endpoint: prompts as they would be sent, and what all of them take."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from gaixie.jobs.pairs.llm.method import LlmSettings
from gaixie.jobs.pairs.llm.prompts import Prompt
from gaixie.jobs.pairs.llm.record import Measured

EXAMPLES = 5

ASSUMED = Measured(0, 1.0, 1.0, 2.0)
"""Before any answer: a token a character, which Chinese takes at most in today's vocabularies, and 2 s."""


def preview(
    settings: LlmSettings,
    model: str,
    sentences: Sequence[str],
    total: float,
    measured: Measured | None,
) -> None:
    """Prints up to EXAMPLES requests, and the estimate.

    sentences: the first that are fit. total: fit sentences of all input, estimated. measured: of the
    model's answers on record.
    """
    prompt, size = Prompt(settings), settings.sentences_per_request
    groups = [sentences[k : k + size] for k in range(0, len(sentences), size)]
    asked = [prompt.messages(group, settings.variants[0][0]) for group in groups]
    for number, messages in enumerate(asked[:EXAMPLES], 1):
        for message in messages:
            print(f"request {number}, {message['role']}:\n{message['content']}\n")
    if not asked:
        print("estimate: none, without a sentence")
        return
    rates = measured or ASSUMED
    requests = total * len(settings.variants) / size
    prompts = fmean(sum(len(m["content"]) for m in messages) for messages in asked)
    answers = size * fmean(map(len, sentences))
    tokens_in, tokens_out = prompts * rates.tokens_in, answers * rates.tokens_out
    minutes = [requests * rates.seconds / settings.concurrency / 60]
    if settings.requests_per_minute:
        minutes.append(requests / settings.requests_per_minute)
    if settings.tokens_per_minute:
        minutes.append(requests * (tokens_in + tokens_out) / settings.tokens_per_minute)
    how = (
        f"measured in {measured.requests:,} requests to {model} on record"
        if measured
        else "assumed, for no answer of this model is on record"
    )
    print(
        f"estimate: about {total:,.0f} sentences, {requests:,.0f} requests, {requests * tokens_in:,.0f} "
        f"tokens in, {requests * tokens_out:,.0f} out ({rates.tokens_in:.2f} and {rates.tokens_out:.2f} a "
        f"character, {rates.seconds:.1f} s a request: {how})"
    )
    cost = settings.cost(requests * tokens_in, requests * tokens_out)
    money = "cost: unknown without price_in and price_out" if cost is None else f"cost: {cost:,.2f}"
    print(f"{money}; time: {max(minutes) / 60:,.1f} hours at these limits")
