"""Features must equal values by hand. The tiles of SPA have their own tests."""

import math
import sys

import pytest

from gaixie.udfs.text.words import alphanumeric

# ACS: characters equal at the same position / characters of the longer side.
ACS = [
    ("今天天气很好", "今天天气不错", 4 / 6),  # 今 天 天 气 stay, 很 好 do not
    ("他来了", "他昨天来了", 1 / 5),  # only 他; 来 1 against 昨 1, 了 2 against 天 2
    ("我喜欢读书", "也我喜欢读书", 0.0),  # one character in front moves all
    ("春天来了", "春天来了", 1.0),
    ("春天", "", 0.0),
    ("", "春天", 0.0),
    ("", "", math.nan),
    # After normalisation: fullwidth letters, an ideographic space, a fullwidth comma.
    ("ＡＢＣ\u3000好，", "ABC 好,", 1.0),
    ("𠮷野家", "吉野家", 2 / 3),  # 𠮷 is one code point beyond the basic plane
]

# SPA: (1 / |I|²) Σ over tiles of (tiles from here on) · |start in A / n − start in B / m|.
SPA = [
    # 早上 0/6 → 4/6, counted twice; 他去公园 2/6 → 0/6, once: (2 · 2/3 + 1/3) / 2².
    ("早上他去公园", "他去公园早上", 5 / 12),
    # n = 6, m = 7. 我们 0/6 → 2/7, thrice; 明天 2/6 → 0/7, twice; 出发 4/6 → 5/7, once:
    # (18/21 + 14/21 + 1/21) / 3² = (33/21) / 9.
    ("我们明天出发", "明天我们就出发", 11 / 63),
    # The same move seen from the other side: 明天 0/7 → 2/6, thrice; 我们 2/7 → 0/6, twice;
    # 出发 5/7 → 4/6, once: (21/21 + 12/21 + 1/21) / 9.
    ("春天来了", "是春天来了", 1 / 5),  # one tile, 0/4 → 1/5
    ("春天来了", "春天来了", 0.0),
    ("他很高兴", "她十分快乐", math.nan),
    ("我来", "来我", math.nan),  # single characters are no substrings
    ("春天", "", math.nan),
    ("", "春天", math.nan),
    ("", "", math.nan),
]

# PMD: |MD(A) − MD(B)| / shared clauses, MD = Σ distances of shared clauses / clauses.
PMD = [
    # A: 下雨了 0, 路很滑 4; MD = 4/2. B: 路很滑 0, 大家要小心 4, 下雨了 10; MD = 10/3.
    ("下雨了，路很滑", "路很滑，大家要小心，下雨了", (10 / 3 - 4 / 2) / 2),
    # A: 天黑了 0, 我们回家 4, 吃晚饭 9; MD = (4 + 9 + 5)/3. B: 我们回家 0, 天黑了 5, 吃晚饭 9;
    # MD = (5 + 9 + 4)/3. Exchanging clauses within the same places keeps the distances.
    ("天黑了，我们回家，吃晚饭。", "我们回家，天黑了，吃晚饭。", 0.0),
    # A clause is inserted, nothing moved. A: 下雨了 0, 路很滑 4; MD = 4/2. B: 下雨了 0, 大家小心 4,
    # 路很滑 9; MD = 9/3. With the clause after both: MD = 4/3.
    ("下雨了，路很滑", "下雨了，大家小心，路很滑", (9 / 3 - 4 / 2) / 2),
    ("下雨了，路很滑", "下雨了，路很滑，大家小心", (4 / 2 - 4 / 3) / 2),
    # The k-th 走吧 is matched to the k-th. A: 走吧 0, 走吧 3, 天黑了 6. B: 天黑了 0, 真的 4, 走吧 7.
    # Shared: the first 走吧 (0 → 7) and 天黑了 (6 → 0). MD = 6/3 and 7/3.
    ("走吧，走吧，天黑了", "天黑了，真的，走吧", (7 / 3 - 6 / 3) / 2),
    # The point of 3.5 does not cut. A: 涨了3.5元 0, 很好 7; MD = 7/2. B: 很好 0, 涨了3.5元 3; 3/2.
    ("涨了3.5元，很好", "很好，涨了3.5元", (7 / 2 - 3 / 2) / 2),
    # Three shared. A: 春 0, 夏夏 2, 秋秋秋 5; MD = (2 + 5 + 3)/3.
    # B: 秋秋秋 0, 夏夏 4, 春 7; MD = (3 + 7 + 4)/3.
    ("春。夏夏。秋秋秋。", "秋秋秋。夏夏。春。", (14 / 3 - 10 / 3) / 3),
    ("下雨了， 路很滑。", "下雨了,路很滑!", 1 / 4),  # the space counts: MD = 5/2 and 4/2
    ("。，！", "。，！", math.nan),  # no clause at all
    ("下雨了", "", math.nan),
    ("", "下雨了", math.nan),
    ("", "", math.nan),
]

# LIS: characters of the longest common substring / characters of the source.
LIS = [
    ("今天天气很好", "明天天气很好", 5 / 6),  # 天天气很好
    ("天气", "今天天气很好", 1.0),  # the divisor is the source's length: not symmetric
    ("他来了", "她走了", 1 / 3),  # 了: a single character counts
    ("甲乙丙甲乙丙丁", "甲乙丙丁", 4 / 7),
    ("春天", "", 0.0),
    ("", "春天", math.nan),
    ("", "", math.nan),
]

