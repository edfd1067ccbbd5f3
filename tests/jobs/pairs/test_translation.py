"""Translation and back-translation with transformers models that know a dozen sentences."""

import pytest
import torch
from tiny_translators import CORPUS, save_translator

from gaixie.jobs.errors import JobError
from gaixie.jobs.pairs.back_translation import BackTranslation, BackTranslationSettings
from gaixie.jobs.pairs.models import Draw
from gaixie.jobs.pairs.settings import BuildSettings
from gaixie.jobs.pairs.translation import (
    Step,
    TranslationSettings,
    Translator,
    is_language,
    judged,
    load_translator,
)

CHINESE, ENGLISH, AGAIN = (list(texts) for texts in zip(*CORPUS, strict=True))


@pytest.fixture(scope="module")
def beams(translator) -> Translator:
    return load_translator(str(translator), TranslationSettings(batch_tokens=80))


def test_m2m100_there_and_back(beams):
    there = beams.translate(CHINESE, "zh", "en")
    assert [made.text for made in there] == ENGLISH
    assert not any(made.reason for made in there)
    assert [made.text for made in beams.translate(ENGLISH, "en", "zh")] == AGAIN


def test_a_sentence_that_is_too_long(beams):
    made = beams.translate(["很长" * 100, CHINESE[0]], "zh", "en")
    assert made == [(None, "too_many_tokens"), (ENGLISH[0], None)]


@pytest.mark.parametrize(
    ("made", "ended", "expected"),
    [
        ("", True, (None, "empty_translation")),
        ("The fire.", False, ("The fire.", "cut_off")),
        (CHINESE[0] + " ", True, (CHINESE[0] + " ", "copied_translation")),
        (CHINESE[1], True, (CHINESE[1], "wrong_language")),
        ("The fire.", True, ("The fire.", None)),
    ],
)
def test_what_is_no_translation(made, ended, expected):
    assert judged(CHINESE[0], (made, ended), "en") == expected


def test_what_is_drawn_depends_on_the_text_and_the_seed_alone(translator):
    settings = TranslationSettings(sample=True, temperature=2.0, top_p=1.0)
    model = load_translator(str(translator), settings)
    together = model.translate(CHINESE, "zh", "en", 1)
    assert model.translate(CHINESE[::-1], "zh", "en", 1) == together[::-1]
    assert [model.translate([text], "zh", "en", 1)[0] for text in CHINESE] == together
    assert model.translate(CHINESE, "zh", "en", 2) != together


def test_draws_are_of_the_nucleus_and_follow_the_shares():
    logits = torch.log(torch.tensor([[0.5, 0.3, 0.15, 0.05]])).repeat(4000, 1)
    chosen = Draw(range(4000), 1.0, 0.9)(torch.empty(0), logits)
    counts = (chosen == 0).double().mean(dim=0)
    assert ((chosen == 0).sum(dim=1) == 1).all()
    assert counts.tolist() == pytest.approx([0.5 / 0.95, 0.3 / 0.95, 0.15 / 0.95, 0], abs=0.03)


def test_a_model_for_each_direction(tmp_path):
    save_translator(tmp_path / "zh-en", [("zh", CHINESE[0], "en", ENGLISH[0])], "marian")
    save_translator(tmp_path / "en-zh", [("en", ENGLISH[0], "zh", AGAIN[0])], "marian")
    settings = BuildSettings(method="back-translation", model=str(tmp_path / "{source}-{target}"))
    settings.back_translation = BackTranslationSettings(pivots=("en",))
    method = BackTranslation.of(settings)
    method.check()
    assert method.version().count("@") == 2
    [made] = method.write(CHINESE[:1])
    assert made == (None, CHINESE[0], AGAIN[0], {"pivot": "en"})


def test_several_pivots_and_samples(translator):
    settings = BuildSettings(method="back-translation", model=str(translator))
    settings.back_translation = BackTranslationSettings(pivots=("en",), samples=2)
    with pytest.raises(JobError, match=r"samples above 1 needs translation.sample"):
        BackTranslation.of(settings)
    settings.translation = TranslationSettings(sample=True, temperature=3.0, top_p=1.0)
    made = [*BackTranslation.of(settings).write(CHINESE)]
    assert len(made) == 2 * len(CHINESE)
    assert {item.source for item in made} == {*CHINESE}
    assert [item.parameters["sample"] for item in made[:: len(CHINESE)]] == [0, 1]


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("The fire.", "en", True),
        ("The 火势蔓延", "en", False),
        ("اندلع الحريق", "ar", True),
        ("火势 in 2024", "zh", True),
        ("火事が起きた", "ja", True),
        ("tangerine", "am", True),
        ("2024!", "en", False),
    ],
)
def test_is_language(text, language, expected):
    assert is_language(text, language) == expected


@pytest.mark.parametrize(
    ("model", "pivot", "message"),
    [
        ("{folder}", "ar", "no language 'ar' in its vocabulary; --set translation.languages.ar"),
        ("none/such", "en", "none/such: no such folder, nor a model in the Hugging Face cache"),
        ("{empty}", "en", "not a model folder: it has no config.json"),
        ("{folder}", "zh", "--pivot zh: expected another language"),
    ],
)
def test_mistakes(translator, tmp_path, model, pivot, message):
    settings = BuildSettings(method="back-translation")
    settings.model = model.format(folder=translator, empty=tmp_path)
    settings.back_translation = BackTranslationSettings(pivots=(pivot,))
    with pytest.raises(JobError, match=message) as refused:
        BackTranslation.of(settings).check()
    assert "\n" not in str(refused.value)


def test_the_tokenizer_of_m2m100(tmp_path):
    from tiny_hub import m2m100

    folder, settings = m2m100(tmp_path), TranslationSettings(beams=1, max_ratio=0.1)
    Step(folder, settings, "zh", "ar").check()
    model = Translator(folder, settings)
    [ids] = model.token_ids(CHINESE[:1], "zh")
    told = model.tokenizer.convert_ids_to_tokens(ids)
    assert (told[0], told[-1]) == ("__zh__", "</s>")
    [made] = model.translate(CHINESE[:1], "zh", "ar")
    assert made.reason  # the model has learned nothing
    assert "__ar__" not in (made.text or "")[:6]
