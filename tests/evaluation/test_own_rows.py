"""Headline numbers come from the user's own rows: whatever their kinds, order, case or repetition;
what was left out or replaced is said in the first line."""

from dataclasses import replace

import numpy as np
import pytest

import wordsens as ws
from tests.evaluation.stand_ins import bag_of_words, deaf_to_negations, few_pairs
from wordsens.findings.check import cases
from wordsens.evaluation.near_misses import near_misses
from wordsens.text.pairs import PACKAGE, Pair

OWN = [
    *(
        Pair("switch", f"How do I open door {n}?", f"How do I shut door {n}?", False)
        for n in range(40)
    ),
    *(Pair("where", f"Where is door {n}?", f"Please, where is door {n}?", True) for n in range(12)),
    *(Pair("key", f"I need a key for door {n}.", f"Door {n}: key needed.", True) for n in range(8)),
]


def numbers(result):
    whole = result.threshold, result.recall.value, result.false_hits.value
    return *whole, *(row.auc.value for row in result.rows)


@pytest.mark.parametrize("kind", ["paraphrase", "synonym", "negation", "all the same"])
def test_no_kind_of_a_row_that_means_the_same_is_reserved(kind):
    """Recall by NumPy, and the same numbers under any name."""
    named = [replace(pair, kind=kind) if pair.same else pair for pair in OWN]
    result = ws.check(bag_of_words, named, keep=0.7)
    assert numbers(result) == numbers(ws.check(bag_of_words, OWN, keep=0.7))
    vectors = [bag_of_words([pair.first, pair.second]) for pair in OWN if pair.same]
    cosines = np.array([a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in vectors])
    assert result.recall.value == np.mean(cosines.round(12) >= result.threshold)
    assert result.near_duplicates[kind].n == 20
    calibrated = ws.calibrate(bag_of_words, named, 0.1)
    assert calibrated.point == ws.calibrate(bag_of_words, OWN, 0.1).point
    assert "package" not in result.answer[0] + calibrated.answer[0]


def test_far_paraphrases_are_those_that_a_column_marks():
    far = [replace(pair, columns={"set": "far"}) if pair.kind == "key" else pair for pair in OWN]
    result = ws.check(bag_of_words, far)
    assert (result.scored.near.sum(), result.scored.far.sum()) == (12, 8)
    own = ws.read_pairs()
    assert {pair.kind for pair in own if pair.same and not pair.near} == {"paraphrase"}


@pytest.mark.parametrize(
    "turned",
    [
        lambda pair: pair,
        lambda pair: replace(pair, first=pair.second, second=pair.first),
        lambda pair: replace(pair, first=f"  {pair.first.replace(' ', '  ')} "),
        lambda pair: replace(pair, kind="another"),
    ],
)
def test_a_pair_counts_once_however_often_and_in_whatever_order_it_is_given(turned):
    repeated = [*OWN, *map(turned, OWN)]
    once, twice = (ws.check(bag_of_words, pairs) for pairs in (OWN, repeated))
    assert numbers(once) == numbers(twice)
    assert "60 rows left out, with the texts of another row" in twice.answer[0]
    few, many = (ws.calibrate(bag_of_words, pairs, 0.05) for pairs in (OWN, repeated))
    # 40 opposites are too few for 5 %, however often each of them is given.
    assert few.point == many.point and many.threshold is None


def test_a_pair_with_both_labels_is_refused_with_both_places(tmp_path):
    path = tmp_path / "own.csv"
    rows = ["first,second,same", "turn it on,turn it off,no", "it works,it runs,yes"]
    path.write_text("\n".join([*rows, "turn it off,turn it on,yes"]))
    with pytest.raises(ws.InputError, match=r"own\.csv:2 and own\.csv:4: one pair .* both labels"):
        ws.read_pairs(path)


def test_calibrate_promises_nothing_on_drafted_opposites(tmp_path):
    texts = [f"How do I enable sync on device {n}?" for n in range(60)]
    drafts = near_misses(texts)
    ws.write_pairs(drafts, tmp_path / "drafts.csv")
    again = ws.read_pairs(tmp_path / "drafts.csv")
    same = [pair for pair in OWN if pair.same]
    for pairs in (drafts, again, [*again, *same]):
        with pytest.raises(ws.InputError, match=r"drafted by rule .* different questions"):
            ws.calibrate(bag_of_words, pairs, 0.1, guard=True)
    mixed, alone = (ws.calibrate(bag_of_words, pairs, 0.1) for pairs in ([*again, *OWN], OWN))
    assert mixed.point == alone.point
    assert f"{len(drafts)} drafted opposites left out" in mixed.answer[0]


