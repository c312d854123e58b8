"""Reading requirements: what is understood, and what is refused and never run."""

import re

import pytest
from tests.evaluation.stand_ins import bag_of_words, few_pairs

import wordsens as ws
from wordsens.evaluation.check import FIELDS, KIND_FIELDS
from wordsens.evaluation.requirement import Requirement


def read(text):
    return Requirement.read(text, KIND_FIELDS, "negation.auc >= .5", FIELDS)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("negation.auc >= .5", ("negation", "auc", ">=", 0.5)),
        ("  my kind.v2.false_hits<0.2 ", ("my kind.v2", "false_hits", "<", 0.2)),
        ("all.auc_low < 1e-1", ("all", "auc_low", "<", 0.1)),
        ("Bedeutung.auc_far <= -1.25", ("Bedeutung", "auc_far", "<=", -1.25)),
        ("recall >= .9", ("", "recall", ">=", 0.9)),
        ("threshold<=0.95", ("", "threshold", "<=", 0.95)),
    ],
)
def test_what_is_understood(text, parts):
    one = read(text)
    assert (one.kind, one.field, one.sign, one.bound) == parts


@pytest.mark.parametrize(
    "text",
    [
        "", "negation", "negation.auc", "negation.auc >= ", "negation.auc = .5", "negation.auc >= nan",
        "negation.auc >= __import__('os')", "negation.auc >= .5 or True", "negation.auc >= 1 >= 0",
        "negation.auc == .5",
    ],
)  # fmt: skip
def test_what_is_refused(text):
    with pytest.raises(ws.InputError, match=re.escape("cannot be read; write it as KIND.FIELD >= NUMBER or FIELD")):
        read(text)


@pytest.mark.parametrize("text", ["auc >= .5", "negation.recall >= .5", "negation.accuracy >= .5"])
def test_a_field_of_another_place_is_named(text):
    with pytest.raises(ws.InputError, match="the field of"):
        read(text)


def test_one_failure_for_every_kind_that_fails():
    requirements = ["all.auc >= .99", "all.pairs >= 1", "recall >= .99", "antonym.false_hits >= 0"]
    result = ws.check(bag_of_words, few_pairs(), requirements=requirements)
    assert [failure.split(" is ")[0] for failure in result.failures] == ["negation.auc", "antonym.auc", "recall"]
    assert any(row["same"] and not row["hit"] for row in result.failing_pairs())
