"""Comparisons of two models, against plain encoding and against differences that are known."""

import copy
import itertools
import json
import re

import numpy as np
import pytest
import torch

import wordsens as ws
from tests.evaluation.stand_ins import bag_of_words, deaf_to_negations, few_pairs
from tests.maps.tiny_models import model_of, tokenizer
from wordsens.display.view import Table
from wordsens.evaluation.compare import Difference, changed_neighbours, matched_threshold
from wordsens.models.function import FunctionModel
from wordsens.models.load import as_model, as_pair_model
from wordsens.results import Estimate
from wordsens.text.english import kind_of
from wordsens.text.whole_words import without, word_spans

TEXTS = [review.text for review in ws.shipped_reviews()]
EFFORT = {"words_per_text": 6}
ENDS = (-0.04, -0.03, -0.02, -0.01, 0.0, 0.01, 0.02, 0.03, 0.04)


@pytest.fixture(scope="module")
def deaf():
    """A bag of words, and one that deletes every negation."""
    return ws.compare(bag_of_words, deaf_to_negations, TEXTS, few_pairs(), **EFFORT)


def row(low, high, p):
    middle = 0.0 if low is None or high is None else (low + high) / 2
    change = Estimate(middle, low, high, p=p)
    numbers = {"count": 60, "first": 0.5, "second": 0.5, "margin": 0.02}
    return Difference(part="check", name="negation", change=change, **numbers)


@pytest.mark.parametrize("p", [0.01, 0.05, 0.051, 1.0, None])
def test_a_row_differs_where_no_number_of_its_interval_is_within_the_margin(p):
    """And is excluded where all are; the test of all rows can only take a difference away."""
    for low, high in itertools.combinations_with_replacement(ENDS, 2):
        held = np.array([end for end in ENDS if low <= end <= high])
        within = np.abs(held) <= 0.02
        found = row(low, high, p)
        assert found.differs == (p is not None and p <= 0.05 and not within.any())
        assert found.excluded == within.all()
    for low, high in ((None, None), (None, 0.5), (0.5, None)):
        assert not row(low, high, 0.001).differs
        assert not row(low, high, 0.001).excluded


def test_two_copies_have_no_difference():
    found = ws.compare(bag_of_words, bag_of_words, TEXTS, few_pairs())
    assert not found.differs
    assert (found.apart, found.changed, found.passed) == (0.0, (), True)
    assert {row.change.value for row in found.rows} == {0.0}
    assert 0 <= found.threshold - found.second_threshold.value <= 1e-4


def test_no_verdict_rests_on_four_pairs_and_no_share_leaves_its_range():
    found = ws.compare(
        bag_of_words,
        deaf_to_negations,
        TEXTS[:12],
        few_pairs(opposites=4),
        requirements=["check.all.low >= -1"],
    )
    few = [row for row in found.rows if row.part == "check" and row.count < 6]
    assert {row.name for row in few} == {"negation", "antonym"}
    assert all((row.change.low, row.differs, row.excluded) == (None, False, False) for row in few)
    assert found["check.all kinds"].change.low is not None
    assert {each.kind for each in found.unmet} >= {"check.negation", "check.antonym"}
    shares = [row.change for row in found.rows if row.part in ("check", "false_hits", "recall")]
    known = [each for each in shares if each.low is not None]
    assert all(-1 <= each.low <= each.value <= each.high <= 1 for each in known)


def test_a_planted_difference_is_found_where_it_is(deaf):
    removals = {row.name for row in deaf.rows if row.differs and row.part == "removal"}
    assert "negation" in removals and "content word" not in removals
    assert deaf["removal.negation"].change.high < 0
    assert {row.part for row in deaf.rows if row.differs} <= {"check", "removal"}


def test_every_number_is_that_of_encoding_the_texts_again():
    """The mean over texts of each text's mean over its words of the kind."""
    texts = [" ".join(text.split()[:30]) for text in TEXTS[:20]]
    found = ws.compare(bag_of_words, deaf_to_negations, texts, "none", words_per_text=60)
    for encode, side in ((bag_of_words, "first"), (deaf_to_negations, "second")):
        means = []
        for text in texts:
            spans = [span for span in word_spans(text) if kind_of(text[slice(*span)]) == "negation"]
            own, *moved = np.asarray(encode([text, *(without(text, span) for span in spans)]))
            changes = [np.linalg.norm(each - own) / np.linalg.norm(own) for each in moved]
            if changes:
                means.append(np.mean(changes))
        row = found["removal.negation"]
        assert (row.count, getattr(row, side)) == (len(means), pytest.approx(np.mean(means)))


