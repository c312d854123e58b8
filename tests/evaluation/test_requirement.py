"""Reading requirements: what is understood, and what is refused and never run."""

import re

import pytest
from tests.evaluation.stand_ins import bag_of_words, few_pairs

import wordsens as ws
from wordsens.evaluation.requirement import Requirement


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("negation.auc >= .5", ("negation", "auc", ">=", 0.5)),
        ("  my kind.v2.recall>0 ", ("my kind.v2", "recall", ">", 0)),
        ("all.auc_low < 1e-1", ("all", "auc_low", "<", 0.1)),
        ("Bedeutung.median_same <= -1.25", ("Bedeutung", "median_same", "<=", -1.25)),
    ],
)
def test_what_is_understood(text, parts):
    read = Requirement.read(text)
    assert (read.kind, read.field, read.sign, read.bound) == parts


@pytest.mark.parametrize(
    "text",
    [
        "", "negation", "negation.auc", "negation.auc >= ", "auc >= .5", "negation.auc = .5", "negation.auc >= nan",
        "negation.auc >= __import__('os')", "negation.auc >= .5 or True", "negation.auc >= 1 >= 0",
        "negation.auc == .5",
    ],
)  # fmt: skip
def test_what_is_refused(text):
    with pytest.raises(ws.InputError, match=re.escape("cannot be read; write it as KIND.FIELD >= NUMBER")):
        Requirement.read(text)


def test_one_failure_for_every_kind_that_fails():
    pairs = few_pairs()
    result = ws.check(bag_of_words, pairs, requirements=["all.auc >= .9", "all.pairs >= 1", "antonym.recall >= 0"])
    assert [failure.split(" is ")[0] for failure in result.failures] == ["negation.auc", "antonym.auc"]


def test_where_nothing_is_left_a_recall_is_none_and_counts_as_zero():
    rows = [("a", "it is on now", "it is off now", False), ("p", "yes", "indeed so", True)]
    failing = ws.check(bag_of_words, rows, requirements=["a.recall > 0", "a.threshold > -1"]).failures
    assert failing == (
        "a.recall is none (no threshold separates), required > 0",
        "a.threshold is none (no threshold separates), required > -1",
    )
