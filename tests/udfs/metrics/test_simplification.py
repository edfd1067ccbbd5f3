import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaixie.udfs.metrics.metric import Pairs
from gaixie.udfs.metrics.simplification import FEATURES, Feature, Sentence, reordered

TEXT = st.text("我很高兴快乐。，!.a𠮷 1", max_size=12)


def test_reordered():
    def of(source, paraphrase):
        return reordered(*(Sentence("".join(cut), 1, list(cut)) for cut in (source, paraphrase)))

    assert of("abcd", "dabc") == 1 / 4  # all four are kept, three of them in order
    # a b are kept, one of them in order; three words in the source
    assert of("aab", "ba") == pytest.approx(1 / 3)


@given(st.sampled_from([*FEATURES]), TEXT, TEXT)
def test_ranges(feature, source, paraphrase):
    [found] = Feature(feature).sentence_scores(Pairs.of([source], [paraphrase]))
    low, high = FEATURES[feature].range
    assert math.isnan(found) or low <= found <= high
