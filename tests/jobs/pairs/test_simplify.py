"""simplify: sentences are translated, simplified, translated back, and filtered."""

import numpy as np
import pytest
from tiny_translators import save_translator

from gaixie.jobs.pairs.simplify import Simplify, mean_levels, perplexities

HARD = "由于天气条件极其恶劣，我们乘坐的航班被迫予以取消。"
SIMPLE = "因为天气条件很差，我们坐的航班只好取消了。"
ENGLISH = "The flight was cancelled owing to adverse conditions."
PLAIN = "The flight was cancelled because of bad weather."
LONG = "孩子们放学以后常常在公园里踢足球玩。"
OTHER = "在公园里，孩子们放学以后常常踢足球玩。"
SAME = "The children often play football after school."


@pytest.fixture(scope="module")
def method(tmp_path_factory) -> Simplify:
    folder = tmp_path_factory.mktemp("simplify")
    translated = [("zh", HARD, "en", ENGLISH), ("en", PLAIN, "zh", SIMPLE)]
    translated += [("zh", LONG, "en", SAME), ("en", SAME, "zh", OTHER)]
    save_translator(folder / "translator", translated)
    simplified = [("en", ENGLISH, "en", PLAIN), ("en", SAME, "en", SAME)]
    save_translator(folder / "simplifier", simplified, "bart")
    models = {"model": str(folder / "translator"), "simplifier": str(folder / "simplifier")}
    return Simplify(input="in", output="out", **models)


def test_three_steps_and_three_filters(method):
    method.check()
    hard, already = method.candidates([HARD, LONG])
    assert hard == (None, HARD, SIMPLE, None)
    assert (already.reason, already.paraphrase) == ("not_simpler", OTHER)
    assert "translator@" in method.digests()


def test_filters(method):
    reasons = {
        SIMPLE: None,
        HARD: "not_simpler",
        "好天气因为，不很这航个班消好取只了的。": "perplexity",
        "我今天早上吃了三个很大的苹果。": "dissimilar",
        "！？": "not_simpler",
    }
    assert method.filter([HARD] * 5, [*reasons]) == [*reasons.values()]


def test_levels_and_perplexities():
    easy, none = mean_levels(["我们爱中国", "，。"])
    assert easy < 2
    assert np.isnan(none)
    good, bad = perplexities([SIMPLE, SIMPLE[::-1]])
    assert good < 200 < bad
