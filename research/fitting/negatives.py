"""Negatives: what a paraphrase metric must score low, made from real sentences.

Ratings exist for some thousand pairs only. Negatives teach the metric what is no paraphrase and
test it: the copy, the fragment, the stranger, and the sentence in which one thing went wrong. A
corruption is applied to the source (``kind``) or to the paraphrase (``own_kind``). The first gives
a near-copy with a fault, the second a good rewrite with the same fault, which is harder to see.
"""

import random
import re
from collections.abc import Callable, Iterable, Sequence

Tagged = list[tuple[str, str]]
"""The words of a sentence with jieba's part-of-speech tags (``Segmenter.tag`` for one text)."""
Tag = Callable[[str], Tagged]

NEEDS_READING = ("negation_inserted", "negation_dropped", "roles_swapped")
"""Corruptions that leave the surface nearly as it was: only reading tells."""

_FREQUENT = "的了是在一不有这人我他们上大来国到说为子和你地出会也时要就可以对生年发后"
_NUMBER = re.compile(
    r"[0-9]+(?:\.[0-9]+)?|[一二三四五六七八九十百千万亿]+(?=[十百千万亿年月日个名人次元岁天倍位家种条])"
)
_NEGATION = re.compile(
    r"并不|不会|没有|不(?![但仅过管断少同错论久禁料妨])|没(?!事|收)|未(?!来|必)|无法"
)
_NAMES = ("李建国", "王晓红", "陈志强", "约翰逊", "玛格丽特", "史密斯", "张伟民", "罗德里格斯")
_PLACES = ("南京", "成都", "芝加哥", "柏林", "青岛", "墨尔本", "西安", "开罗")
_CLAUSE = re.compile(r"[^,，。！？!?;；]+[,，。！？!?;；]*")


