"""What pieces turn: the equations hold, and texts that differ by an opposite differ in parity."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wordsens as ws
from wordsens.evaluation.near_misses.lists import ANTONYMS
from wordsens.text.pretrained import minilm_folder
from wordsens.training.adapter.parity.turning import _System, turning_pieces


@pytest.fixture(scope="module")
def odd():
    """From a text to whether it holds an odd number of turning pieces, read by MiniLM's tokenizer."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(minilm_folder())
    pieces = turning_pieces(tokenizer)
    return lambda text: sum(number in pieces for number in tokenizer(text)["input_ids"]) % 2 == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The lift is open.", "The lift is closed."),
        ("It works.", "It does not work."),
        ("They came.", "They didn't come."),
        ("Enable the cache.", "Disable the cache."),
        ("All seats are free.", "None of the seats is free."),
        ("Refunds take 3 days.", "Refunds take 30 days."),
        ("Refunds take three days.", "Refunds take thirteen days."),
        ("Pay before the trial.", "Pay after the trial."),
        ("See you on Monday.", "See you on Tuesday."),
        ("You can pay by card.", "You can't pay by card."),
        ("You can pay by card.", "You cannot pay by card."),
        ("It will open.", "It won't open."),
        ("It opened last year.", "It will open next year."),
        ("You may leave.", "You must leave."),
        ("She was able to come.", "She was unable to come."),
        ("It costs at most 5 euros.", "It costs at least 5 euros."),
    ],
)
def test_an_opposite_has_the_other_parity(one, other, odd):
    assert odd(one) != odd(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("It does not work.", "It doesn't work."),
        ("The film was awful.", "The movie was awful."),
        ("I really like it.", "I like it."),
        ("They are big cars.", "They are large cars."),
    ],
)
def test_another_wording_keeps_the_parity(one, other, odd):
    assert odd(one) == odd(other)


def test_a_byte_level_vocabulary_is_read(sentences):
    """Pieces that begin with a blank, capital letters, words of several pieces."""
    from tokenizers import ByteLevelBPETokenizer
    from transformers import PreTrainedTokenizerFast

    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator(sentences, vocab_size=3000, show_progress=False)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=trained._tokenizer)
    pieces = turning_pieces(tokenizer)
    odd = lambda text: sum(number in pieces for number in tokenizer(text)["input_ids"]) % 2  # noqa: E731
    for one, other in (
        ("The film was good.", "The film was not good."),
        ("Then it was better.", "Then it was worse."),
        ("I saw it on Monday.", "I saw it on Tuesday."),
        ("Nobody laughed, Not even once.", "Nobody laughed, even once."),
    ):
        assert odd(one) != odd(other), (one, other)


def test_the_listed_antonyms_differ(odd):
    differ = [odd(one) != odd(other) for one, other in ANTONYMS.items()]
    assert sum(differ) > 0.97 * len(differ)


def test_shipped_synonyms_hardly_ever_differ(odd):
    pairs = [pair for pair in ws.read_pairs() if pair.kind == "synonym" and pair.length != "page"]
    negations = [pair for pair in ws.read_pairs() if pair.kind == "negation" and pair.length != "page"]
    share = [sum(odd(pair.first) != odd(pair.second) for pair in some) / len(some) for some in (pairs, negations)]
    assert share[0] < 0.15 and share[1] > 0.85


@given(st.lists(st.tuples(st.lists(st.integers(0, 9), max_size=3), st.booleans()), max_size=12), st.booleans())
def test_every_equation_that_can_hold_holds(equations, known):
    """Against all 2 ** 10 assignments: an equation is kept where some assignment satisfies it and all kept before."""
    given_values = {3: 1} if known else {}
    system = _System(given_values)
    for pieces, differs in equations:
        system.add(pieces, [], differs)
    ones = system.ones()

    def holds(assignment, equation):
        return sum(assignment >> piece & 1 for piece in equation[0]) % 2 == equation[1]

    left = [each for each in range(1 << 10) if not known or each >> 3 & 1]
    found = sum(1 << piece for piece in ones)
    for equation in equations:
        still = [each for each in left if holds(each, equation)]
        assert holds(found, equation) == bool(still)
        left = still or left
