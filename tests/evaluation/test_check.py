"""What a check finds of models that are blind in a known way, and of one that is not; figures
against plain NumPy."""

import functools
import math

import numpy as np
import pytest
import torch

import wordsens as ws
from tests.evaluation.stand_ins import Oracle, bag_of_words, deaf_to_negations, few_pairs
from wordsens.display.view import Table
from wordsens.evaluation.check import FIELDS, KIND_FIELDS
from wordsens.evaluation.pairs import SIMILARITY_OF
from wordsens.evaluation.requirement import Requirement
from wordsens.models.model_files import minilm_folder
from wordsens.models.pairs import FunctionPairModel

PAIRS = few_pairs()


def cosines(encode, pairs):
    """From nothing but the pairs and the function."""
    first, second = (
        np.asarray(encode([getattr(pair, side) for pair in pairs]), float)
        for side in ("first", "second")
    )
    return (
        (first * second).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
    ).round(12)


def area(opposite, same):
    return np.mean((opposite[:, None] < same) + 0.5 * (opposite[:, None] == same))


def figures_by_numpy(encode, pairs, keep):
    """The threshold, and every kind's AUC and false hits, from the pairs and a function alone."""
    values = cosines(encode, pairs)
    kinds, same = np.array([pair.kind for pair in pairs]), np.array([pair.same for pair in pairs])
    near = values[same & (kinds != "paraphrase")]
    threshold = np.sort(near)[math.floor((1 - keep) * len(near) + 1e-9)]
    numbers = {"threshold": threshold}
    for kind in dict.fromkeys(kinds[~same]):
        opposite = values[kinds == kind]
        numbers |= {
            f"{kind}.auc": area(opposite, near),
            f"{kind}.false_hits": np.mean(opposite >= threshold),
        }
    return numbers


def figures(check):
    return {
        "threshold": check.threshold,
        **{
            f"{row.kind}.{name}": getattr(row, name).value
            for row in check.rows
            for name in ("auc", "false_hits")
        },
    }


def test_the_figures_are_those_of_ten_lines_of_numpy():
    result = ws.check(bag_of_words, PAIRS, keep=0.8)
    assert figures(result) == pytest.approx(figures_by_numpy(bag_of_words, PAIRS, 0.8), abs=1e-6)
    values, kinds = cosines(bag_of_words, PAIRS), np.array([pair.kind for pair in PAIRS])
    same = np.array([pair.same for pair in PAIRS])
    near, far = values[same & (kinds != "paraphrase")], values[kinds == "paraphrase"]
    assert (len(near), len(far)) == (25, 30)
    assert result.recall.value == np.mean(near >= result.threshold) >= 0.8
    assert [row.kind for row in result.rows] == ["negation", "antonym"]
    for row in result.rows:
        opposite = values[kinds == row.kind]
        assert row.auc_far.value == pytest.approx(area(opposite, far), abs=1e-6)
        for share in (row.auc, row.auc_far, row.false_hits):
            assert share.low <= share.value <= share.high
    assert result.recall.low < result.recall.value < result.recall.high
    for kind, row in result.near_duplicates.items():
        near = values[same & (kinds == kind)]
        assert (row.n, row.value) == (len(near), np.mean(near >= result.threshold))
        assert row.low <= row.value <= row.high
    assert sum(row.n for row in result.near_duplicates.values()) == 25


def test_the_area_of_a_length_is_that_against_near_duplicates_of_that_length():
    near = [pair for pair in ws.near_duplicates() if pair.length == "paragraph"]
    longer = [pair for pair in ws.read_pairs() if pair.kind == "negation"]
    pairs = [*near, *PAIRS, *(pair for pair in longer if pair.length != "question")]
    rows = {
        (row.kind, row.length): row for row in ws.check(bag_of_words, pairs, threshold=0.9).lengths
    }
    assert len(near) == 6
    for length in ("question", "paragraph"):
        chosen = [pair for pair in pairs if pair.length == length]
        values = cosines(bag_of_words, chosen)
        opposite = values[[pair.kind == "negation" for pair in chosen]]
        area_there = area(opposite, values[[pair.near for pair in chosen]])
        row = rows["negation", length]
        assert (row.pairs, row.auc.value) == (len(opposite), pytest.approx(area_there, abs=1e-6))
    assert rows["negation", "page"].auc is None  # no near-duplicate is that long


