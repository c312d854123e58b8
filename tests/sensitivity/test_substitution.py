"""Average, block and random sensitivity against closed forms, brute force and plain encoding."""

import itertools
import math

import numpy as np
import pytest
import torch

import wordsens as ws
from wordsens.models.load import as_model
from wordsens.sensitivity.substitution import substitution_sensitivity

BITS = ("zero", "one")
WHOLE = {"draws": 64, "longest_block": 5}


def either(_word):
    return BITS


def as_text(bits):
    return " ".join(BITS[bit] for bit in bits)


def boolean(function):
    """A model whose one output is the function of a text's bits, -1 or 1; other texts are all
    zeros."""

    def encode(texts):
        return [
            [1.0 if function([int(word == "one") for word in text.split()]) else -1.0]
            for text in texts
        ]

    return encode


def by_hand(function, bits, places):
    """The variance of the +-1 output when the bits at the places are random."""
    values = []
    for new in itertools.product((0, 1), repeat=len(places)):
        changed = list(bits)
        for place, bit in zip(places, new, strict=True):
            changed[place] = bit
        values.append(1.0 if function(changed) else -1.0)
    return float(np.var(values))


def parity(bits):
    return sum(bits) % 2


def dictator(bits):
    return bits[0]


def majority(bits):
    return 2 * sum(bits) > len(bits)


@pytest.mark.parametrize(
    ("function", "average"),
    [
        (parity, 5.0),
        (dictator, 1.0),
        (majority, 5 * math.comb(4, 2) / 2**4),
        (lambda bits: all(bits), 5 / 2**4),
    ],
    ids=["parity", "dictator", "majority", "and"],
)
def test_the_average_sensitivity_of_boolean_functions(function, average):
    found = [
        substitution_sensitivity(boolean(function), as_text(bits), either, **WHOLE)
        for bits in itertools.product((0, 1), repeat=5)
    ]
    assert np.mean([text.average for text in found]) == pytest.approx(average)
    # A flip moves +-1 by 2.
    assert np.mean([text.random for text in found]) == pytest.approx(2 * average / 5)
    assert all(text.exact for text in found)


def test_blocks_see_what_no_single_word_changes():
    none, every = (
        substitution_sensitivity(boolean(all), as_text(bits), either, draws=64, longest_block=3)
        for bits in ([0, 0, 0], [1, 1, 1])
    )
    assert (none.average, none.block, none.blocks) == (
        0,
        pytest.approx(4 / 8 * 7 / 8),
        ((0, 1, 2),),
    )
    assert (every.average, every.block) == (3, 3)


def partitions(places):
    """All ways to cut a set into disjoint blocks."""
    if not places:
        yield []
        return
    first, *others = places
    for size in range(len(places)):
        for more in itertools.combinations(others, size):
            for blocks in partitions([place for place in others if place not in more]):
                yield [(first, *more), *blocks]


