"""Metrics must equal values by hand, of a pair and of a corpus."""

import math

import pytest

from gaixie.udfs.metrics import Pairs, load_metric

# 今天天气很好 and 今天天气不错 share 今 天 天 气 of 6; 今天 天天 天气 of 5; 今天天 天天气 of 4; 今天天气 of 3.
HALF = 100 * (4 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** (1 / 4)
# chrF takes 6 orders; precision and recall are equal, and so is any F of them.
CHRF = 100 * (4 / 6 + 3 / 5 + 2 / 4 + 1 / 3) / 6

# BLEU: BP · (p1 · p2 · p3 · p4)^(1/4) over the orders that the paraphrase has, p_n = matched n-grams
# / n-grams of the paraphrase; BP = min(1, exp(1 − r / m)). Each row: source, paraphrase, references.
BLEU = {
    "bleu": [
        ("", "今天天气很好", "今天天气不错", HALF),
        ("", "今天", "今天天气", 100 * math.exp(1 - 4 / 2)),  # orders 1 and 2 match; brevity
        # Clipped by the second: 2 of 3, 1 of 2; 哈哈哈 is smoothed: 1 / (2 · 1). Closest length: 2.
        ("", "哈哈哈", "哈", "哈哈", 100 * (2 / 3 * 1 / 2 * 1 / 2) ** (1 / 3)),
    ],
    # 我/很/高兴 and 我/很/快乐: 2 of 3 words, 1 of 2, none of 1, which exp counts as a half.
    "bleu:tokenize=zh-word": [
        ("", "我很高兴", "我很快乐", 100 * (2 / 3 * 1 / 2 * 1 / 2) ** (1 / 3))
    ],
    "self-bleu": [("今天天气不错", "今天天气很好", HALF), ("春", "春", 100), ("春", "", 0)],
    "ibleu": [
        ("今天天气不错", "今天天气很好", "今天天气很好", 100 - 0.3 * HALF),
        ("今天天气很好", "今天天气很好", "今天天气不错", HALF - 30),
    ],
    "bleu-as-called:tokenize=word": [
        # a and b match as words of one letter, nothing longer does: 0.1 of 2, 1 and 1 n-grams.
        ("", "a b cat", "a dog b", (2 / 3 * 0.1 / 2 * 0.1 * 0.1) ** (1 / 4)),
    ],
    "bleu-as-called": [
        # Of 今 天 天, 今 and 天 match once each: a character serves as reference only once.
        ("", "今天天", "今天", (2 / 3 * 0.1 / 2 * 0.1 * 0.1) ** (1 / 4)),
        ("", None, "今天", math.nan),
    ],
    "chrf": [
        ("", "今天天气很好", "今天天气不错", CHRF),
        ("", "今天天气很好", "今天天气不错", "今天天气很好", 100),  # the best
        ("", "今", "今天", 100 * 2.5 / 4.5),  # P = 1/1, R = 1/2, F = 5 · 1 · 1/2 / (4 · 1 + 1/2)
    ],
}
# The example of the authors' first script, with the values of the corrected one.
SPECIES = "About 95 species are currently accepted."
KNOWN = (
    "About 95 species are currently known.",
    "About 95 species are now accepted.",
    "95 species are now accepted.",
)
OTHERS = {
    "ter": [
        ("", "今天天气很好", "今天天气不错", 100 * 2 / 6),  # 很好 -> 不错
        ("", "早点出发我们明天", "我们明天早点出发", 100 * 1 / 8),  # one shift
        ("", "今天天气", "今天天", "今天天气很好", 100 * 1 / 4.5),  # fewest edits, mean length
        ("", "今天", "", 100),
    ],
    # ROUGE: 2 · shared / (units of the paraphrase + units of the reference).
    "rouge-1": [
        ("", "今天天气很好", "今天天气不错", 8 / 12),
        ("", "哈哈哈", "哈哈", 4 / 5),  # a repeated unit counts as often as both have it
        ("", "春夏", "春", "春夏", 1),  # the best
    ],
    "rouge-2": [
        ("", "我们明天早点出发", "早点出发我们明天", 12 / 14),  # all but 天早 and 发我
        ("", "好", "好", 0),  # one character has no bigram
    ],
    "rouge-l": [("", "我们明天早点出发", "早点出发我们明天", 8 / 16)],
    # Distinct characters: 今 天 of 今 天 and 今 天 好.
    "rouge-1-as-called": [("", "今天天", "今天好", 2 * 1 * (2 / 3) / (1 + 2 / 3))],
    "pinc": [
        # New: 不 错 of the set 今 天 气 不 错; 气不 不错 of 5; 天气不 气不错 of 4; 2 of 3.
        ("今天天气很好", "今天天气不错", (2 / 5 + 2 / 5 + 2 / 4 + 2 / 3) / 4),
        # As sets, 哈 and 哈哈 are known; 哈哈哈 and 哈哈哈哈 are new.
        ("哈哈", "哈哈哈哈哈", (0 + 0 + 1 + 1) / 4),
        ("今天天气", "天今", (0 + 1) / 2),  # only orders 1 and 2
    ],
    "edit-distance": [
        ("今 天", "今天", 1 / 3),  # white space counts
        ("𠮷野家", "吉野家", 1 / 3),  # a code point is one character
        ("", "", 0),
    ],
    # 我/很/高兴 and 我/很/快乐: 3 matches, 1 chunk: 1 − ½ · (1/3)³; then 2 matches.
    "meteor": [
        ("", "我很高兴", "我很快乐", 53 / 54),
        ("", "我很高兴", "他来了", "我很快乐", 53 / 54),
        ("", "ＡＢＣ公司", "abc 公司", 1 - 0.5 / 2**3),
        ("", "a b c", "c b a", 0.5),  # 3 chunks: 1 − ½
        # P = 1, R = ½: Fmean = ½ / (0.9 + 0.05) = 10/19; 2 chunks: half of it.
        ("", "a c", "a b c d", 5 / 19),
        # Each word of the reference matches once: 1 match, P = ½, R = 1: Fmean = ½ / (0.45 + 0.1).
        ("", "快乐 愉快", "高兴", 5 / 11),
        ("", "我 高兴", "我 快乐", 15 / 16),
        ("", "", "a", 0),
    ],
    "hsk-easy": [
        ("", "我很高兴。", 3 / 4),  # 我 很 高兴: all level 1; 。 is in no list
        ("", "我很精致", 2 / 3),  # 精致: level 7–9
        ("", "", math.nan),
    ],
    "hsk-hard": [("", "我很高兴。", 1 / 4), ("", "我很精致", 1 / 3), ("", "𠮷", 1)],
    # R = 1. n = 1: add {c} of {c} and {c, d}: P 1, R ½, F 2/3; keep {a} of {a} and {a}: F 1; delete
    # {b} of {b} and {b}: P 1. n = 2: add {ac} of {ac} and {ac, cd}: F 2/3; keep nothing: 0; delete
    # {ab}: P 1. n = 3: add nothing of nothing and {acd}: 0; keep 0; delete 0. n = 4: 0.
    "sari:deletion=precision": [
        ("ab", "ac", "acd", 100 * (1 / 3 + 1 / 4 + 1 / 2) / 3),
        ("我们今天去公园", "我们今天去公园", "我们今天去公园", 100 / 3),  # 0 / 0 counts as 0
    ],
    # n = 1: add {快乐} 1, keep {我 很} 1, delete {高兴} 1; n = 2: add {很快乐} 1, keep {我很} 1,
    # delete {很高兴} 1; n = 3: add 1, keep 0, delete 1.
    "sari:tokenize=zh-word": [
        ("我很高兴", "我很快乐", "我很快乐", 100 * (3 / 4 + 2 / 4 + 3 / 4) / 3)
    ],
    "sari:tokenize=13a:deletion=precision": [
        (SPECIES, "About 95 you now get in.", *KNOWN, 26.9536),
        (SPECIES, "About 95 species are currently agreed.", *KNOWN, 50.8868),
    ],
    "sari:tokenize=13a": [(SPECIES, "About 95 species are now agreed.", *KNOWN, 63.2374)],
    "sentence-splits": [
        ("我来了，他走了。", "我来了。他走了。", 1),
        ("圆周率是3.14。", "圆周率是3.14...", 0),
    ],
    "compression": [("我很高兴。", "我高兴", 3 / 5), ("a b", "ab", 1), ("", "你好", math.nan)],
    "replaced": [("我很高兴", "我很高啦", 1 / 4), ("我很高兴", "我高兴", 0), ("我", "", math.nan)],
    "deleted": [("我很高兴", "我很快乐", 1 / 3)],
    "added": [("我很高兴", "我很快乐", 1 / 3), ("我", "", math.nan)],
    "reordered": [("我很高兴", "我很快乐", 0)],
    "lexical-complexity": [
        # 他 1, 罹患 in no list, 疾病 6; 他 and 生病 1, 了 3; 。 is not a word.
        ("他罹患疾病。", "他生病了。", (1 + 1 + 9) / (1 + 64 + 36)),
        # 我 很 高兴, all of level 1; 我 很 精致, the last of level 7–9.
        ("我很高兴", "我很精致", (1 + 1 + 49) / 3),
        ("。", "高兴", math.nan),
    ],
}
ROWS = [(spec, *row) for spec, rows in (BLEU | OTHERS).items() for row in rows]


def pairs_of(*rows: tuple) -> Pairs:
    return Pairs.of(*map(list, zip(*rows, strict=True)))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} {row[2]}")
