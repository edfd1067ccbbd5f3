"""Trains the rewriter for a given number of seconds, on a GPU if there is one.

It starts from the pair encoder's vocabulary, embeddings and layers, as training/modeling/
warm_start.py does; the attention to the source starts at zero. Batches are drawn and assembled on
the device, from the arrays of research/rewriter/data.py. Weights are bfloat16 in the network (on a
GPU) and float32 in the optimiser.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn.functional import cross_entropy
from transformers import BartConfig, BartForConditionalGeneration, BertModel

from gaixie.research.rewriter.material import KINDS, LONGEST, PREFIXES, Material

BOS, PAD, END, UNKNOWN = range(4)
MASK = UNKNOWN
"""Replaces a hidden token of a plain sentence."""
DECODER_LAYERS = 4
HEAD_WIDTH = 32
WIDTHS = (16, 24, 32, 40, 48, 64, LONGEST + 4)
"""Batches are padded to one of these."""
TOKENS = 49_152
"""Tokens of a batch on one side, including padding."""
PHASES = (
    (0.10, (0.30, 0.04, 0.33, 0.33)),
    (0.55, (0.50, 0.08, 0.07, 0.35)),
    (0.85, (0.40, 0.25, 0.03, 0.32)),
    (1.00, (0.20, 0.60, 0.02, 0.18)),
)
"""Phases of the training: (end as a share of the time, shares of KINDS)."""
RATE, WARMUP, LEAST = 1e-3, 0.03, 0.01
"""Peak learning rate; warm-up, as a share of the time; the least share of the peak."""
FROZEN, SHARES = 0.4, {"encoder_attn": 1.0, "decoder": 0.5, "shared": 0.1, "encoder": 0.1}
"""The encoder is frozen for this share of the time and learns slowly afterwards; SHARES has each
part's share of the learning rate. When the encoder was trained from the first step, at a third of
the rate, all its states became identical within 2,500 steps, because a decoder that cannot read yet
does not use them."""
SMOOTHING, DROPOUT = 0.1, 0.1
HIDDEN, MOVED = 0.25, 3.0
"""Noise of a plain sentence: the share of hidden tokens, and how many places others move."""
SAID_SECONDS = 10.0
NO_DEGREE = 0.1
"""Share of training pairs whose degree is not given."""


def start(bert: Path, vocabulary: int) -> BartForConditionalGeneration:
    """Returns the network before training. bert: a folder of the pair encoder."""
    encoder = BertModel.from_pretrained(bert, dtype=torch.float32, add_pooling_layer=False)
    own = encoder.config
    model = BartForConditionalGeneration(
        _configuration(
            vocabulary + PREFIXES, own.hidden_size, own.num_hidden_layers, own.intermediate_size
        )
    )
    rows = encoder.embeddings.word_embeddings.weight
    positions = encoder.embeddings.position_embeddings.weight
    types = encoder.embeddings.token_type_embeddings.weight[0]
    with torch.no_grad():
        model.model.shared.weight[:vocabulary] = rows
        model.model.shared.weight[vocabulary:] = rows.mean(0) + rows.std(0) * torch.randn(
            PREFIXES, rows.shape[1]
        )
        for part in (model.model.encoder, model.model.decoder):
            part.embed_positions.weight[2:] = positions[: LONGEST + 32] + types
            part.layernorm_embedding.load_state_dict(encoder.embeddings.LayerNorm.state_dict())
        for layer, source in zip(model.model.encoder.layers, encoder.encoder.layer, strict=True):
            _copy_layer(layer, source)
        depth = len(encoder.encoder.layer)
        for number, layer in enumerate(model.model.decoder.layers, 1):
            source = encoder.encoder.layer[round(number * depth / DECODER_LAYERS) - 1]
            _copy_layer(layer, source)
            _copy_attention(layer.encoder_attn, source.attention)
            layer.encoder_attn.out_proj.weight.zero_()
            layer.encoder_attn.out_proj.bias.zero_()
    return model


def _configuration(tokens: int, width: int, layers: int, inner: int) -> BartConfig:
    return BartConfig(
        vocab_size=tokens,
        d_model=width,
        encoder_layers=layers,
        decoder_layers=DECODER_LAYERS,
        encoder_ffn_dim=inner,
        decoder_ffn_dim=inner,
        encoder_attention_heads=width // HEAD_WIDTH,
        decoder_attention_heads=width // HEAD_WIDTH,
        max_position_embeddings=LONGEST + 32,
        dropout=DROPOUT,
        bos_token_id=BOS,
        pad_token_id=PAD,
        eos_token_id=END,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
    )


def configuration(state: Mapping[str, torch.Tensor]) -> BartConfig:
    """Returns the configuration of a trained network, derived from its weights."""
    tokens, width = state["model.shared.weight"].shape
    layers = {name.split(".")[3] for name in state if name.startswith("model.encoder.layers.")}
    inner = state["model.encoder.layers.0.fc1.weight"].shape[0]
    return _configuration(tokens, width, len(layers), inner)


def _copy_layer(layer: Any, source: Any) -> None:
    _copy_attention(layer.self_attn, source.attention)
    layer.self_attn_layer_norm.load_state_dict(source.attention.output.LayerNorm.state_dict())
    layer.fc1.load_state_dict(source.intermediate.dense.state_dict())
    layer.fc2.load_state_dict(source.output.dense.state_dict())
    layer.final_layer_norm.load_state_dict(source.output.LayerNorm.state_dict())


def _copy_attention(attention: Any, source: Any) -> None:
    for name in ("query", "key", "value"):
        part = getattr(source.self, name).state_dict()
        getattr(attention, f"{name[0]}_proj").load_state_dict(part)
    attention.out_proj.load_state_dict(source.output.dense.state_dict())


class Batch(NamedTuple):
    """Tensors on the device, all of shape (pairs, width)."""

    source: torch.Tensor
    there: torch.Tensor
    """bool: cells of the source that hold tokens, not padding."""
    read: torch.Tensor
    """Input of the decoder."""
    labels: torch.Tensor
    """Tokens that the decoder must write; -100 after the end."""


class Batches:
    """Draws batches of pairs of similar length. All data is on the device."""

    def __init__(self, material: Material, vocabulary: int, device: torch.device, seed: int):
        self.vocabulary, self.device = vocabulary, device
        self.random = torch.Generator(device).manual_seed(seed)
        self.choice = np.random.default_rng(seed)
        self.tokens = torch.from_numpy(material.tokens.astype(np.int32)).to(device)
        ends = torch.from_numpy(material.ends).to(device)
        self.starts = torch.cat([ends.new_zeros(1), ends[:-1]])
        self.lengths = ends - self.starts
        self.pairs = torch.from_numpy(material.pairs).to(device).long()
        self.kinds = torch.from_numpy(material.kinds).to(device).long()
        self.degrees = torch.from_numpy(material.degrees).to(device).long()
        # A source is surrounded by <s>, kind, degree and </s>.
        widths = (self.lengths[self.pairs] + torch.tensor([4, 1], device=device)).max(1).values
        place = torch.bucketize(widths, torch.tensor(WIDTHS, device=device))
        watched = torch.from_numpy(material.watched).to(device)
        self.rows: dict[tuple[int, int], torch.Tensor] = {}
        self.watched: dict[tuple[int, int], torch.Tensor] = {}
        for bucket in range(len(WIDTHS)):
            for kind in range(len(KINDS)):
                own = (place == bucket) & (self.kinds == kind)
                self.rows[bucket, kind] = (own & ~watched).nonzero()[:, 0]
                self.watched[bucket, kind] = (own & watched).nonzero()[:, 0]
        self.used = dict.fromkeys(self.rows, 0)
        self.shuffle(*self.rows)
        counts = np.array([len(self.rows[bucket, 0]) for bucket in range(len(WIDTHS))])
        weights = counts * np.array(WIDTHS)
        self.bucket_shares = weights / max(weights.sum(), 1)

    def shuffle(self, *keys: tuple[int, int]) -> None:
        """Starts a new epoch of the rows of some keys."""
        for key in keys:
            rows = self.rows[key]
            order = torch.randperm(len(rows), generator=self.random, device=self.device)
            self.rows[key], self.used[key] = rows[order], 0

    def draw(self, shares: tuple[float, ...], tokens: int = TOKENS) -> Batch:
        """Draws a batch of one width. shares: of each kind."""
        bucket = int(self.choice.choice(len(WIDTHS), p=self.bucket_shares))
        size = tokens // WIDTHS[bucket]
        rows = [self._next((bucket, kind), round(size * own)) for kind, own in enumerate(shares)]
        return self.batch(torch.cat(rows), WIDTHS[bucket])

    def _next(self, key: tuple[int, int], count: int) -> torch.Tensor:
        taken = []
        while count and len(self.rows[key]):
            if self.used[key] == len(self.rows[key]):
                self.shuffle(key)
            own = self.rows[key][self.used[key] : self.used[key] + count]
            self.used[key] += len(own)
            count -= len(own)
            taken.append(own)
        return torch.cat([*taken, self.rows[key][:0]])

    def batch(self, rows: torch.Tensor, width: int, noisy: bool = True) -> Batch:
        """Returns the tensors of some pairs."""
        source, paraphrase = self.pairs[rows].T
        body, there = self._cells(source, width)
        if noisy:
            body = self._noise(body, there, self.kinds[rows] == KINDS.index("plain"))
        kind = self.vocabulary + self.kinds[rows]
        degree = self.degrees[rows]
        told = torch.rand(len(rows), generator=self.random, device=self.device) >= NO_DEGREE
        degree = torch.where(told | (not noisy), degree, 0)
        # A missing degree is a token too: the kind's, repeated.
        second = torch.where(degree > 0, self.vocabulary + len(KINDS) - 1 + degree, kind)
        first = torch.stack([torch.full_like(kind, BOS), kind, second], 1)
        length = self.lengths[source]
        ids = torch.cat([first, body[:, : width - 3]], 1)
        ids.scatter_(1, (3 + length)[:, None], END)
        there = torch.arange(width, device=self.device) <= (3 + length)[:, None]
        ids = torch.where(there, ids, PAD)
        written, own = self._cells(paraphrase, width)
        labels = torch.where(own, written, -100)
        labels.scatter_(1, self.lengths[paraphrase][:, None], END)
        read = torch.cat([torch.full_like(labels[:, :1], BOS), labels[:, :-1]], 1)
        return Batch(ids, there, read.masked_fill(read == -100, PAD), labels)

    def _cells(self, texts: torch.Tensor, width: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns tokens and a mask of texts, both of shape (texts, width)."""
        place = torch.arange(width, device=self.device)
        there = place < self.lengths[texts][:, None]
        cells = (self.starts[texts][:, None] + place).clamp(max=len(self.tokens) - 1)
        return torch.where(there, self.tokens[cells].long(), PAD), there

    def _noise(self, body: torch.Tensor, there: torch.Tensor, plain: torch.Tensor) -> torch.Tensor:
        """Hides and moves tokens of plain sentences."""
        random = torch.rand((2, *body.shape), generator=self.random, device=self.device)
        key = torch.arange(body.shape[1], device=self.device) + MOVED * random[0]
        key = torch.where(there, key, 1_000.0)
        moved = body.gather(1, key.argsort(1))
        moved = torch.where((random[1] < HIDDEN) & there, MASK, moved)
        return torch.where(plain[:, None], moved, body)


