"""The guard on labels: formatting is the same; another digit, operator or unit never is.

The labels are made (labels.py); the rules were chosen on one part of their kinds.
"""

import random
import re
from pathlib import Path

import pytest

import wordsens as ws
from tests.evaluation.labels import CHOSEN_ON, HELD_OUT, labels

PARTS = {"chosen on": CHOSEN_ON, "held out": HELD_OUT}


@pytest.fixture(scope="module", params=PARTS)
def made(request):
    return labels(PARTS[request.param], 5000, seed=0)


def test_another_digit_operator_or_unit_is_never_the_same(made):
    wrong = [
        (label.text, other)
        for label in made
        for other in label.changed
        if ws.guard(label.text, other).verdict == "same"
    ]
    assert not wrong, wrong[:5]


def test_formatting_is_the_same(made):
    verdicts = [
        ws.guard(label.text, variant).verdict for label in made for variant in label.variants
    ]
    assert verdicts.count("same") >= 0.9 * len(verdicts)
    assert verdicts.count("different") <= 0.01 * len(verdicts)


def test_labels_that_met_by_chance_are_not_the_same():
    made, rng = labels((*CHOSEN_ON, *HELD_OUT), 10_000, seed=1), random.Random(2)
    pairs = [(rng.choice(made).text, rng.choice(made).text) for _ in range(2000)]
    wrong = [(a, b) for a, b in pairs if a != b and ws.guard(a, b).verdict == "same"]
    assert not wrong, wrong[:5]


def test_the_order_of_two_labels_does_not_matter():
    for label in labels((*CHOSEN_ON, *HELD_OUT), 500, seed=3):
        for other in (*label.variants, *label.changed):
            assert ws.guard(label.text, other).verdict == ws.guard(other, label.text).verdict, (
                label.text,
                other,
            )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("mw-03", "mw-3"),
        ("a-17-086", "a-17-86"),
        ("007", "7"),
        ("unit03", "unit3"),
        ("Room 05", "Room 5"),
    ],
)
def test_leading_zeros_are_left_to_the_reader(first, second):
    assert ws.guard(first, second).verdict == "unsure"


@pytest.mark.parametrize(
    ("first", "second"),
    [("05 May 2024", "5 May 2024"), ("05:30 pm", "5:30 pm"), ("9.05 kg", "9.05kg")],
)
def test_leading_zeros_of_dates_and_times_are_formatting(first, second):
    assert ws.guard(first, second).verdict == "same"


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        ("HTTPS://X.org/a", "https://x.org/a", "same"),
        ("https://x.org/a", "https://x.org/A", "unsure"),
    ],
)
def test_the_case_of_a_path_counts_and_that_of_its_host_does_not(first, second, verdict):
    assert ws.guard(first, second).verdict == ws.guard(second, first).verdict == verdict


GUIDE = (Path(__file__).parents[2] / "docs" / "how-to" / "merge.md").read_text(encoding="utf-8")
MERGED, APART = (
    re.findall(r"^\| `(.+?)` \| `(.+?)` \|(.*)\|$", part, re.MULTILINE)
    for part in GUIDE.split("| must not merge |")
)


def test_the_tables_of_the_guide_are_read():
    assert len(MERGED) > 15 < len(APART)


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        *((first, second, "same") for first, second, _ in MERGED),
        *((a, b, said.strip()) for a, b, said in APART),
    ],
)
def test_a_row_of_the_merge_tables(first, second, verdict):
    assert ws.guard(first, second).verdict == ws.guard(second, first).verdict == verdict