def test_pairs_at_the_threshold_pass_wherever_they_are_counted():
    """Scores in steps of .1, so that dozens of pairs stand at the threshold itself."""
    random = np.random.default_rng(0)
    scores = {(pair.first, pair.second): random.integers(5, 10) / 10 for pair in PAIRS}
    scorer = FunctionPairModel(
        lambda first, second: [scores.get(pair, 0.5) for pair in zip(first, second, strict=True)],
        name="steps",
    )
    result = ws.check(scorer, PAIRS, threshold=0.7)

    def share(chosen):
        passing = [scores[pair.first, pair.second] >= 0.7 for pair in PAIRS if chosen(pair)]
        return pytest.approx(sum(passing) / len(passing))

    assert sum(score == 0.7 for score in scores.values()) > 10
    assert result.recall.value == share(lambda pair: pair.near)
    assert result.false_hits.value == share(lambda pair: not pair.same)
    for row in result.rows:
        assert row.false_hits.value == share(
            lambda pair, kind=row.kind: not pair.same and pair.kind == kind
        )
    for kind, row in result.near_duplicates.items():
        assert row.value == share(lambda pair, kind=kind: pair.near and pair.kind == kind)
    for row in result.lengths:
        assert row.false_hits.value == share(
            lambda pair, row=row: (
                not pair.same and (pair.kind, pair.length) == (row.kind, row.length)
            )
        )
    assert all(row["hit"] == (row["similarity"] >= 0.7) for row in result.all_pairs())
    texts = [pair.first for pair in PAIRS[:8]]
    compared = ws.compare(scorer, scorer, texts, PAIRS, threshold=0.7)
    assert compared["recall.all kinds"].second == share(lambda pair: pair.near)
    assert compared["false_hits.all kinds"].second == share(lambda pair: not pair.same)


def test_a_bag_of_words_cannot_tell_roles():
    result = ws.check(bag_of_words, kinds=["role"], requirements=["role.false_hits <= .5"])
    row = result.kinds["role"]
    assert (row.false_hits, row.auc) == (1, pytest.approx(0, abs=0.05))
    assert not result.passed
    assert str(result).splitlines()[-1] == f"FAILED: {result.failures[0]}"
    worst = result.failing_pairs()
    assert len(worst) == 10
    assert all(one["hit"] and one["kind"] == "role" for one in worst)


def test_a_model_that_deletes_negations_lets_more_of_them_through():
    deaf, plain = (
        ws.check(model, kinds=["negation"]) for model in (deaf_to_negations, bag_of_words)
    )
    vectors = [note for note in deaf.notes if "the very same vector" in note]
    assert int(vectors[0].split()[0]) > 20 and not plain.notes
    assert deaf.kinds["negation"].auc < plain.kinds["negation"].auc


def test_a_model_that_sees_meaning_passes():
    result = ws.check(
        Oracle(PAIRS),
        PAIRS,
        requirements=["all.auc >= .99", "negation.false_hits <= 0", "recall >= .9"],
    )
    row = result.kinds["antonym"]
    assert (result.passed, result.failures) == (True, ())
    assert (row.auc, row.false_hits) == (1, 0)
    assert result.threshold == pytest.approx(1)
    assert "wrongly, 0 % [0, 9] of 24 opposites." in result.headline


def test_own_pairs_without_near_duplicates_use_the_shipped_ones_and_say_so():
    own = [("switch", "turn it on", "turn it off", False)]
    gate = ["recall >= .1", "threshold <= 1", "guarded_recall >= .1", "false_hits <= 1"]
    gate += ["switch.auc >= 0", "switch.pairs >= 1"]
    result = ws.check(bag_of_words, own, requirements=gate)
    assert int(result.scored.near.sum()) == len(ws.near_duplicates())
    assert "of the package's 306 near-duplicates" in result.answer[0]
    assert [each.requirement for each in result.unmet] == gate[:-1]
    allowed = ws.check(bag_of_words, own, requirements=gate, allow_package_pairs=True)
    assert allowed.passed and "of the package's 306 near-duplicates" in allowed.answer[0]
    # With a threshold of the user's own nothing of it rests on the package.
    own_threshold = ["threshold <= .9", "false_hits <= 1", "switch.guarded_false_hits <= 1"]
    given = ws.check(bag_of_words, own, threshold=0.9, requirements=own_threshold)
    assert given.passed
    assert "package" not in ws.check(bag_of_words, PAIRS).answer[0]
    # A file that the stand-ins were written to does not make them the user's.
    again = ws.check(bag_of_words, list(result.scored.pairs), requirements=gate)
    assert [each.requirement for each in again.unmet] == gate[:-1]


