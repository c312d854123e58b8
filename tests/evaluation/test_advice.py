"""Advice on length: embeddings whose decay is known, and what cannot be advised."""

import math
import random
from dataclasses import replace

import numpy as np
import pytest

import wordsens as ws
from wordsens.evaluation.length import Surroundings

WORDS = (
    "lamp",
    "table",
    "door",
    "river",
    "stone",
    "paper",
    "cloud",
    "train",
    "bread",
    "glass",
    "house",
    "wheel",
)


def texts_of(count, seed=0):
    """Texts of some words with one sentence that can be negated; its key tells the texts apart."""
    chance = random.Random(seed)

    def filler():
        return " ".join(chance.choices(WORDS, k=40)).capitalize() + "."

    return [
        f"{filler()} The key{at} lamp is not as good as before. {filler()}" for at in range(count)
    ]


def encoder(law, scale):
    """Texts as unit vectors whose cosine distance from the unchanged is law(words, place) times the
    key's scale."""

    def encode(texts):
        rows = []
        for text in texts:
            words, moved = text.split(), 0.0
            for at, word in enumerate(words):
                if (
                    word.startswith("key")
                    and at + 3 < len(words)
                    and words[at + 2] == "is"
                    and words[at + 3] != "not"
                ):
                    others = len(words) - 8
                    place = (at - 1) / others if others else 0.5
                    moved = min(1.0, law(len(words), place) * scale[int(word[3:])])
            rows.append([1 - moved, math.sqrt(1 - (1 - moved) ** 2)])
        return np.array(rows)

    return encode


LAWS = {
    "power": (
        lambda n, place: 0.5 * (n / 10) ** -0.8,
        {"any": 177.8, "first": 177.8, "last": 177.8},
    ),
    "exponential": (
        lambda n, place: 0.6 * math.exp(-n / 70),
        {"any": 173.9, "first": 173.9, "last": 173.9},
    ),
    "place": (
        lambda n, place: 0.5 * (n / 10) ** -0.8 * (1.6 - 1.2 * place),
        {"first": 320.0, "last": 56.6},
    ),
}


@pytest.mark.slow_cases("place")
@pytest.mark.parametrize("name", LAWS)
def test_the_interval_covers_the_true_length(name):
    """12 runs at 95 % or more: 9 or fewer are covered by chance twice in 1,000 times."""
    law, true = LAWS[name]
    covered = dict.fromkeys(true, 0)
    for run in range(12):
        chance = random.Random(run)
        scale = [math.exp(0.3 * chance.gauss(0, 1)) for _ in range(12)]
        found = ws.advise_length(encoder(law, scale), texts_of(12, run), changes=12)
        by_place = zip(found.places["low"], found.places["high"], strict=True)
        ends = {
            "any": (found.low, found.high),
            **dict(zip(found.places["place"], by_place, strict=True)),
        }
        for place, length in true.items():
            low, high = ends[place]
            covered[place] += (low or 0) <= length <= (math.inf if high is None else high)
    assert min(covered.values()) >= 10


def test_without_noise_the_length_is_the_laws():
    found = ws.advise_length(encoder(LAWS["power"][0], [1.0] * 12), texts_of(12))
    assert found.length == pytest.approx(177.8, rel=0.01)
    assert found.decisive
    assert f"at most {found.length} words (95 %: {found.low} to {found.high})" in found.headline
    assert (found.source, found.changes, found.unit) == ("your texts", 12, "words")


def test_pairs_are_put_into_the_texts_and_paraphrases_are_not():
    pairs = [
        (kind, f"key{at} lamp is not good", f"key{at} lamp is good", kind == "synonym")
        for at, kind in enumerate(["negation"] * 8 + ["synonym"] * 4)
    ]

    def encode(texts):
        return [[1.0, 0.0 if " not " in text else 1 / len(text.split())] for text in texts]

    found = ws.advise_length(
        encode, ["a dull book of many pages " * 30, "the river runs " * 60], pairs, threshold=0.999
    )
    assert (found.changes, found.kind, found.source) == (
        8,
        "negation",
        "given sentences, put into your texts",
    )
    assert found.length == pytest.approx(22, abs=1)
    # No kind keeps others out: a word exchanged is a change as much as a negation.
    other = [
        ("amount", f"key{at} lamp is not old", f"key{at} lamp is old", False) for at in range(4)
    ]
    turned = [(kind, second, first, same) for kind, first, second, same in other]
    found = ws.advise_length(encode, ["the river runs " * 60] * 2, [*pairs, *other, *turned])
    assert (found.changes, found.kind) == (12, "change")


def test_what_cannot_be_advised_has_a_reason():
    texts = texts_of(12)
    lost = ws.advise_length(encoder(lambda n, place: 0.01, [1.0] * 12), texts)
    assert (lost.length, lost.low, "already at 9 words" in lost.reason) == (None, None, True)
    assert len(lost.curve["words"]) == 4
    kept = ws.advise_length(encoder(lambda n, place: 0.2, [1.0] * 12), texts)
    assert (kept.length, kept.low, kept.high) == (None, kept.longest, None)
    few = [("negation", f"Lamp {at} is on", f"Lamp {at} is not on", False) for at in range(5)]
    with pytest.raises(ws.InputError, match=r"`pairs` holds 5 opposites.* takes 6"):
        ws.advise_length(encoder(LAWS["power"][0], [1.0] * 3), texts_of(3), [*few, *few])


def test_a_transformer_is_measured_in_tokens_up_to_its_context():
    texts = [
        f"The lamp number {at} is not on. " + "It hangs over the table. " * 30 for at in range(7)
    ]
    done = []
    found = ws.advise_length(
        "minilm",
        texts,
        threshold=1e-4,
        changes=6,
        longest=64,
        progress=lambda now, total: done.append((now, total)),
    )
    assert (found.unit, found.changes, found.longest) == ("tokens", 6, 64)
    count = ws.as_model("minilm").text_model().count_tokens
    around = Surroundings(texts, count)
    longest = around.passage(around.negated_sentences()[0], "middle", 64)
    assert longest and 60 <= max(map(count, longest)) <= 64
    assert done[-1][0] <= done[-1][1]


def test_an_open_interval_is_said_on_the_side_where_it_is_open():
    found = ws.advise_length(encoder(LAWS["power"][0], [1.0] * 12), texts_of(12))
    longer = replace(found, length=None, low=64, high=None, reason="why").headline
    shorter = replace(found, length=None, low=None, high=64, reason="why").headline
    assert longer.endswith("why (95 %: 64 to more than 288)")
    assert shorter.endswith("why (95 %: up to 64)")
    for wide in (1, 9):
        length = replace(found, length=50, low=50 // wide, high=50 * wide)
        assert ("too uncertain" in length.headline) == (wide > 1) == (not length.decisive)