def test_a_pair(row):
    spec, *texts, expected = row
    found = load_metric(spec).sentence_scores(pairs_of(texts))
    assert found == pytest.approx([expected], nan_ok=True, rel=1e-5)


@pytest.mark.parametrize(
    ("spec", "rows", "expected"),
    [
        # Counts are summed: 4 + 0 of 6 + 1; 好 adds nothing to the longer orders.
        (
            "bleu",
            [("", "今天天气很好", "今天天气不错"), ("", "好", "坏"), ("", None, "好")],
            100 * (4 / 7 * 3 / 5 * 2 / 4 * 1 / 3) ** (1 / 4),
        ),
        ("ter", [("", "今天天气很好", "今天天气不错"), ("", "春", "春")], 100 * 2 / 7),
        ("hsk-easy", [("", "我很高兴"), ("", "。"), ("", None)], 3 / 4),  # 3 of 3 and 0 of 1 words
        ("hsk-easy", [("", None)], math.nan),
        ("rouge-1", [("", "春夏", "春夏"), ("", "春夏", "秋"), ("", None, "春")], 0.5),
    ],
)
def test_a_corpus(spec, rows, expected):
    assert load_metric(spec).corpus_score(pairs_of(*rows)) == pytest.approx(expected, nan_ok=True)