def test_a_model_that_scores_pairs_is_judged_by_its_scores():
    def shared_words(first, second):
        return [
            5.0 + len(set(one.split()) & set(two.split()))
            for one, two in zip(first, second, strict=True)
        ]

    scorer = FunctionPairModel(shared_words, name="shared words")
    result = ws.check(scorer, PAIRS)
    values = np.array(shared_words([pair.first for pair in PAIRS], [pair.second for pair in PAIRS]))
    assert np.array_equal(result.scored.values, values)
    # A score of 1 and more is no cosine of equal vectors.
    assert result.notes == ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep": 0}, r"`keep` \(=0\) must be a share from 0 to 1"),
        ({"threshold": float("nan")}, r"`threshold` \(=nan\) must be a finite number"),
        ({"prompt_names": ["query"]}, "bag_of_words has no prompts"),
        ({"kinds": ["rolle"]}, "must be one of negation, antonym"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(ws.InputError, match=message):
        ws.check(bag_of_words, PAIRS, **options)


def read(text):
    return Requirement.read_all(text, KIND_FIELDS, "negation.auc >= .5", FIELDS)[0]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("  my kind.v2.false_hits<0.2 ", ("my kind.v2", "false_hits", "<", 0.2)),
        ("all.auc_low < 1e-1", ("all", "auc_low", "<", 0.1)),
        ("Bedeutung.auc_far <= -1.25", ("Bedeutung", "auc_far", "<=", -1.25)),
        ("recall >= .9", ("", "recall", ">=", 0.9)),
    ],
)
def test_what_is_understood(text, parts):
    one = read(text)
    assert (one.kind, one.field, one.sign, one.bound) == parts


def test_requirements_on_all_opposites_and_with_the_guard():
    requirements = [
        "false_hits <= .1",
        "guarded_false_hits <= .5",
        "guarded_recall >= .01",
        "negation.guarded_false_hits > .1",
    ]
    result = ws.check(deaf_to_negations, few_pairs(), requirements=requirements)
    measured = result.scored
    hits = measured.values >= result.threshold
    judged = [ws.guard(pair.first, pair.second).verdict != "different" for pair in measured.pairs]
    assert result.false_hits.value == hits[measured.opposite].mean() > 0.1
    assert result.guarded()["all_false_hits"] == (hits & judged)[measured.opposite].mean()
    failing = [each.requirement for each in result.unmet]
    assert failing == ["false_hits <= .1", "negation.guarded_false_hits > .1"]
    assert not any(row["same"] for row in result.failing_pairs())
    assert result.failing_pairs()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "negation.auc >= ",
        "negation.auc = .5",
        "negation.auc >= nan",
        "negation.auc >= __import__('os')",
        "negation.auc >= 1 >= 0",
        "auc >= .5",
        "negation.recall >= .5",
    ],
)
def test_requirements_that_cannot_be_read_or_name_a_field_of_another_place(text):
    with pytest.raises(
        ws.InputError,
        match=r"cannot be read; write it as KIND\.FIELD >= NUMBER or FIELD|the field of",
    ):
        read(text)


def test_one_failure_for_every_kind_that_fails():
    requirements = ["all.auc >= .99", "all.pairs >= 1", "recall >= .99", "antonym.false_hits >= 0"]
    result = ws.check(bag_of_words, few_pairs(), requirements=requirements)
    assert [each.kind for each in result.unmet] == ["negation", "antonym", ""]
    assert [failure.split(" is ")[0] for failure in result.failures] == [
        "negation.auc",
        "antonym.auc",
        "recall",
    ]
    assert any(row["same"] and not row["hit"] for row in result.failing_pairs())


@functools.cache
def sentence_transformer():
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(minilm_folder()), device="cpu")


