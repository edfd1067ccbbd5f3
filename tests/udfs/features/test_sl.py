"""SL by hand: characters (code points) of the normalised source."""

import pytest

GOLDEN = [
    ("今天天气很好", 6),
    ("好", 1),
    ("", 0),
    (" \u3000\n", 0),
    ("  你\u3000 好\t吗\n", 5),  # 你 好 吗
    ("𠮷野家", 3),  # beyond the basic plane
    ("👨\u200d👩\u200d👧", 5),  # three faces, two joiners
    ("等等…", 5),  # … is ... under NFKC
    ("㍿", 4),  # 株式会社
    ("①", 1),
    ("e\u0301", 1),  # é
    ("\u1112\u1161\u11ab", 1),  # 한
    ("か\u3099", 1),  # が
    ("好" * 1000, 1000),
]


@pytest.mark.parametrize(("source", "expected"), GOLDEN)
def test_golden(both, source, expected):
    assert both("sl", source, "我们") == (expected, expected)
    assert both("sl", source, "") == (expected, expected)