def test_the_other_order_is_the_same_comparison_with_the_signs_turned(deaf):
    back = ws.compare(deaf_to_negations, bag_of_words, TEXTS, few_pairs(), **EFFORT)
    for row in deaf.rows:
        other = back[row.key]
        if row.part in ("check", "removal"):
            assert other.change.value == pytest.approx(-row.change.value)
            assert other.change.low == pytest.approx(-row.change.high)
            assert other.differs == row.differs
    assert back["neighbours.nearest"].second == deaf["neighbours.nearest"].second


def test_a_transformer_and_its_rounded_weights():
    """4 bits move a tiny model's vectors; its second copy does not."""
    first, second = model_of("bert"), copy.deepcopy(model_of("bert"))
    with torch.no_grad():
        for weights in second.parameters():
            if weights.ndim == 2:
                step = weights.abs().amax(dim=1, keepdim=True).clamp_min(1e-9) / 7
                weights.copy_((weights / step).round() * step)
    models = [as_model((model, tokenizer())) for model in (first, copy.deepcopy(first), second)]
    texts = [
        f"the {noun} was {state} and the film {verb}"
        for noun in ("film", "plot", "end")
        for state in ("good", "not good", "bad")
        for verb in ("ended", "was long")
    ]
    same = ws.compare(models[0], models[1], texts, "none", **EFFORT)
    other = ws.compare(models[0], models[2], texts, "none", **EFFORT)
    assert (same.apart, same.differs) == (0.0, False)
    assert other.apart > 0
    assert same.identities[0] == same.identities[1] != other.identities[1]


def test_a_changed_neighbour_is_that_of_plain_cosines():
    generator = torch.Generator().manual_seed(0)
    drawn = [torch.randn(600, 4, generator=generator, dtype=torch.float64) for _ in range(2)]
    first = torch.nn.functional.normalize(drawn[0], dim=1)
    second = torch.nn.functional.normalize(drawn[0] + 0.02 * drawn[1], dim=1)
    texts = [f"text {number}" for number in range(600)]
    nearest, gained = [], []
    for units in (first, second):
        cosines = (units @ units.T).fill_diagonal_(-2)
        nearest.append(cosines.argmax(dim=1).tolist())
        gained.append(cosines)
    expected = {
        text: (texts[old], texts[new])
        for at, (text, old, new) in enumerate(zip(texts, *nearest, strict=True))
        if gained[0][at, old] - gained[0][at, new] > 1e-4
        or gained[1][at, new] - gained[1][at, old] > 1e-4
    }
    found = changed_neighbours(texts, first, second)
    assert {each.text: (each.old, each.new) for each in found} == expected
    assert 20 < len(expected) < 580
    margins = [min(each.first, -each.second) for each in found]
    assert margins == sorted(margins, reverse=True) and margins[0] > 0
    assert changed_neighbours(texts, first, first) == []


TAGGED = [f"<b>{review.text}" for review in ws.shipped_reviews()[:40]]
GATE = (
    "neighbours.nearest.second <= 0",
    "check.all.low >= -1",
    "removal.negation.differs <= 0",
    "all.count >= 5",
)


@pytest.fixture(scope="module")
def found():
    return ws.compare(bag_of_words, deaf_to_negations, TAGGED, few_pairs(), requirements=GATE)


def test_it_comes_back_from_a_file_and_shows_itself(found, tmp_path):
    found.save(tmp_path / "comparison")
    back = ws.Comparison.load(tmp_path / "comparison")
    assert back == found
    assert (back.answer, back["removal.negation"].differs) == (found.answer, True)
    assert len(found.table()) == len(found.rows)
    assert found.headline in " ".join(found.show().split())
    page = found._repr_html_()
    assert "&lt;b&gt;" in page and "<b>José" not in page
    document = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    differing = sum(row["differs"] for row in document["rows"])
    assert differing == sum(row.differs for row in found.rows) > 0
    with pytest.raises(KeyError, match="not a row of this comparison"):
        found["removal.zebra"]


def test_requirements_fail_with_what_was_found(found):
    assert {(each.requirement, each.kind) for each in found.unmet} >= {
        (GATE[0], "neighbours.nearest"),
        (GATE[2], "removal.negation"),
    }
    assert GATE[1] not in {each.requirement for each in found.unmet}


