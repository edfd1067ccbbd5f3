"""Computes metrics by definition in plain Python; the fast implementations must equal these."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import exp, log, nan, sqrt

import Levenshtein
import numpy as np
from rapidfuzz.distance import LCSseq

from gaixie.udfs.metrics.cilin import load_forest
from gaixie.udfs.metrics.grams import tokenizer
from gaixie.udfs.metrics.hsk import BEYOND, levels
from gaixie.udfs.metrics.word_vectors import WordVectors

Tokens = Sequence[str]


def grams(tokens: Tokens, n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def bleu(paraphrase: str, references: list[str], tokenize: str = "char", order: int = 4) -> float:
    """Returns BLEU of one sentence, smoothed like sacrebleu's ``exp``."""
    cut = tokenizer(tokenize)
    tokens, others = cut(paraphrase), [cut(reference) for reference in references]
    logs, smoothing, any_match = [], 1, False
    for n in range(1, min(order, len(tokens)) + 1):
        clip: Counter[tuple[str, ...]] = Counter()
        for other in others:
            clip |= grams(other, n)
        matches = (grams(tokens, n) & clip).total()
        any_match |= matches > 0
        if not matches:
            smoothing *= 2
        logs.append(log((matches or 1 / smoothing) / (len(tokens) - n + 1)))
    if not any_match:
        return 0.0
    closest = min((abs(len(other) - len(tokens)), len(other)) for other in others)[1]
    return 100 * min(1.0, exp(1 - closest / len(tokens))) * exp(sum(logs) / len(logs))


def ibleu(source: str, paraphrase: str, references: list[str], alpha: float = 0.3) -> float:
    return bleu(paraphrase, references) - alpha * bleu(paraphrase, [source])


def pinc(source: str, paraphrase: str, tokenize: str = "char", order: int = 4) -> float:
    a, b = tokenizer(tokenize)(source), tokenizer(tokenize)(paraphrase)
    orders = range(1, min(order, len(b)) + 1)
    new = [len(grams(b, n).keys() - grams(a, n).keys()) / len(grams(b, n)) for n in orders]
    return sum(new) / len(new) if new else 0.0


def rouge(paraphrase: str, reference: str, variant: str = "l") -> float:
    """Returns ROUGE of one sentence against one reference, by character."""
    a, b = tokenizer("char")(paraphrase), tokenizer("char")(reference)
    if variant == "l":
        shared, units = LCSseq.similarity(a, b), len(a) + len(b)
    else:
        first, other = grams(a, int(variant)), grams(b, int(variant))
        shared, units = (first & other).total(), first.total() + other.total()
    return 2 * shared / units if shared else 0.0


def edit_distance(source: str, paraphrase: str) -> float:
    return Levenshtein.distance(source, paraphrase) / max(len(source), len(paraphrase), 1)


def hsk(text: Tokens, of_levels: range, standard: str = "2021") -> float:
    """Returns the share of a text's words whose level is in the range."""
    counted = [levels(standard).get(word, BEYOND) in of_levels for word in text]
    return sum(counted) / len(counted) if counted else nan


def are_synonyms(word: str, other: str) -> bool:
    """Says whether two words are equal or share a line of synonyms."""
    return word == other or any(other in line for line in load_forest().synsets(word))


def meteor(
    paraphrase: Tokens,
    reference: Tokens,
    stages: Sequence[Callable[[str, str], bool]] = (str.__eq__, are_synonyms),
) -> float:
    left, free = list(enumerate(paraphrase)), list(enumerate(reference))
    matches = []
    for match in stages:
        for i, word in reversed(list(left)):
            partners = [j for j, other in free if match(word, other)]
            if partners:
                matches.append((i, partners[-1]))
                left.remove((i, word))
                free.remove((partners[-1], reference[partners[-1]]))
    if not matches:
        return 0.0
    precision, recall = len(matches) / len(paraphrase), len(matches) / len(reference)
    mean = precision * recall / (0.9 * precision + 0.1 * recall)
    chunks = 1 + sum((i + 1, j + 1) != after for (i, j), after in pairwise(sorted(matches)))
    return mean * (1 - 0.5 * (chunks / len(matches)) ** 3)