def make_negatives(
    source: str, paraphrase: str, other: str, tag: Tag, seed: int = 0, kinds: Sequence[str] = ()
) -> dict[str, str]:
    """The negatives of one pair, by kind; a kind that does not apply is absent.

    source, paraphrase: a sentence and its rewrite. other: a sentence about something else.
    tag: words and tags of a text. kinds: of KINDS, by default all. The same arguments always give
    the same negatives.
    """
    negatives = {}
    for kind in kinds or KINDS:
        # Each kind has its own generator: adding a kind leaves the others as they were.
        rng = random.Random(f"{seed}|{kind}|{source}|{paraphrase}")
        if kind == "copy":
            text = source
        elif kind == "unrelated":
            text = other
        elif kind == "spliced":
            text = source[: len(source) // 2] + other[len(other) // 2 :]
        else:
            base = paraphrase if kind.startswith("own_") else source
            text = CORRUPTIONS[kind.removeprefix("own_")](base, other, tag, rng)
        # A corruption that changed nothing is no negative.
        if text and (kind == "copy" or text not in (source, paraphrase)):
            negatives[kind] = text
    return negatives


def one_edit(text: str, rng: random.Random, operation: str | None = None) -> str:
    """The text with one character substituted, inserted or deleted (at random unless named)."""
    operation = operation or rng.choice(("substitution", "insertion", "deletion"))
    # Half of the new characters are frequent, half come from the sentence itself.
    new = rng.choice(_FREQUENT if rng.random() < 0.5 or not text else text)
    if operation == "insertion" or not text:
        position = rng.randrange(len(text) + 1)
        return text[:position] + new + text[position:]
    position = rng.randrange(len(text))
    if operation == "deletion":
        return text[:position] + text[position + 1 :]
    while new == text[position]:
        new = rng.choice(_FREQUENT)
    return text[:position] + new + text[position + 1 :]


def replace_characters(text: str, other: str, rng: random.Random, share: float = 0.3) -> str:
    """The text with a share of its Han characters replaced, half by frequent ones."""
    places = [k for k, character in enumerate(text) if "\u4e00" <= character <= "\u9fff"]
    characters = list(text)
    for position in rng.sample(places, round(share * len(places))):
        characters[position] = rng.choice(_FREQUENT if rng.random() < 0.5 or not other else other)
    return "".join(characters)


def change_number(text: str, rng: random.Random) -> str:
    """The text with the digits of one of its numbers replaced."""
    numbers = list(_NUMBER.finditer(text))
    if not numbers:
        return ""
    number = rng.choice(numbers)
    digits = ("0123456789", "一二三四五六七八九")
    changed = []
    for character in number.group():
        alphabet = next((row for row in digits if character in row), "")
        rest = alphabet.replace(character, "").replace("0", "")
        changed.append(rng.choice(rest) if rest else character)
    return text[: number.start()] + "".join(changed) + text[number.end() :]


def change_name(words: Tagged, rng: random.Random) -> str:
    """The words with one name of a person or a place replaced wherever it stands."""
    pools = {"nr": _NAMES, "nrt": _NAMES, "nrfg": _NAMES, "ns": _PLACES, "nt": _PLACES}
    names = sorted({(word, tag) for word, tag in words if tag in pools and len(word) > 1})
    if not names:
        return ""
    name, tag = rng.choice(names)
    new = rng.choice([candidate for candidate in pools[tag] if candidate != name])
    return "".join(new if word == name else word for word, _ in words)


def insert_negation(words: Tagged, rng: random.Random) -> str:
    """The words with 不 or 没有 before one of the verbs that stand unnegated."""
    places = [
        k
        for k, (word, tag) in enumerate(words)
        if tag in ("v", "vn") and (k == 0 or not _NEGATION.fullmatch(words[k - 1][0]))
    ]
    if not places:
        return ""
    texts, position = [word for word, _ in words], rng.choice(places)
    texts[position] = rng.choice(("不", "没有")) + texts[position]
    return "".join(texts)


def swap_roles(words: Tagged, rng: random.Random) -> str:
    """The words with two persons, pronouns or nouns on either side of a verb exchanged."""
    for tags in (("nr", "nrt", "nrfg", "r"), ("nr", "ns", "nt", "r", "n", "nz")):
        roles = [
            k for k, (word, tag) in enumerate(words) if tag in tags and word not in ("这", "那")
        ]
        verbs = [k for k, (_, tag) in enumerate(words) if tag == "v"]
        pairs = [
            (i, j)
            for i in roles
            for j in roles
            if words[i][0] != words[j][0] and any(i < verb < j for verb in verbs)
        ]
        if pairs:
            i, j = rng.choice(pairs)
            texts = [word for word, _ in words]
            texts[i], texts[j] = texts[j], texts[i]
            return "".join(texts)
    return ""


def add_clause(text: str, other: str, rng: random.Random) -> str:
    """The text with a clause of the other sentence before its last clause or at its end."""
    added = [clause.group().rstrip(",，。！？!?;；") for clause in _CLAUSE.finditer(other)]
    added = [clause for clause in added if len(clause) > 4]
    clauses = [clause.group() for clause in _CLAUSE.finditer(text)]
    if not added or not clauses:
        return ""
    position = rng.randrange(len(clauses) + 1)
    if position == len(clauses) and clauses[-1][-1] not in ",，。！？!?;；":
        return text + "，" + rng.choice(added)
    return "".join([*clauses[:position], rng.choice(added) + "，", *clauses[position:]])


def shuffle_words(words: Tagged, rng: random.Random) -> str:
    """The words in random order."""
    texts = [word for word, _ in words]
    rng.shuffle(texts)
    return "".join(texts)


def drop_clause(text: str, rng: random.Random) -> str:
    """The text without one of its longer clauses."""
    clauses = list(_CLAUSE.finditer(text))
    long = [clause for clause in clauses if len(clause.group()) > 4]
    return _without(text, long, rng) if len(clauses) > 1 else ""


def _without(text: str, matches: Iterable[re.Match[str]], rng: random.Random) -> str:
    """The text without one of the matches; empty where there is none."""
    found = list(matches)
    if not found:
        return ""
    match = rng.choice(found)
    return text[: match.start()] + text[match.end() :]


Corruption = Callable[[str, str, Tag, random.Random], str]
CORRUPTIONS: dict[str, Corruption] = {
    "edit": lambda text, other, tag, rng: one_edit(text, rng),
    "two_edits": lambda text, other, tag, rng: one_edit(one_edit(text, rng), rng),
    "first_half": lambda text, other, tag, rng: text[: len(text) // 2],
    "last_half": lambda text, other, tag, rng: text[len(text) // 2 :],
    "repeated": lambda text, other, tag, rng: text + text,
    "words_shuffled": lambda text, other, tag, rng: shuffle_words(tag(text), rng),
    "characters_replaced": lambda text, other, tag, rng: replace_characters(text, other, rng),
    "number_changed": lambda text, other, tag, rng: change_number(text, rng),
    "name_changed": lambda text, other, tag, rng: change_name(tag(text), rng),
    "negation_inserted": lambda text, other, tag, rng: insert_negation(tag(text), rng),
    "negation_dropped": lambda text, other, tag, rng: _without(text, _NEGATION.finditer(text), rng),
    "roles_swapped": lambda text, other, tag, rng: swap_roles(tag(text), rng),
    "clause_dropped": lambda text, other, tag, rng: drop_clause(text, rng),
    "clause_added": lambda text, other, tag, rng: add_clause(text, other, rng),
}
"""What may go wrong in a text: of it, another one, tags and chance; empty if it does not apply."""

KINDS = ("copy", "unrelated", "spliced", *CORRUPTIONS, *(f"own_{kind}" for kind in CORRUPTIONS))
"""Every kind of negative."""
