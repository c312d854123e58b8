"""The pairs of meanings that ship with the package: how many, how long, how alike, and where the change stands."""

import re
import statistics
import string
from collections import Counter
from importlib.resources import files
from itertools import combinations

import pytest

import wordsens as ws

OPPOSITES = ["negation", "antonym", "role", "quantity", "time", "entity", "modality"]
KINDS = [*OPPOSITES, "synonym", "paraphrase"]
WORDS_OF_LENGTH = {"question": (3, 45), "sentence": (3, 45), "paragraph": (60, 120), "page": (200, 320)}
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
one_word_kind = pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "paraphrase"])


def words(text: str) -> list[str]:
    """The lower-cased words, without the punctuation around them."""
    return re.findall(r"[^\W_]+", text.lower())


def overlap(first: set, second: set) -> float:
    """Jaccard's index, |A and B| / |A or B|."""
    return len(first & second) / len(first | second)


def common_beginning(pair: ws.MeaningPair) -> int:
    """How many words stand before the first that differs."""
    one_by_one = zip(pair.first.split(), pair.second.split(), strict=False)
    return next(place for place, (one, other) in enumerate(one_by_one) if one != other)


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


def test_every_text_has_the_length_of_its_class():
    for pair in PAIRS:
        low, high = WORDS_OF_LENGTH[pair.length]
        for text in (pair.first, pair.second):
            assert low <= len(text.split()) <= high, (pair.id, len(text.split()))
        if pair.length in {"question", "sentence"}:
            assert pair.first.endswith("?") is (pair.length == "question"), pair.id


def test_neither_text_is_much_longer_than_the_other():
    for pair in PAIRS:
        shorter, longer = sorted((len(pair.first.split()), len(pair.second.split())))
        assert longer <= 1.6 * shorter, (pair.id, shorter, longer)


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


def test_no_two_pairs_are_near_duplicates():
    firsts = Counter(pair.first for pair in PAIRS)
    assert {uses for text, uses in firsts.items() if len(text.split()) < 200} == {1}
    assert set(firsts.values()) == {1, len(KINDS)}, "only a page stands in a pair of every kind"
    trigrams = {text: set(zip(*(words(text)[k:] for k in range(3)), strict=False)) for text in firsts}
    for one, other in combinations(trigrams, 2):
        assert overlap(trigrams[one], trigrams[other]) < 0.5, (one, other)


def test_no_beginning_is_used_more_than_three_times():
    beginnings = Counter(tuple(words(text)[:3]) for text in {pair.first for pair in PAIRS})
    assert max(beginnings.values()) <= 3, beginnings.most_common(3)


@one_word_kind
def test_the_change_stands_at_the_beginning_in_the_middle_and_at_the_end(kind):
    places = [common_beginning(pair) / (len(pair.first.split()) - 1) for pair in BY_KIND[kind]]
    assert 0.25 <= statistics.mean(places) <= 0.75
    assert statistics.pstdev(places) >= 0.15
    thirds = Counter(min(int(3 * place), 2) for place in places)
    assert min(thirds[third] for third in range(3)) >= 3


def test_the_negation_stands_in_either_text():
    longer_first = sum(len(pair.first) > len(pair.second) for pair in BY_KIND["negation"])
    assert longer_first / len(BY_KIND["negation"]) >= 0.15


def test_the_texts_are_plain():
    allowed = set(string.ascii_letters + string.digits + " .,;:?!'-#é")
    for pair in PAIRS:
        for text in (pair.first, pair.second):
            assert set(text) <= allowed, (pair.id, set(text) - allowed)
            assert text == " ".join(text.split()), pair.id
            assert text[-1] in ".?!", pair.id
            assert text[0].isupper(), pair.id


@one_word_kind
def test_no_change_makes_up_more_than_three_tenths_of_a_kind(kind):
    uses = Counter(frozenset(word.lower() for word in pair.changed) for pair in BY_KIND[kind])
    assert max(uses.values()) <= 0.3 * len(BY_KIND[kind]), uses.most_common(1)


def test_the_file_stays_small():
    shipped = files("wordsens.text").joinpath("shipped", "meaning_pairs.jsonl")
    assert len(shipped.read_bytes()) < 400_000