def sari(
    source: Tokens, paraphrase: Tokens, references: Sequence[Tokens], deletion: str = "f1"
) -> float:
    def times(tokens: Tokens, n: int) -> Counter[tuple[str, ...]]:
        return Counter({gram: len(references) * k for gram, k in grams(tokens, n).items()})

    def ratios(both: int, done: int, right: int) -> dict[str, float]:
        precision, recall = both / done if done else 0.0, both / right if right else 0.0
        f1 = 2 * precision * recall / (precision + recall) if both else 0.0
        return {"precision": precision, "f1": f1}

    total = 0.0
    for n in (1, 2, 3, 4):
        o, p = times(source, n), times(paraphrase, n)
        r = sum((grams(reference, n) for reference in references), Counter())
        new, wanted = p.keys() - o.keys(), r.keys() - o.keys()
        add = ratios(len(new & wanted), len(new), len(wanted))
        keep = ratios((o & p & r).total(), (o & p).total(), (o & r).total())
        delete = ratios(((o - p) & (o - r)).total(), (o - p).total(), (o - r).total())
        total += add["f1"] + keep["f1"] + delete[deletion]
    return 100 * total / 3 / 4


def weem4pg(source: Tokens, paraphrase: Tokens, vectors: WordVectors) -> float:
    if not source or not paraphrase:
        return 0.0

    def cosine(word: str, other: str) -> float:
        if word == other:
            return 1.0
        if word in vectors.rows and other in vectors.rows:
            return float(vectors.matrix[vectors.rows[word]] @ vectors.matrix[vectors.rows[other]])
        return 0.0

    nearest = [max(cosine(word, other) for other in source) for word in paraphrase]
    shared = (Counter(source) & Counter(paraphrase)).total()
    return sum(nearest) / len(paraphrase) / sqrt(max(shared, 1))


def parascore(similarities: Sequence[float], distance: float, omega: float, gamma: float) -> float:
    """Returns ParaScore from the similarities to source and references and the normalised edit
    distance."""
    diversity = gamma if distance > gamma else distance * (gamma + 1) / gamma - 1
    return max(similarities) + omega * diversity


def bert_ibleu(bertscore: float, self_bleu: float, beta: float = 4.0) -> float:
    """Returns BERT-iBLEU from a BERTScore and a Self-BLEU, both as shares."""
    if bertscore <= 0 or self_bleu >= 1:
        return 0.0
    return (beta + 1) / (beta / bertscore + 1 / (1 - self_bleu))


def bertscore(
    paraphrase: np.ndarray,
    reference: np.ndarray,
    paraphrase_weights: np.ndarray,
    reference_weights: np.ndarray,
) -> tuple[float, float, float]:
    """Returns (P, R, F1) from two sentences' unit token embeddings (tokens, width) and weights."""

    def share(tokens: np.ndarray, weights: np.ndarray, others: np.ndarray) -> float:
        best = [max(float(x @ y) for y in others) for x in tokens]
        total = float(sum(weights))
        return sum(w * b for w, b in zip(weights, best, strict=True)) / total if total else 0.0

    precision = share(paraphrase, paraphrase_weights, reference)
    recall = share(reference, reference_weights, paraphrase)
    if not sum(paraphrase_weights) or not sum(reference_weights) or precision + recall == 0:
        return 0.0, 0.0, 0.0
    return precision, recall, 2 * precision * recall / (precision + recall)


def similarity(source: np.ndarray, paraphrase: np.ndarray) -> float:
    """Returns the cosine of two sentences' mean token embeddings, each given as (tokens, width)."""
    a, b = source.mean(axis=0), paraphrase.mean(axis=0)
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def bartscore(log_probabilities: np.ndarray, tokens: Sequence[int]) -> float:
    """Returns BARTScore from log-probabilities (tokens, vocabulary) and a sentence's tokens."""
    return sum(float(log_probabilities[t, token]) for t, token in enumerate(tokens)) / len(tokens)