@pytest.mark.parametrize("every", [pytest.param(True, marks=pytest.mark.slow), False])
def test_the_figures_are_those_of_sentence_transformers(every):
    short = [pair for pair in ws.read_pairs() if len(pair.first.split()) <= 12]
    pairs = [
        pair
        for kind in ("negation", "entity")
        for pair in [one for one in short if one.kind == kind][:20]
    ]
    pairs += ws.near_duplicates()[::10]
    result = ws.check("minilm", None if every else pairs)
    expected = figures_by_numpy(sentence_transformer().encode, list(result.scored.pairs), 0.9)
    assert figures(result) == pytest.approx(expected, abs=1e-6)
    assert result.kinds["entity"].auc > result.kinds["negation"].auc


def test_the_headline_and_every_table_have_the_worst_kind_first_with_the_same_pair():
    swapped = (
        "role",
        "Is there a train from Vienna to Prague?",
        "Is there a train from Prague to Vienna?",
        False,
    )
    pairs = [pair for pair in few_pairs() if pair.kind != "role"] + ws.read_pairs([swapped])
    result = ws.check(bag_of_words, pairs, threshold=0.999)
    assert result.rows[0].kind == "role" and result.kinds["role"].false_hits == 1
    shares = [row.false_hits.value for row in result.rows]
    assert shares == sorted(shares, reverse=True)
    assert (
        "Worst kind: role, 100 % of 1, such as 'Vienna' and 'Prague' exchanged in"
        in result.headline
    )
    kinds, *_, opposites = [part for part in result.view().parts if isinstance(part, Table)]
    assert (
        list(kinds.columns["kind"])
        == list(opposites.columns["kind"])
        == [row.kind for row in result.rows]
    )
    texts = [opposites.columns[name][0] for name in ("first", "second")]
    assert [part for text in texts for part in text.parts] == [
        "Vienna",
        "Prague",
        "Prague",
        "Vienna",
    ]


def test_the_curves_are_the_shares_that_a_threshold_accepts():
    result = ws.check(bag_of_words, PAIRS)
    (axes,) = result.plot().axes
    values, near = result.scored.values, result.scored.near
    for bars, members in zip(axes.containers, (near, result.scored.opposite), strict=True):
        thresholds, accepted = bars.lines[0].get_data()
        shares = [(values[members] >= edge).mean() for edge in thresholds]
        assert accepted.tolist() == pytest.approx(shares)


def test_the_tables_of_kinds_name_chance_by_the_interval_and_begin_with_what_is_lost():
    rows = [
        (kind, f"{number} {first}", f"{number} {second}", kind in ("typo", "same"))
        for number in range(40)
        for kind, first, second in (
            ("role", "ab cd ef", "cd ab ef"),
            ("topic", "ab cd ef", "uv wx yz"),
            ("typo", "lift up now", "liftt up now"),
            ("same", "lift up now", "lift up now!"),
        )
    ]
    result = ws.check(bag_of_words, rows, threshold=0.99)
    kinds, near, *_ = [part for part in result.view().parts if isinstance(part, Table)]
    said = dict(zip(kinds.columns["kind"], kinds.columns["above chance"], strict=True))
    assert said == {"role": "no, worse", "topic": "yes"}
    accepted = [share.value for share in near.columns["accepted"]]
    assert accepted == [0, 1] and near.columns["kind"] == ["typo", "same"]


def test_what_was_left_out_is_in_the_document_and_the_seed_moves_an_interval():
    repeated = [*PAIRS, PAIRS[0]]
    document = ws.check(bag_of_words, repeated).to_dict()
    assert any("1 row left out" in note for note in document["notes"])
    first, again, other = (
        ws.check(bag_of_words, PAIRS, seed=seed).rows[0].false_hits for seed in (0, 0, 1)
    )
    assert first == again != other


def test_all_pairs_begin_with_the_opposites_most_alike_and_end_with_the_most_alike_of_one_meaning():
    rows = ws.check(bag_of_words, PAIRS).all_pairs()
    opposites = [row["similarity"] for row in rows if not row["same"]]
    same = [row["similarity"] for row in rows if row["same"]]
    assert [row["same"] for row in rows] == [False] * len(opposites) + [True] * len(same)
    assert opposites == sorted(opposites, reverse=True) and same == sorted(same)


@pytest.mark.parametrize(("name", "order"), [("euclidean", 2), ("manhattan", 1)])
def test_a_distance_is_a_negative_similarity(name, order):
    first, second = torch.randn(2, 5, 7, generator=torch.Generator().manual_seed(0)).double()
    found = SIMILARITY_OF[name](first, second)
    expected = -np.linalg.norm(first.numpy()[:, None] - second.numpy(), ord=order, axis=2)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)
