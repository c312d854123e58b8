"""The pairs of meanings that ship with the package: how many of each kind, and what one change does."""

import re
import statistics
from collections import Counter

import pytest

import wordsens as ws

OPPOSITES = ["negation", "antonym", "role", "quantity", "time", "entity", "modality"]
KINDS = [*OPPOSITES, "synonym", "paraphrase"]
FUNCTION_WORDS = """
    a about above after again all also am an and any are as at be because been before being below between both but
    by can cannot could did do does doing don down during each else every few for from had has have having he her
    here hers him himself his how i if in into is it its itself just ll may me might more most much must my myself
    neither never no nobody nor not nothing of off on once one only or other our ours out over own per re s same
    shall she should since so some somebody something such t than that the their theirs them themselves then there
    these they this those through to too under until up upon us ve very was we were what when where whether which
    while who whoever whom whose why will with within without would yet you your yours yourself
"""

PAIRS = ws.meaning_pairs()
BY_KIND = {kind: [pair for pair in PAIRS if pair.kind == kind] for kind in KINDS}
one_kind = pytest.mark.parametrize("kind", KINDS)


def words(text: str) -> list[str]:
    """The lower-cased words, without the punctuation around them."""
    return re.findall(r"[^\W_]+", text.lower())


def overlap(first: set, second: set) -> float:
    """Jaccard's index, |A and B| / |A or B|."""
    return len(first & second) / len(first | second)


@one_kind
def test_there_are_enough_of_each_kind_in_many_domains_and_lengths(kind):
    pairs = BY_KIND[kind]
    assert len(pairs) >= (120 if kind == "paraphrase" else 60)
    assert len({pair.domain for pair in pairs}) >= 4
    lengths = Counter(pair.length for pair in pairs)
    assert 0.2 <= lengths["paragraph"] / (len(pairs) - lengths["page"]) <= 0.3
    assert lengths["question"] >= 5
    assert lengths["page"] >= 10


def test_domains_kinds_ids_and_notes():
    assert {pair.kind for pair in PAIRS} == set(KINDS)
    assert len({pair.domain for pair in PAIRS}) >= 5
    assert len({pair.id for pair in PAIRS}) == len(PAIRS)
    for pair in PAIRS:
        assert pair.id.startswith(f"{pair.kind}-")
        assert pair.same is (pair.kind in {"synonym", "paraphrase"}), pair.id
        assert len(pair.note) > 5, pair.id


def test_one_change_turns_the_first_text_into_the_second():
    for pair in PAIRS:
        if pair.kind not in {"role", "paraphrase"}:
            before, after = pair.changed
            places = re.finditer(rf"(?<!\w){re.escape(before)}(?!\w)", pair.first)
            turned = {pair.first[: place.start()] + after + pair.first[place.end() :] for place in places}
            assert pair.second in turned, pair.id
            assert len(before.split()) <= 4, pair.id
            assert len(after.split()) <= 4, pair.id


def test_role_pairs_have_the_same_words_two_of_which_change_places():
    for pair in BY_KIND["role"]:
        assert Counter(words(pair.first)) == Counter(words(pair.second)), pair.id
        here, there = zip(*_differing(words(pair.first), words(pair.second)), strict=True)
        assert list(here) == list(reversed(there)), pair.id
        assert sorted(here) == sorted(words(" ".join(pair.changed))), pair.id


def _differing(first: list[str], second: list[str]) -> list[tuple[str, str]]:
    return [(one, other) for one, other in zip(first, second, strict=True) if one != other]


def test_paraphrases_share_few_content_words():
    shared = {}
    for pair in BY_KIND["paraphrase"]:
        assert pair.changed == ()
        shared[pair.id] = overlap(
            *(set(words(text)) - set(words(FUNCTION_WORDS)) for text in (pair.first, pair.second))
        )
    assert max(shared.values()) <= 0.25, max(shared, key=shared.__getitem__)
    assert statistics.mean(shared.values()) < 0.15
