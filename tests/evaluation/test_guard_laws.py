"""Laws of the guard, on texts that are made: what dictionary, arithmetic and grammar say of two
texts decides the verdict."""

import itertools
import random
import subprocess
import sys

import pytest
from simplemma import is_known
from spellchecker import SpellChecker

import wordsens as ws
from wordsens.evaluation.guard.lexicon import english


def verdict(first, second):
    assert ws.guard(first, second).verdict == ws.guard(second, first).verdict
    return ws.guard(first, second).verdict


def neighbours(word):
    """The strings one letter away."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    for at in range(len(word) + 1):
        yield from (word[:at] + letter + word[at:] for letter in letters)
        if at < len(word):
            yield word[:at] + word[at + 1 :]
            yield from (word[:at] + letter + word[at + 1 :] for letter in letters)
        if at < len(word) - 1:
            yield word[:at] + word[at + 1] + word[at] + word[at + 2 :]


@pytest.fixture(scope="module")
def words():
    """1,500 words that both dictionaries have, of all frequencies; seed 0."""
    known = sorted(
        word
        for word in SpellChecker(language="en")
        if len(word) > 3 and word.isascii() and word.isalpha() and is_known(word, "en")
    )
    return random.Random(0).sample(known, 1500)


def test_two_words_that_exist_are_never_a_slip_of_each_other(words):
    lexicon, more = english(), set(SpellChecker(language="en"))
    pairs = {
        tuple(sorted((word, other)))
        for word in words
        for other in neighbours(word)
        if other != word and other in more and is_known(other, "en")
    }
    # Inflections and spellings of one word, and what the lists say, are not slips.
    pairs = [
        pair
        for pair in sorted(pairs)
        if lexicon.key(pair[0]) != lexicon.key(pair[1]) and not lexicon.relation(*pair)
        if not lexicon.grammar["light"].keys() >= set(pair)
    ]
    assert len(pairs) > 1000
    same = [
        pair
        for pair in pairs
        if verdict(*(f"We saw the {word} on the list." for word in pair)) == "same"
    ]
    assert not same


def test_a_letter_wrong_in_a_common_word_is_a_slip(words):
    lexicon, common = english(), SpellChecker(language="en")
    rng = random.Random(1)
    slips = []
    for word in words:
        at = rng.randrange(1, len(word) - 2)
        slip = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
        if slip != word and not lexicon.is_word(slip) and common[word] > 1000:
            slips.append((word, slip))
    assert len(slips) > 100
    verdicts = [
        verdict(f"They have the {slip} here.", f"They have the {word} here.")
        for word, slip in slips
    ]
    assert verdicts.count("same") > 0.9 * len(slips)
    assert "different" not in verdicts


@pytest.mark.parametrize("celsius", range(-20, 200, 20))
def test_celsius_and_fahrenheit(celsius):
    first = f"Bake it at {celsius} °C."
    assert verdict(first, f"Bake it at {celsius * 9 / 5 + 32:g} °F.") == "same"
    assert verdict(first, f"Bake it at {celsius * 9 / 5 + 82:g} °F.") == "different"


@pytest.mark.parametrize(("hours", "minutes"), [(1, 15), (2, 30), (3, 5), (10, 45)])
def test_a_quantity_in_two_units(hours, minutes):
    total = f"The film lasts {60 * hours + minutes} minutes."
    plural = "s" * (hours > 1)
    assert verdict(f"The film lasts {hours} hour{plural} and {minutes} minutes.", total) == "same"
    assert verdict(f"The film lasts {hours} h {minutes} min.", total) == "same"
    other = f"The film lasts {hours} hour{plural} and {minutes + 1} minutes."
    assert verdict(other, total) == "different"


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("Rest for an hour and a quarter.", "Rest for 75 minutes.", True),
        ("Rest for an hour and a quarter.", "Rest for 90 minutes.", False),
        ("Use two and a half litres.", "Use 2.5 l.", True),
        ("The fair is from 3 to 5 May.", "The fair is from 3 May to 5 May.", True),
        ("The fair is from May 3 to 5.", "The fair is from 3 to 5 May.", True),
        ("The fair is from 3 to 5 May.", "The fair is from 3 to 6 May.", False),
        ("Take 500 µg of it.", "Take 0.5 mg of it.", True),
        ("Take 500 µg of it.", "Take 500 mg of it.", False),
        ("Come at a quarter to nine in the evening.", "Come at 20:45.", True),
        ("We close at noon.", "We close at 12:00 pm.", True),
        ("The gate closes at 12 am.", "The gate closes at 0:00.", True),
        ("The gate closes at 12 am.", "The gate closes at noon.", False),
        ("Due on 5 May.", "Due on 5 May 2024.", True),
        ("Due on 5 May 2023.", "Due on 5 May 2024.", False),
        ("Due on 31/12/2024.", "Due on 31 December 2024.", True),
        ("Come at half past 20.", "Come at 20:30.", True),
        ("Buy 2.50 kg of rice.", "Buy 2.5 kg of rice.", True),
        ("Buy 2.50 kg flour.", "Buy 2.5 kg flour.", True),
        ("The bags weigh 5 kg and 3 kg.", "The bags weigh 8 kg.", False),
    ],
)
def test_quantities_and_dates_in_words(first, second, same):
    assert verdict(first, second) == ("same" if same else "different")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Pay by 02/03/2025.", "Pay by 2 March 2025."),
        ("Come at 6.", "Come at 6 pm."),
        ("Come at 6:30.", "Come at 6:30 am."),
        ("Read part 3/6.", "Read part 1/2."),
        ("It weighs 5 pounds.", "It weighs 5 lb."),
        ("Turn it by 30 degrees.", "Turn it by 30 °C."),
        ("Run 5 miles.", "Run 8 km."),
        ("Send it to the board of Polish.", "Send it to the board of polish."),
    ],
)
def test_two_readings_beside_one_are_unsure(first, second):
    judgement = ws.guard(first, second)
    assert (judgement.verdict, judgement.kind) == ("unsure", judgement.kind)
    assert verdict(first, second) == "unsure"


QUESTIONS = ["Why", "When", "Where"]
VERBS = ["charge a fee", "accept cards", "sell tea", "open on Sunday", "answer the phone"]


@pytest.mark.parametrize(("word", "verb"), [*itertools.product(QUESTIONS, VERBS)])
def test_a_negated_question_is_another_question(word, verb):
    assert verdict(f"{word} don't you {verb}?", f"{word} do you {verb}?") == "different"
    assert verdict(f"{word} don't you {verb}?", f"{word} do you not {verb}?") == "same"


@pytest.mark.parametrize("verb", VERBS)
def test_a_tag_at_the_end_negates_nothing(verb):
    assert verdict(f"Do you {verb}?", f"Don't you {verb}?") != "same"
    assert verdict(f"You {verb}, don't you?", f"You {verb}, right?") == "same"


@pytest.mark.parametrize("word", ["only", "even", "just", "nearly", "almost"])
def test_a_focus_word_before_another_word_is_unsure(word):
    assert verdict(f"{word} members may vote.", f"Members may {word} vote.") == "unsure"
    assert verdict(f"{word.title()} members vote.", f"{word} members vote") == "same"
    assert verdict(f"Members {word} vote.", "Members vote.") != "same"


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ("The nurse called the doctor.", "The doctor was called by the nurse.", "same"),
        ("The nurse called the doctor.", "The nurse was called by the doctor.", "different"),
        ("The nurse called the doctor.", "The doctor called the nurse.", "different"),
        ("The nurse called on Friday.", "The nurse was called on Friday.", "unsure"),
        ("It was mended by Friday.", "Friday mended it.", "unsure"),
        ("Was the fee paid by Anna?", "Did Anna pay the fee?", "same"),
    ],
)
def test_who_does_what(first, second, said):
    assert verdict(first, second) == said


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        ("Add a pinch of nutmeg.", "Add a pinch of cinnamon.", "replaced"),
        ("Add a pinch of nutmeg.", "Add a pinch of nutmeg slowly.", "added"),
        ("Come at 6 to the gate.", "Come at 6 pm to the gate.", "ambiguous"),
        ("Add a pinch of nutmeg.", "Season lightly with some nutmeg and pepper.", "reworded"),
        ("ประตูเปิด", "ประตูไม่เปิด", "ambiguous"),
    ],
)
def test_unsure_has_a_kind(first, second, kind):
    judgement = ws.guard(first, second)
    assert (judgement.verdict, judgement.kind) == ("unsure", kind)


@pytest.mark.parametrize(
    ("first", "second", "spans"),
    [
        ("Take the 3rd turn.", "Take the 2nd turn.", ("3rd", "2nd")),
        ("Pay two hundred euros.", "Pay $5 million.", ("two hundred euros", "$5 million")),
        ("It lasts 2 h 15 min.", "It lasts 3 h 15 min.", ("2 h 15 min", "3 h 15 min")),
        ("Come at half past six.", "Come at half past nine.", ("half past six", "half past nine")),
    ],
)
def test_a_span_is_the_whole_of_a_number_or_a_time(first, second, spans):
    judgement = ws.guard(first, second)
    assert [first[start:end] for start, end in judgement.first] == [spans[0]]
    assert [second[start:end] for start, end in judgement.second] == [spans[1]]


@pytest.mark.parametrize(
    ("base", "singular", "past"),
    [("carry", "carries", "carried"), ("watch", "watches", "watched"), ("need", "needs", "needed")],
)
def test_a_verb_agrees_with_its_subject_and_its_past_is_another_tense(base, singular, past):
    """Whatever the verb's ending: -s, -es or -ies."""
    assert verdict(f"She {singular} it.", f"She does {base} it.") == "same"
    assert verdict(f"She {singular} it.", f"She {past} it.") == "unsure"


@pytest.mark.parametrize("unit", ["KG", "KM"])
def test_the_case_of_a_unit_counts_unless_a_phrase_is_shouted(unit):
    assert verdict(f"5 {unit}", f"5 {unit.lower()}") == "unsure"
    assert verdict(f"SEND 5 {unit}", f"send 5 {unit.lower()}") == "same"


def test_scripts_without_spaces_are_named():
    for first, second in [("ประตูเปิด", "ประตูไม่เปิด"), ("ເປີດ", "ບໍ່ເປີດ"), ("បើក", "មិនបើក")]:
        assert "this script" in ws.guard(first, second).reason
        assert ws.guard(first, first).verdict == "same"


def test_the_guard_is_a_function_whatever_is_imported():
    code = (
        "import wordsens.evaluation.guard.bulk, wordsens as ws, sys; "
        "print(callable(ws.guard), ws.guard('on', 'off').verdict, "
        "*(name in sys.modules for name in ('torch', 'numpy', 'pandas', 'scipy')))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["True", "different", "False", "False", "False", "False"]