@pytest.mark.parametrize("neighbours", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_block_sensitivity_is_the_best_of_all_disjoint_blocks(seed, neighbours):
    table = np.random.default_rng(seed).integers(2, size=2**5)

    def function(bits):
        return table[int("".join(map(str, bits)), 2)]

    bits = np.random.default_rng(100 + seed).integers(2, size=5).tolist()
    best = max(
        sum(by_hand(function, bits, block) for block in blocks)
        for blocks in partitions(range(5))
        if not neighbours or all(block[-1] - block[0] < len(block) for block in blocks)
    )
    plan = {"draws": 32, "longest_block": 5, "enumerated": 0 if neighbours else 32}
    text = substitution_sensitivity(boolean(function), as_text(bits), either, **plan)
    assert text.every_block != neighbours
    assert text.block == pytest.approx(best)
    assert text.block == pytest.approx(sum(by_hand(function, bits, block) for block in text.blocks))
    assert text.per_word == pytest.approx([by_hand(function, bits, [at]) for at in range(5)])


def distant(texts):
    """1 + 4 where the first and the fourth word are b, + 1 where the third is."""
    return [
        [1.0 + 4 * (w[:1] == w[3:4] == ["b"]) + (w[2:3] == ["b"])] for w in map(str.split, texts)
    ]


@pytest.mark.parametrize("more", [0, 1, 5, 6])
def test_blocks_of_words_that_are_no_neighbours(more):
    """4² times 3/16 for the first and the fourth word, 1/4 for the third; further words count for
    nothing."""
    text = " ".join("a" * (5 + more))
    found = substitution_sensitivity(distant, text, lambda _: ("a", "b"))
    assert found.every_block == (more < 6)
    assert found.block == pytest.approx(3.25 if found.every_block else 0.25)


WEIGHTS = {"low": 0.5, "mid": 1.0, "high": 3.0}


def linear(texts):
    """10 + sum of a_i w_i, a_i = i: every variance and every change is known."""
    return [
        [10.0 + sum(at * WEIGHTS.get(word, 0.0) for at, word in enumerate(text.split(), start=1))]
        for text in texts
    ]


def test_a_linear_function_has_the_variances_of_its_terms():
    text = "low mid high"
    found = substitution_sensitivity(linear, text, lambda _: tuple(WEIGHTS), draws=27)
    own, spread = linear([text])[0][0] ** 2, np.var(list(WEIGHTS.values()))
    assert found.per_word == pytest.approx([place**2 * spread / own for place in (1, 2, 3)])
    # Terms are independent: no way to cut the text gives more than another.
    assert found.block == pytest.approx(found.average) == pytest.approx(14 * spread / own)
    changes = [
        np.mean(
            [place * abs(other - WEIGHTS[word]) for key, other in WEIGHTS.items() if key != word]
        )
        for place, word in enumerate(text.split(), start=1)
    ]
    assert found.random == pytest.approx(np.mean(changes) / math.sqrt(own))


def test_drawn_words_give_the_same_on_average_and_blocks_are_not_overrated():
    """60 seeds of 8 draws from 40 words; limits of four standard errors."""
    words = tuple(f"w{number}" for number in range(40))
    values = dict(zip(words, np.random.default_rng(1).normal(size=40), strict=True))

    def encode(texts):
        return [[20.0 + sum(values.get(word, 0.0) for word in text.split())] for text in texts]

    text = "w0 w1 w2 w3"
    found = [
        substitution_sensitivity(encode, text, lambda _: words, seed, draws=8) for seed in range(60)
    ]
    truth = 4 * np.var(list(values.values())) / encode([text])[0][0] ** 2
    for measured in ([one.average for one in found], [one.block for one in found]):
        error = np.std(measured, ddof=1) / math.sqrt(60)
        assert abs(np.mean(measured) - truth) < 4 * error < 0.3 * truth
    assert not found[0].exact


def test_a_trained_model_word_by_word_against_plain_encoding():
    model, text = as_model("minilm"), "The film is not good"
    others = {
        "The": ["A"],
        "film": ["book", "meal"],
        "is": ["was"],
        "not": ["very"],
        "good": ["bad"],
    }
    offered = {word: (word, *more) for word, more in others.items()}
    found = ws.substitution_sensitivity("minilm", text, offered.__getitem__)
    words = text.split()
    for at, word in enumerate(words):
        texts = [" ".join([*words[:at], other, *words[at + 1 :]]) for other in offered[word]]
        rows = torch.cat([model.encode([one]) for one in texts])
        spread = (rows - rows.mean(dim=0)).square().sum(dim=1).mean() / model.encode([text])[
            0
        ].square().sum()
        assert found.per_word[at] == pytest.approx(float(spread), rel=1e-4)
    assert found.words == tuple(words)


def test_bad_input_is_one_line():
    with pytest.raises(ws.InputError, match=r"`alternatives` gives none for 'a'"):
        substitution_sensitivity(linear, "a b", lambda _: ())
    with pytest.raises(ws.InputError, match=r"`text` \(='  '\) holds no word"):
        substitution_sensitivity(linear, "  ", either)
    with pytest.raises(ws.InputError, match=r"`text` \(=\['a b'\]\).*one text at a time"):
        substitution_sensitivity(linear, ["a b"], either)
    with pytest.raises(ws.InputError, match=r"`draws` \(=3\)"):
        substitution_sensitivity(linear, "a b", either, draws=3)
