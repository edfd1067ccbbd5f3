"""The whole paraphraser, with the shipped pair encoder."""

import numpy as np
import pytest

from gaixie.udfs.paraphrase.paraphraser import Gates, Paraphraser, Wanted, change

TEXTS = [
    "此外，卫生部门提醒，野生蘑菇煮熟后仍然可能有毒，因此切勿采食。",
    "如果你认为这个决定非常重要，那么应该立刻告诉大家。",
    "由于大雨，会议推迟到了下周三，但是已经通知了所有人。",
]


@pytest.fixture(scope="module")
def paraphraser() -> Paraphraser:
    return Paraphraser.load()


def test_paraphrases_differ_and_are_the_same_again(paraphraser: Paraphraser) -> None:
    first, again = paraphraser(TEXTS, Wanted(n=3)), paraphraser(TEXTS, Wanted(n=3))
    assert first == again
    assert sum(map(bool, first)) >= 2
    for text, own in zip(TEXTS, first, strict=True):
        assert text not in [one.text for one in own]
        assert len({one.text for one in own}) == len(own) <= 3


def test_what_shares_a_batch_changes_nothing(paraphraser: Paraphraser) -> None:
    together = [[one.text for one in own] for own in paraphraser(TEXTS)]
    alone = [[one.text for one in paraphraser([text])[0]] for text in TEXTS]
    assert together == alone


def test_a_lower_degree_changes_less(paraphraser: Paraphraser) -> None:
    def mean(degree: int) -> float:
        found = zip(TEXTS, paraphraser(TEXTS, Wanted(degree)), strict=True)
        return float(np.mean([change(text, own[0].text) for text, own in found if own]))

    assert mean(1) < mean(5)


def test_kept_terms_and_entities_stay(paraphraser: Paraphraser) -> None:
    text = "此外，在2024年3月5日，《红楼梦》的销量已经超过了3000本，但是书店仍然很冷清。"
    for own in paraphraser([text], Wanted(n=5, keep=("仍然",)))[0]:
        assert all(term in own.text for term in ("2024年3月5日", "《红楼梦》", "3000本", "仍然"))


def test_what_is_quoted_stays(paraphraser: Paraphraser) -> None:
    """Quoted text must stay, also inside quotation marks that normalisation changes."""
    quoted = "“没有理由，就是每天早上都不想睁眼！”"
    text = f"他说：{quoted}但是我们都认为，这种情况非常罕见。"
    [found] = paraphraser([text], Wanted(n=3))
    assert found
    assert all(quoted in own.text for own in found)


def test_gates_that_nothing_passes_give_nothing() -> None:
    assert Paraphraser.load(Gates(same=1.1))(TEXTS) == [[], [], []]


@pytest.mark.parametrize("text", ["", "。", "hello", "\U0001f600" * 5, "字"])
def test_nothing_to_write_is_no_error(paraphraser: Paraphraser, text: str) -> None:
    assert paraphraser([text])[0] == []


def test_wrong_values_are_named() -> None:
    with pytest.raises(ValueError, match="degree: expected 1 to 5, not 6"):
        Wanted(degree=6)
    with pytest.raises(ValueError, match="n: expected 1 or more, not 0"):
        Wanted(n=0)
