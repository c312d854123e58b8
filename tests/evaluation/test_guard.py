"""The guard: which near-duplicates are the same, which are not, and where it says that it does not
know."""

import csv
import re
import subprocess
import sys
import unicodedata
from importlib.resources import files
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wordsens as ws
from wordsens.evaluation.guard.judge import MEASURED

_FILE = files("wordsens.text").joinpath("shipped/near_duplicates.csv").read_text(encoding="utf-8")


def rows(name):
    with (Path(__file__).parent / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


PAIRS = [tuple(row.values()) for row in rows("guard_pairs.csv")]
REWORDED = rows("guard_reworded.csv")
ALIKE = rows("guard_alike.csv")
PARTS = ["tuning", "held out", "another writer", "third writer", "blind"]
SENTENCES = [
    row[side] for row in csv.DictReader(_FILE.splitlines()) for side in ("first", "second")
]


@pytest.mark.parametrize(("verdict", "kind", "first", "second"), PAIRS)
def test_the_verdict_on_a_pair_in_either_order(verdict, kind, first, second):
    """guard_pairs.csv: "not the same" is different or unsure."""
    judgement, other = ws.guard(first, second), ws.guard(second, first)
    assert (judgement.verdict == verdict) == (verdict != "not the same"), judgement.reason
    assert judgement.verdict != "same" or verdict == "same"
    assert judgement.kind == kind or verdict != "different"
    assert other.verdict == judgement.verdict


def verdicts(meaning, part):
    """The verdicts on the pairs of guard_reworded.csv, of which those of the part "blind" were
    written by someone who saw no rule, and read once, after the rules."""
    return [
        ws.guard(pair["first"], pair["second"]).verdict
        for pair in REWORDED
        if (pair["meaning"], pair["part"]) == (meaning, part)
    ]


@pytest.mark.parametrize("part", PARTS)
def test_the_same_in_other_words_is_seldom_called_different(part):
    near = verdicts("same", part)
    assert len(near) >= 30
    assert near.count("different") <= 0.06 * len(near)
    assert near.count("same") >= 0.6 * len(near)


@pytest.mark.parametrize("part", PARTS)
def test_an_opposite_is_never_called_the_same(part):
    opposites = verdicts("different", part)
    assert len(opposites) >= 30
    assert "same" not in opposites
    assert opposites.count("different") >= 0.5 * len(opposites)


@pytest.mark.parametrize(("part", "share"), [("tuning", 0.01), ("blind", 0.035)])
def test_pairs_made_to_look_the_same_seldom_are(part, share):
    """guard_alike.csv: pairs of which a word, a comma or a reading changes the meaning."""
    judged = [
        ws.guard(pair["first"], pair["second"]).verdict
        for pair in ALIKE
        if (pair["part"], pair["right"]) == (part, "not same")
    ]
    assert len(judged) > 80
    assert judged.count("same") <= share * len(judged)


def test_what_is_published_was_counted():
    opposites, near = verdicts("different", "blind"), verdicts("same", "blind")
    said = [int(number) for number in re.findall(r"\d+", MEASURED)]
    counts = [opposites.count("different"), len(opposites), near.count("different"), len(near)]
    assert said == [len(opposites) + len(near), *counts]


def test_reworded_pairs_in_either_order():
    for pair in [*REWORDED, *ALIKE]:
        assert (
            ws.guard(pair["first"], pair["second"]).verdict
            == ws.guard(pair["second"], pair["first"]).verdict
        ), pair


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_spans_are_of_the_text_as_it_was_given(form):
    first, second = (
        unicodedata.normalize(form, f"The café on Ålgatan is {state}.")
        for state in ("open", "closed")
    )
    judgement = ws.guard(first, second)
    assert [first[start:end] for start, end in judgement.first] == ["open"]
    assert [second[start:end] for start, end in judgement.second] == ["closed"]


def test_a_second_opinion_is_asked_where_the_rules_are_unsure():
    asked = []

    def opinion(first, second):
        asked.append((first, second))
        return 0.95 if "cinnamon" in second else 0.02 if "salt" in second else 0.5

    judge = ws.Guard(second_opinion=opinion)
    assert judge("It is on.", "It is off.").verdict == "different"
    assert judge("It is on.", "It's on").verdict == "same"
    assert not asked
    assert [
        judge("Add nutmeg.", f"Add {spice}.").verdict for spice in ("cinnamon", "salt", "pepper")
    ] == [
        "same",
        "different",
        "unsure",
    ]
    assert "0.95" in judge("Add nutmeg.", "Add cinnamon.").reason


@pytest.mark.parametrize(
    ("probability", "verdict"),
    [(0.25, "different"), (0.26, "unsure"), (0.74, "unsure"), (0.75, "same")],
)
def test_a_second_opinion_is_sure_at_its_bounds_too(probability, verdict):
    judge = ws.Guard(second_opinion=lambda first, second: probability, sure=0.75)
    assert judge("Add nutmeg.", "Add cinnamon.").verdict == verdict


@pytest.mark.parametrize(
    "text",
    [
        "",
        "!?...",
        "👍🏽",
        "\ud800 \udfff",
        "\x00",
        "1e999",
        "31/02/2024 99:99 10/0",
        "1.2.3.4",
        "٣",
        "9" * 5000,
        "a'" * 999,
    ],
)
def test_hostile_texts_are_judged(text):
    assert ws.guard(text, text).verdict == "same"
    assert ws.guard(text, "The lift is not working today.").verdict != "same"


def lines_run(unit, words):
    """Lines of Python that judging two texts of so many words runs, the second in the other
    order."""
    first, second = (
        " ".join(unit.format(k) for k in order)
        for order in (range(words), reversed(range(words - 1)))
    )
    count = 0

    def step(frame, event, argument):
        nonlocal count
        count += event == "line"
        return step

    before = sys.gettrace()
    sys.settrace(step)
    try:
        ws.guard(first, second)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(
    "unit", ["not", "open the door before 5 pm", "a-", "1.", "'", "w{}", "]!", "1 000"]
)
def test_a_text_eight_times_as_long_takes_eight_times_as_much_work(unit):
    """A quadratic step would make it 64 times."""
    ws.guard("warm", "up")
    assert lines_run(unit, 1600) < 12 * lines_run(unit, 200)


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_the_order_of_the_two_texts_does_not_matter(data):
    words = data.draw(st.sampled_from(SENTENCES)).split()
    others = data.draw(st.permutations(words)) + data.draw(st.sampled_from(SENTENCES)).split()[:2]
    first, second = " ".join(words), " ".join(others[data.draw(st.integers(0, 2)) :])
    one, other = ws.guard(first, second), ws.guard(second, first)
    assert (one.verdict, one.kind) == (other.verdict, other.kind)


@given(st.text())
@settings(max_examples=300, deadline=None)
def test_a_text_is_the_same_as_itself_with_space_around_it(text):
    assert ws.guard(text, f"  {text}\t").verdict == "same"


def test_a_fresh_process_needs_no_torch():
    code = (
        "import sys, wordsens as ws; ws.guard('on', 'off'); print('torch' in sys.modules, "
        "'numpy' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "False"]


def test_wrong_input_is_refused():
    with pytest.raises(ws.InputError, match="sure"):
        ws.Guard(sure=0.5)
    with pytest.raises(ws.InputError, match="second"):
        ws.guard("one", cast(str, None))
    with pytest.raises(ws.InputError, match="second_opinion"):
        ws.Guard(second_opinion=lambda a, b: 2.0)("nutmeg", "cinnamon")


def test_a_judgement_has_no_truth_value():
    with pytest.raises(ws.InputError, match="compare its `verdict`"):
        bool(ws.guard("a b", "a not b"))
