"""The near-duplicates that ship with the package: frozen statistics, and what every pair must be."""

import re
import statistics
from collections import Counter

import wordsens as ws

PAIRS = ws.near_duplicates()
KINDS = {
    "contraction": 24, "number": 24, "date": 24, "voice": 24, "order": 24, "spelling": 24, "typo": 24,
    "abbreviation": 24, "filler": 24, "reminder": 24, "double negation": 24, "wording": 24, "case": 12, "paragraph": 6,
}  # fmt: skip
DOMAINS = ("support", "documentation", "health", "finance", "law", "everyday")


def words(text):
    return set(re.findall(r"[^\W_]+", text.lower()))


def overlap(pair):
    first, second = words(pair.first), words(pair.second)
    return len(first & second) / len(first | second)


def test_statistics_are_those_of_the_file_as_it_was_read_last():
    """A change of the file changes these, and every figure that was measured with it."""
    assert len(PAIRS) == 306
    assert Counter(pair.kind for pair in PAIRS) == KINDS
    assert Counter(pair.domain for pair in PAIRS) == dict.fromkeys(DOMAINS, 51)
    assert Counter(pair.length for pair in PAIRS) == {"sentence": 280, "question": 20, "paragraph": 6}
    texts = [text for pair in PAIRS for text in (pair.first, pair.second)]
    assert round(statistics.mean(len(text.split()) for text in texts), 2) == 9.39
    assert round(statistics.mean(map(overlap, PAIRS)), 3) == 0.678


def test_every_pair_is_a_near_duplicate_of_its_own():
    texts = [text for pair in PAIRS for text in (pair.first, pair.second)]
    assert len(set(texts)) == len(texts)
    assert not set(texts) & {text for pair in ws.meaning_pairs() for text in (pair.first, pair.second)}
    assert all(pair.same and pair.first != pair.second for pair in PAIRS)
    assert min(map(overlap, PAIRS)) >= 0.25
    assert len({pair.id for pair in PAIRS}) == len(PAIRS)


def test_kinds_are_what_their_name_says():
    by_kind = {kind: [pair for pair in PAIRS if pair.kind == kind] for kind in KINDS}
    assert all(
        ("'" in pair.first) and pair.first.count("'") > pair.second.count("'") for pair in by_kind["contraction"]
    )
    order = [pair for pair in by_kind["order"] if words(pair.first) == words(pair.second)]
    assert len(order) >= 0.8 * len(by_kind["order"])
    for kind in ("spelling", "typo"):
        assert all(len(pair.first.split()) == len(pair.second.split()) for pair in by_kind[kind])
    assert all(len(pair.first.split()) >= 60 for pair in by_kind["paragraph"])