@pytest.mark.parametrize("threshold", [0.7, None])
def test_the_threshold_of_the_second_model_keeps_as_many_near_duplicates(threshold):
    pairs = few_pairs()

    def shifted(texts):
        """Another scale: every vector is drawn towards one direction."""
        return bag_of_words(texts) + 0.3

    found = ws.compare(bag_of_words, shifted, TAGGED, pairs, threshold=threshold)
    checks = [ws.check(model, pairs, threshold=threshold) for model in (bag_of_words, shifted)]
    near = [each.scored.values[each.scored.near] for each in checks]
    used, matched = found.threshold, found.second_threshold
    assert used == checks[0].threshold
    kept = int((near[0] >= used).sum())
    lowest = sorted(near[1])[len(near[1]) - kept]
    assert 0 <= lowest - matched.value <= 1e-4
    assert (near[1] >= matched.value).sum() == kept
    assert matched.low <= matched.value <= matched.high
    for part, members in (("recall", "near"), ("false_hits", "opposite")):
        row = found[f"{part}.all kinds"]
        for share, each, limit in (
            (row.first, checks[0].scored, used),
            (row.second, checks[1].scored, matched.value),
        ):
            assert share == (each.values[getattr(each, members)] >= limit).mean()
    kinds = {row.name: row.first for row in found.rows if row.part == "false_hits"}
    assert {row.kind: row.false_hits.value for row in checks[0].rows}.items() <= kinds.items()


def test_a_pair_that_the_second_model_alone_accepts_raises_its_share():
    """One opposite of ten is accepted by the second model alone: the change is +.1."""
    pairs = [("k", f"n{at} a", f"n{at} b", False) for at in range(10)]
    pairs += [("same", f"n{at} c", f"n{at} d", True) for at in range(10)]

    def scorer(lucky):
        def score(first, second):
            return [
                0.9 if one.endswith("c") or one == lucky else 0.1
                for one, _ in zip(first, second, strict=True)
            ]

        return as_pair_model(score)

    texts = [pair[1] for pair in pairs]
    found = ws.compare(scorer(""), scorer("n3 a"), texts, pairs, threshold=0.5)
    row = found["false_hits.k"]
    assert (row.first, row.second, row.change.value) == pytest.approx((0.0, 0.1, 0.1))
    assert -1 <= row.change.low < 0.1 < row.change.high
    assert found["recall.same"].change.value == 0


def test_where_nothing_could_be_compared_no_difference_is_denied():
    texts = ["the lift works", "turn it on", "he did not go", "ok", "yes", "so"]
    found = ws.compare(
        bag_of_words, deaf_to_negations, texts, "none", requirements=["removal.all.differs <= 0"]
    )
    assert [row.part for row in found.rows] == ["neighbours"] and not found.passed
    assert "Nothing could be compared" in found.answer[0]


def test_a_threshold_is_one_that_a_cosine_can_have():
    texts = [f"The {thing} is open." for thing in ("door", "lift", "road", "gate", "shop", "bank")]
    with pytest.raises(ws.InputError, match="must be a cosine"):
        ws.compare(bag_of_words, bag_of_words, texts, few_pairs(), threshold=1.6)


@pytest.mark.parametrize(
    "requirement", ["check.role.low >= 0", "recall.negation.first >= 0", "removal.verb.first >= 0"]
)
def test_a_requirement_on_a_row_that_cannot_be_is_refused(requirement):
    with pytest.raises(ws.InputError, match=r"the row of .* must be one of"):
        ws.compare(bag_of_words, bag_of_words, TEXTS, few_pairs(), requirements=[requirement])


def test_the_model_that_tells_fewer_opposites_apart_is_said_to():
    pairs = [
        (kind, f"b{number} the lift is not open", f"b{number} {other}", kind == "same")
        for number in range(40)
        for kind, other in (("negation", "the lift is open"), ("same", "the lift is not open!"))
    ]
    texts = [f"b{number} the lift is not open" for number in range(40)]
    found = ws.compare(bag_of_words, deaf_to_negations, texts, pairs)
    assert "deaf_to_negations tells fewer opposites from near-" in " ".join(found.answer)
    turned = ws.compare(deaf_to_negations, bag_of_words, texts, pairs)
    assert "bag_of_words tells more opposites from near-duplicates" in " ".join(turned.answer)