def losses(model: Any, batch: Batch, smoothing: float) -> torch.Tensor:
    """Returns the mean loss per label token."""
    width = batch.labels.shape[1]
    causal = torch.ones(width, width, dtype=torch.bool, device=batch.labels.device).tril()
    hidden = model.model(
        input_ids=batch.source,
        attention_mask=batch.there[:, None, None],
        decoder_input_ids=batch.read,
        decoder_attention_mask=causal[None, None],
        use_cache=False,
    ).last_hidden_state
    places = (batch.labels.flatten() != -100).nonzero()[:, 0]
    logits = model.lm_head(hidden.flatten(0, 1)[places])
    labels = batch.labels.flatten()[places]
    return cross_entropy(logits.float(), labels, label_smoothing=smoothing)


def train(
    model: Any,
    batches: Batches,
    seconds: float,
    tokens: int = TOKENS,
    compiled: bool = False,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[str]:
    """Trains for ``seconds`` of the clock; yields a line of progress every SAID_SECONDS."""
    device = batches.device
    whole = copy.deepcopy(model).to(device)
    model.to(device, torch.bfloat16 if device.type == "cuda" else torch.float32).train()
    groups = []
    for part, share in SHARES.items():
        weights = [p for name, p in whole.named_parameters() if _part(name) == part]
        for decays in (True, False):
            some = [p for p in weights if (p.dim() > 1) == decays]
            groups.append({"params": some, "share": share, "weight_decay": 0.01 * decays})
    optimizer = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.98), fused=True)
    ours: list[torch.Tensor] = [*model.parameters()]
    theirs: list[torch.Tensor] = [*whole.parameters()]
    ends = clock() + seconds
    if compiled:
        yield _compile(model, batches, tokens)
    started = said = clock()
    seconds = ends - started
    step, since = 0, 0
    total, labels = torch.zeros((2,), device=device, dtype=torch.float64)
    while (done := (clock() - started) / seconds) < 1:
        shares = next(own for end, own in PHASES if done < end)
        rate = RATE * min(1, done / WARMUP) * max(LEAST, (1 + math.cos(math.pi * done)) / 2)
        for group in optimizer.param_groups:
            group["lr"] = max(rate, 1e-6) * group["share"]
        for name, weight in model.named_parameters():
            weight.requires_grad_(_part(name) != "encoder" or done >= FROZEN)
        batch = batches.draw(shares, tokens)
        loss = losses(model, batch, SMOOTHING)
        loss.backward()
        for own, master in zip(ours, theirs, strict=True):
            master.grad = None if own.grad is None else own.grad.float()
            own.grad = None
        torch.nn.utils.clip_grad_norm_(theirs, 1.0)
        optimizer.step()
        with torch.no_grad():
            torch._foreach_copy_(ours, theirs)
        total += loss.detach()
        step, since = step + 1, since + 1
        labels += (batch.labels != -100).sum()
        if clock() - said > SAID_SECONDS:
            mean, now = float(total) / since, clock()
            written = f"{int(labels):,} tokens written"
            yield f"{now - started:5.0f} s, step {step:,}: loss {mean:.3f}, {written}"
            total.zero_()
            since, said = 0, now
    if device.type == "cuda":
        torch.cuda.synchronize()
    yield f"{step:,} steps, {int(labels):,} tokens written"
    model.load_state_dict({name: own.cpu() for name, own in whole.state_dict().items()})


