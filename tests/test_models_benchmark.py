"""The table of embedding models: what it is made of, without the packages that bring the models."""

from importlib.metadata import version

import numpy as np
import pytest

import wordsens as ws
from benchmarks.models import Shipped, bag_of_words, missing, row, word_sums, words_of


def test_a_bag_of_words_sees_words_and_not_their_order():
    dog, man, not_dog = bag_of_words()(
        ["The dog sees the man.", "the man sees The dog", "The dog does not see the man."]
    )
    assert (dog == man).all()
    assert not (dog == not_dog).all()
    assert dog.sum() == 5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It isn't on.", ["it", "is", "n't", "on"]),
        ("The lift's 'open' door", ["the", "lift", "'s", "open", "door"]),
    ],
)
def test_a_negation_is_a_word_of_its_own(text, words):
    assert words_of(text) == words


def test_words_without_a_vector_are_left_out():
    encode = word_sums(np.array([[1.0, 0.0], [0.0, 2.0]]), {"on": 0, "off": 1})
    assert encode(["On xyzzy off off", "xyzzy"]).tolist() == [[1, 4], [0, 0]]


def test_a_model_without_its_packages_is_one_line_with_what_to_install():
    here = f"numpy=={version('numpy')}"
    assert missing(Shipped("a model", (here,), dict)) == ""
    for package in ("numpy==0.0.1", "no-such-package==1.0"):
        line = missing(Shipped("a model", (here, package), dict))
        assert line == f"a model left out; pip install {here} {package}"


def test_a_row_names_the_worst_kind_and_says_none_without_a_threshold():
    doors = range(20)
    pairs = [("negation", f"Door {n} is shut", f"Door {n} is not shut", False) for n in doors]
    pairs += [
        ("role", f"Door {n} hits gate b{n}", f"Gate b{n} hits door {n}", False) for n in doors
    ]
    pairs += [("near", f"Where is door {n}?", f"Where's door {n}?", True) for n in doors]
    pairs += [("near", f"Close door {n}", f"Close door {n}!", True) for n in doors]
    far = {"kind": "paraphrase", "first": "Is it shut?", "second": "Closed?", "same": True}
    result = ws.check(bag_of_words(), [*pairs, {**far, "set": "far"}])
    name, hits, negation, worst, auc, _, alone, guarded = row("words", result)
    assert name == "words"
    assert hits.startswith("100 % [")
    assert negation.startswith("100 % [")
    assert worst.startswith("role, 100 % [")
    # Half of the near-duplicates are more alike than a negation; they are as alike as a role.
    assert auc.startswith("0.38 [")
    assert alone == "none"
    assert guarded.startswith("100 % [")