def test_the_kind_that_changed_most_is_named_first():
    def opposites(kind, number):
        other = "the lift is open" if kind == "most" or number % 2 else "a red boat sails"
        return kind, f"{kind}{number} the lift is not open", f"{kind}{number} {other}", False

    pairs = [opposites(kind, number) for kind in ("less", "most") for number in range(60)]
    pairs += [("same", f"b{n} it is not so", f"b{n} it is not so!", True) for n in range(60)]
    texts = [pair[1] for pair in pairs]
    found = ws.compare(bag_of_words, deaf_to_negations, texts, pairs)
    said = " ".join(found.answer)
    assert 0 < said.index("most, ") < said.index("less")
    for table in found.view().parts:
        if hasattr(table, "columns") and "differs" in table.columns:
            rows = zip(table.columns["differs"], table.columns["change"], strict=True)
            order = [(not differs, -abs(change.value)) for differs, change in rows]
            assert order == sorted(order)


def test_a_text_that_one_model_cannot_be_asked_about_shifts_no_number():
    """Six texts of the second model lose their first text: the others keep their own numbers."""

    texts = [f"{name} lift was not open in hall {n}" for n, name in enumerate("abcdefghij")]
    whole = ws.compare(bag_of_words, deaf_to_negations, texts, "none")

    def shortened(texts):
        """It answers for the first text as a whole, and for no text without one of its words."""
        if any(text != whole_text and text in cut for text in texts):
            return [[float("nan")]] * len(texts)
        return deaf_to_negations(texts)

    whole_text = texts[0]
    words = whole_text.split()
    cut = {" ".join(words[:at] + words[at + 1 :]) for at in range(len(words))}
    found = ws.compare(bag_of_words, shortened, texts, "none")
    row, expected = found["removal.negation"], whole["removal.negation"]
    assert (row.count, expected.count) == (9, 10)
    assert row.first == pytest.approx(expected.first) and row.second == expected.second == 0
    assert "no word was deleted from 1 text" in found.answer[0]


def test_tables_of_counts_are_counts_and_thresholds_are_not_rounded_up():
    found = ws.compare(bag_of_words, deaf_to_negations, TAGGED, few_pairs(), threshold=0.70004)
    tables = [part for part in found.view().parts if isinstance(part, Table)]
    assert len(tables) > 2
    counts = [table.texts().get("pairs", []) for table in tables]
    assert "%" not in "".join(itertools.chain(*counts))
    sentence = found.answer[1]
    first, second = (
        float(sentence.split(f"with the {name}")[0].split()[-1]) for name in ("first", "second")
    )
    assert first <= found.threshold and second <= found.second_threshold.value
    low, high = (float(end) for end in re.findall(r"95 %: (\S+) to (\S+)\)", sentence)[0])
    assert low <= second <= high


def test_texts_are_cut_to_what_both_models_read_and_the_first_line_says_so():
    class Short(FunctionModel):
        def read_span(self, text):
            return 0, min(len(text), 12)

    seen = []

    def counted(texts):
        seen.extend(texts)
        return bag_of_words(texts)

    long, short = FunctionModel(counted, name="long"), Short(bag_of_words, name="short")
    texts = [f"word{n} not open today in town" for n in range(8)]
    found = ws.compare(long, short, texts, "none")
    assert "8 texts longer than what both models read" in found.answer[0]
    shortened = [text for text in seen if text not in texts]
    assert shortened and all(len(text) <= 12 for text in shortened)


def test_the_interval_of_the_second_threshold_is_that_of_a_paired_bootstrap():
    """Drawn again pair by pair, by plain NumPy: each end within the spread of two bootstraps."""
    random = np.random.default_rng(3)
    first = random.normal(size=80)
    second = 2 * first + 0.1 * random.normal(size=80)
    found = matched_threshold(0.3, first, second)
    draws = []
    for _ in range(2000):
        members = random.integers(80, size=80)
        hits = int((first[members] >= 0.3).sum())
        draws.append(np.sort(second[members])[80 - hits])
    low, high = np.quantile(draws, [0.025, 0.975])
    # Draws of the two models that do not belong together have an interval three times as wide.
    assert (found.low, found.high) == (pytest.approx(low, abs=0.06), pytest.approx(high, abs=0.06))


def test_the_margin_of_removals_is_a_share_of_both_models(deaf):
    back = ws.compare(deaf_to_negations, bag_of_words, TEXTS, "none", **EFFORT)
    for row in deaf.rows:
        if row.part == "removal":
            assert row.margin == pytest.approx(0.01 * (row.first + row.second) / 2)
            assert back[row.key].margin == pytest.approx(row.margin)
