"""Translation and back-translation with transformers models that know a dozen sentences."""

import pytest
from tiny_translators import CORPUS, save_translator

from gaixie.jobs.pairs.back_translation import BackTranslation
from gaixie.jobs.pairs.translation import checked
from gaixie.udfs.command_line import UserError

CHINESE, ENGLISH, AGAIN = (list(texts) for texts in zip(*CORPUS, strict=True))


def method(model: object, **given: object) -> BackTranslation:
    return BackTranslation(input="in", output="out", model=str(model), **given)


def test_m2m100_there_and_back(translator):
    through = method(translator, pivot=["en"], batch_tokens=80)
    there, back = through.directions_of_models
    made = through.translate(there, ["很长" * 100, *CHINESE])
    assert made == [(None, "too_many_tokens"), *((text, None) for text in ENGLISH)]
    assert [item.text for item in through.go_on(back, made)] == [None, *AGAIN]


@pytest.mark.parametrize(
    ("made", "ended", "expected"),
    [
        ("", True, (None, "empty_translation")),
        ("The fire.", False, ("The fire.", "cut_off")),
        (CHINESE[0] + " ", True, (CHINESE[0] + " ", "copied_translation")),
        ("The fire.", True, ("The fire.", None)),
    ],
)
def test_what_is_no_translation(made, ended, expected):
    assert checked(CHINESE[0], made, ended, False) == expected


def test_a_model_for_each_direction(tmp_path):
    save_translator(tmp_path / "zh-en", [("zh", CHINESE[0], "en", ENGLISH[0])], "marian")
    save_translator(tmp_path / "en-zh", [("en", ENGLISH[0], "zh", AGAIN[0])], "marian")
    marian = method(tmp_path / "{source}-{target}", pivot=["en"])
    marian.check()
    assert marian.digests().count("@") == 2
    [made] = marian.candidates(CHINESE[:1])
    assert made == (None, CHINESE[0], AGAIN[0], {"pivot": "en"})


@pytest.mark.parametrize("model", ["{folder}", "none/such", "{empty}"])
def test_models_that_cannot_be_used(translator, tmp_path, model):
    name = model.format(folder=translator, empty=tmp_path)
    with pytest.raises(UserError, match=rf"^[^\n]*{name}[^\n]*$"):
        method(name).check()  # the first has no token of Arabic