@pytest.mark.parametrize(
    ("requirement", "side"),
    [
        ("guarded_false_hits <= .01", False),
        ("topic.guarded_false_hits <= .1", False),
        ("guarded_recall >= .99", True),
        ("recall >= .99", True),
        ("false_hits <= .1", False),
    ],
)
def test_a_requirement_that_fails_names_the_pairs_behind_it(requirement, side):
    # The guard is unsure of these, and calls the negations and antonyms different.
    topics = [
        Pair("topic", f"How do I paint door {n}?", f"How do I sell door {n}?", False)
        for n in range(12)
    ]
    result = ws.check(
        deaf_to_negations, [*few_pairs(), *topics], requirements=[requirement], keep=0.7
    )
    rows = result.failing_pairs(most=100)
    assert len(result.unmet) == 1 and rows
    guarded, topic = "guarded" in requirement, requirement.startswith("topic")
    behind = set()
    for pair, value in zip(result.scored.pairs, result.scored.values, strict=True):
        refused = guarded and ws.guard(pair.first, pair.second).verdict == "different"
        hit = bool(value >= result.threshold and not refused)
        belongs = pair.near if side else not pair.same and (not topic or pair.kind == "topic")
        if belongs and hit is not side:
            behind.add((pair.first, pair.second))
    assert {(row["first"], row["second"]) for row in rows} == behind
    if guarded:
        assert all(row["guard"] == ws.guard(row["first"], row["second"]).verdict for row in rows)
    (case,) = cases(result).values()
    assert len(case) == 1 + min(10, len(behind))


def test_stand_ins_of_the_package_keep_their_mark():
    result = ws.check(bag_of_words, [pair for pair in OWN if not pair.same])
    near = [pair for pair in result.scored.pairs if pair.same]
    assert {pair.columns["origin"] for pair in near} == {"package"}
    assert {pair.where for pair in near} == {PACKAGE}


def marked(pair, **columns):
    return replace(pair, columns=columns)


@pytest.mark.parametrize(("column", "value"), [("Origin", "Draft"), ("origin ", " DRAFT ")])
def test_marks_are_read_in_any_case(column, value):
    drafts = [marked(pair, **{column: value}) for pair in OWN if not pair.same]
    with pytest.raises(ws.InputError, match="drafted by rule"):
        ws.calibrate(bag_of_words, [*drafts, *(pair for pair in OWN if pair.same)], 0.1)
    far = [marked(pair, Set="Far") if pair.kind == "key" else pair for pair in OWN]
    assert ws.check(bag_of_words, far).scored.near.sum() == 12


def test_other_marks_of_the_users_change_nothing():
    rows = [marked(pair, origin="package", set="train") for pair in OWN]
    assert numbers(ws.check(bag_of_words, rows)) == numbers(ws.check(bag_of_words, OWN))
    drafted_near = [marked(pair, origin="draft") if pair.same else pair for pair in OWN]
    result = ws.calibrate(bag_of_words, drafted_near, 0.1)
    assert result.point == ws.calibrate(bag_of_words, OWN, 0.1).point
    assert "left out" not in result.answer[0]


def test_a_corrected_stand_in_is_the_users_own():
    result = ws.check(bag_of_words, [pair for pair in OWN if not pair.same])
    mine = [
        replace(pair, second=f"{pair.second} Thank you.", where="own.csv:1") if pair.same else pair
        for pair in result.scored.pairs[:60]
    ]
    again = ws.check(bag_of_words, mine)
    assert not again.scored.has_stand_ins
    assert again.scored.near.sum() == 20
    # Those that were left as they are go where there are rows of the user's.
    both = ws.check(bag_of_words, [*mine, *result.scored.pairs[60:]])
    assert both.scored.near.sum() == 20
    assert "286 near-duplicates of the package left out beside yours" in both.answer[0]


def test_a_real_row_comes_before_its_draft_and_a_near_one_before_a_far_one():
    opposites = [pair for pair in OWN if not pair.same]
    drafts = [marked(pair, origin="draft") for pair in opposites]
    far = [marked(pair, set="far") for pair in OWN if pair.same]
    for rows in ([*OWN, *drafts, *far], [*drafts, *far, *OWN]):
        assert (
            ws.calibrate(bag_of_words, rows, 0.1).point
            == ws.calibrate(bag_of_words, OWN, 0.1).point
        )


def test_lost_near_duplicates_are_named_for_what_they_are():
    opposites = [pair for pair in OWN if not pair.same]
    far = [marked(pair, set="far") for pair in OWN if pair.same]
    assert "and not set = far" in ws.check(bag_of_words, [*opposites, *far]).answer[0]
    rows = [("k", "turn it on", "turn it off", ""), ("k", "it is on", "it's on", "yes")]
    result = ws.check(bag_of_words, rows)
    assert "1 row with an empty `same` counted as opposites" in result.answer[0]


@pytest.mark.parametrize("seed", range(4))
def test_the_threshold_that_is_printed_keeps_what_it_says(seed):
    noise = np.random.default_rng(seed).normal(size=(4096, 8))
    result = ws.check(lambda texts: bag_of_words(texts) @ noise, OWN)
    printed = float(result.headline.removeprefix("At threshold ").split(",")[0])
    assert printed <= result.threshold
    at_it = ws.check(lambda texts: bag_of_words(texts) @ noise, OWN, threshold=printed)
    assert (at_it.recall, at_it.false_hits.value) == (result.recall, result.false_hits.value)
