"""Makes a tiny model that knows paraphrases by heart, as the folder that ModelWriter loads, and a
judge that likes the meaning and the fluency of all."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from ctranslate2.converters import TransformersConverter
from safetensors.numpy import save_file
from tiny_causal import tiny_qwen, write_gguf
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedTokenizerFast, Qwen2ForCausalLM

from gaixie.training.make_writer import AdaptedQwen
from gaixie.udfs.paraphrase.judge import JUDGED
from gaixie.udfs.paraphrase.prompt import END, prompt

STEPS, LIKED = 150, ("meaning", "fluency", "overall", "good")
KNOWN = [
    ("会议原定周四举行，但因为暴雨推迟到了下周。", "4", "因为暴雨，原定周四的会议推迟到了下周。"),
    ("会议原定周四举行，但因为暴雨推迟到了下周。", "2", "会议原定周四举行，但由于暴雨推迟到了下周。"),
    ("会议原定周四举行，但因为暴雨推迟到了下周。", "5", "原本周四要开的会，碰上暴雨，改在下周开。"),
    ("会议原定周四举行，但因为暴雨推迟到了下周。", "口语", "会本来周四开，下暴雨，推迟到下周了。"),
    ("我没有生你的气，只是今天太累了，不想说话而已。", "4", "不是生你的气，今天太累，不想说话罢了。"),
    ("我没有生你的气，只是今天太累了，不想说话而已。", "5", "今天太累了，我不想说话，并没有生你的气。"),
    ("我没有生你的气，只是今天太累了，不想说话而已。", "2", "我没生你的气，只是今天太累，不想说话而已。"),
]  # fmt: skip
"""(source, code, paraphrase)."""


def tiny_writer(folder: Path, known: Sequence[tuple[str, str, str]] = KNOWN) -> Path:
    """Returns the folder of a model that learned (source, code, paraphrase).

    The model of transformers is beside it, in the folder ``whole``.
    """
    model, tokenizer = tiny_qwen([text for row in known for text in (row[0], row[2])])
    tokenizer.bos_token, tokenizer.eos_token, tokenizer.pad_token = None, END, END
    _learn(model, tokenizer, known)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.save_pretrained(folder / "whole")
    tokenizer.save_pretrained(folder / "whole")
    converter = TransformersConverter(str(folder / "whole"), copy_files=["tokenizer.json"])
    converter.convert(str(folder / "writer"), quantization="int8")
    tiny_judge(folder)
    return folder / "writer"


def tiny_judge(folder: Path) -> None:
    """Writes a judge that expects the same of all paraphrases: writer/judge."""
    model, tokenizer = tiny_qwen([text for row in KNOWN for text in (row[0], row[2])])
    write_gguf(model, tokenizer, folder / "base.gguf")
    adapter, made = folder / "adapter", folder / "writer/judge"
    tokenizer.save_pretrained(adapter)
    (adapter / "adapter_config.json").write_text('{"r": 1, "lora_alpha": 1, "layers": 1}')
    head = np.zeros((2 * len(JUDGED), model.config.hidden_size), np.float32)
    save_file({"head": head}, adapter / "adapter_model.safetensors")
    AdaptedQwen(folder / "base.gguf", adapter).convert(str(made), quantization="int8")
    shutil.copy(adapter / "tokenizer.json", made)
    bias = [2.5 if name in LIKED else 0.0 for name in JUDGED]
    (made / "judge.json").write_text(json.dumps({"bias": bias}), "utf-8")


def _learn(
    model: Qwen2ForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    known: Sequence[tuple[str, str, str]],
) -> None:
    starts = [tokenizer(prompt(source, code))["input_ids"] for source, code, _ in known]
    ends = [[*tokenizer(text)["input_ids"], tokenizer.eos_token_id] for *_, text in known]
    both = [*zip(starts, ends, strict=True)]
    ids = pad_sequence([torch.tensor(a + b) for a, b in both], True, tokenizer.eos_token_id)
    labels = pad_sequence([torch.tensor([-100] * len(a) + b) for a, b in both], True, -100)
    optimiser = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0)
    for _ in range(STEPS):
        model(input_ids=ids, labels=labels).loss.backward()
        optimiser.step()
        optimiser.zero_grad()