def _part(name: str) -> str:
    """Returns the part of SHARES that a weight belongs to."""
    return next(part for part in SHARES if f".{part}." in name)


def _compile(model: Any, batches: Batches, tokens: int) -> str:
    """Compiles the layers for all shapes. Returns a line: how long it took, or why it failed."""
    layers = [*model.model.encoder.layers, *model.model.decoder.layers]
    torch._dynamo.config.recompile_limit = 64
    started = time.monotonic()
    try:
        for layer in layers:
            layer.compile(dynamic=True)
        for bucket, width in ((2, WIDTHS[2]), (4, WIDTHS[4]), (3, WIDTHS[3])):
            rows = batches.rows[bucket, 0][: tokens // width]
            losses(model, batches.batch(rows, width), SMOOTHING).backward()
        outcome = "compiled"
    except Exception as error:  # training continues without compiling
        for layer in layers:
            layer._compiled_call_impl = None
        outcome = f"not compiled ({str(error)[:200]})"
    model.zero_grad(set_to_none=True)
    return f"{outcome}, {time.monotonic() - started:.0f} s"


@torch.no_grad()
def watch(model: Any, batches: Batches, tokens: int = TOKENS) -> dict[str, float]:
    """Returns the mean loss, by kind, on the pairs kept to watch the training."""
    model.eval()
    found = {}
    for kind, name in enumerate(KINDS):
        means = []
        for bucket, width in enumerate(WIDTHS):
            rows = batches.watched[bucket, kind][: tokens // width]
            if len(rows):
                batch = batches.batch(rows, width, noisy=name == "plain")
                means.append((float(losses(model, batch, 0.0)), len(rows)))
        if means:
            found[name] = sum(m * n for m, n in means) / sum(n for _, n in means)
    model.train()
    return found