# SL: characters (code points) of the normalised source.
SL = [
    ("今天天气很好", 6),
    ("", 0),
    (" \u3000\n", 0),
    ("  你 好\t吗\n", 4),  # 你 好吗
    ("𠮷野家", 3),  # beyond the basic plane
    ("👨\u200d👩\u200d👧", 5),  # three faces, two joiners
    ("等等…", 5),  # … is ... under NFKC
    ("\u1112\u1161\u11ab", 1),  # 한
]

# LR: characters of the paraphrase / characters of the source, both normalised.
LR = [
    ("今天天气很好", "天气好", 3 / 6),
    ("𠮷野家", "吉野", 2 / 3),
    ("好", "㍿", 4.0),  # 株式会社
    (" 你 好 ", "你  好", 1.0),
    ("天气", "", 0.0),
    ("", "天气", math.nan),
    ("", "", math.nan),
]

# SBLEU: BP · (p4 · p5 · p6 · p7)^(1/4), p_k = matched k-grams / k-grams of the paraphrase, over the
# orders of which the paraphrase has k-grams; BP = min(1, exp(1 − n / m)).
SBLEU = [
    ("今天天气非常好", "今天天气非常好", 1.0),
    # m = 7 has 4, 3, 2, 1 n-grams; those with 呀 miss. No 7-gram matches: 1 / (2 · 1).
    ("今天天气很好啊", "今天天气很好呀", (3 / 4 * 2 / 3 * 1 / 2 * 1 / 2) ** (1 / 4)),
    ("今天天气很好", "今天天气", math.exp(1 - 6 / 4)),  # p4 = 1/1 alone, and brevity
    ("今天天气", "今天天气很好", (1 / 3 * 1 / 4 * 1 / 4) ** (1 / 3)),  # p5 = 1/(2·2), p6 = 1/(4·1)
    # Clipped: the source has 哈哈哈哈 once, so one of three matches. p5, p6 as above; no p7.
    ("哈哈哈哈", "哈哈哈哈哈哈", (1 / 3 * 1 / 4 * 1 / 4) ** (1 / 3)),
    # 我们明天 and 早点出发 moved. m = 8: 2 of 5; then 0 of 4, 3, 2: 1/(2·4), 1/(4·3), 1/(8·2).
    ("我们明天早点出发", "早点出发我们明天", (2 / 5 * 1 / 8 * 1 / 12 * 1 / 16) ** (1 / 4)),
    ("今天 天气", "今天天气", 1.0),  # spaces do not count
    ("今天天气很好", "外面阳光明媚", 0.0),
    ("今天天气很好", "今天天", math.nan),  # too short for any n-gram
    ("", "", math.nan),
]

# WPA: (1 / |I|²) Σ over words of (words from here on) · |start in A / n − start in B / m|.
WPA = [
    # n = m = 4. 我 0 → 2, thrice; 爱 1 → 3, twice; 北京 2 → 0, once: 2/4 · 6 / 3².
    ("我/爱/北京", "北京/我/爱", 1 / 3),
    # n = m = 5, the comma is no word. 你好 0 → 3, twice; 世界 3 → 0, once: 3/5 · 3 / 2².
    ("你好/,/世界", "世界/,/你好", 9 / 20),
    # The k-th matches the k-th. 人 0 → 1, four times; 人 1 → 3, thrice; 都 2 → 2; 好 3 → 0, once:
    # (1/4 · 4 + 2/4 · 3 + 0 + 3/4 · 1) / 4² = 3.25 / 16.
    ("人/人/都/好", "好/人/都/人", 13 / 64),
    # n = 7, m = 5. 3 at 1 → 4, twice; book at 3 → 0, once: (2 · 23/35 + 15/35) / 2².
    ("买/3/本/book", "book/3", 61 / 140),
    # A surplus word on one side stays unmatched: only the first 人 0/2 → 1/3.
    ("人/人", "好/人/们", 1 / 3),
    ("北京/大学", "北京大学/吗", math.nan),  # same characters, different words
    # Same length, first and last character, but different words.
    ("不得不", "不能不", math.nan),
    ("一二三四五/不得不", "不得不/一二三四五", (2 * 3 / 8 + 5 / 8) / 4),
    ("好/。", "坏/。", math.nan),  # only punctuation is shared
    ("", "好", math.nan),
    ("", "", math.nan),
]

GOLDEN = {"acs": ACS, "spa": SPA, "pmd": PMD, "lis": LIS, "lr": LR, "sbleu": SBLEU}
CASES = [(name, *case) for name, cases in GOLDEN.items() for case in cases]
CASES += [("sl", source, paraphrase, n) for source, n in SL for paraphrase in ("我们", "")]
CASES += [("acs", paraphrase, source, share) for source, paraphrase, share in ACS]  # symmetric


@pytest.mark.parametrize(("name", "source", "paraphrase", "expected"), CASES)
def test_golden(both, name, source, paraphrase, expected):
    assert both(name, source, paraphrase) == pytest.approx((expected,) * 2, rel=1e-6, nan_ok=True)


@pytest.mark.parametrize(("source", "paraphrase", "expected"), WPA)
def test_wpa(both, given_words, source, paraphrase, expected):
    texts = source.replace("/", ""), paraphrase.replace("/", "")
    found = both("wpa", *texts, given_words(source, paraphrase))
    assert found == pytest.approx((expected,) * 2, rel=1e-6, nan_ok=True)


def test_alphanumeric_is_what_python_says():
    table = alphanumeric()
    assert table.tolist() == [chr(code).isalnum() for code in range(sys.maxunicode + 1)]
    assert all(table[ord(c)] for c in "好〇3Aéがx𠮷")
    assert not any(table[ord(c)] for c in "，。,_ \u3000😀—…")
