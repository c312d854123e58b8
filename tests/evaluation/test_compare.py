"""Comparisons of two models, against plain encoding and against differences that are known."""

import copy
import json

import numpy as np
import pytest
import torch

import wordsens as ws
from tests.evaluation.stand_ins import NEGATIONS, bag_of_words, deaf_to_negations, few_pairs
from tests.maps.tiny_models import model_of, tokenizer
from wordsens.evaluation.neighbours import agreement, sampling_errors
from wordsens.models.load import as_model
from wordsens.text.whole_words import without, word_spans

TEXTS = [review.text for review in ws.shipped_reviews()]
EFFORT = {"words_per_text": 6, "neighbours": 5}


@pytest.fixture(scope="module")
def deaf():
    """A bag of words, and one that deletes every negation."""
    return ws.compare(bag_of_words, deaf_to_negations, TEXTS, few_pairs(), **EFFORT)


def relative(encode, text, word):
    """The mean change of the text's vector without that word, over its places."""
    spans = [span for span in word_spans(text) if text[slice(*span)].lower() == word]
    (own,) = np.asarray(encode([text]))
    moved = np.asarray(encode([without(text, span) for span in spans]))
    return float((np.linalg.norm(moved - own, axis=1) / np.linalg.norm(own)).mean())


def test_two_copies_have_no_difference():
    found = ws.compare(bag_of_words, bag_of_words, TEXTS, few_pairs())
    assert not found.differs
    assert (found.apart, found.changed, found.passed) == (0.0, (), True)
    assert {(row.difference, row.low, row.high) for row in found.rows} == {(0.0, 0.0, 0.0)}


def test_no_verdict_rests_on_four_pairs_and_no_share_leaves_its_range():
    texts = [review.text for review in ws.shipped_reviews()[:12]]
    found = ws.compare(
        bag_of_words,
        deaf_to_negations,
        texts,
        few_pairs(opposites=4),
        requirements=["check.all.low >= -1"],
    )
    few = [row for row in found.rows if row.part == "check" and row.count < 6]
    assert {row.name for row in few} == {"negation", "antonym"}
    assert all(
        (row.low, row.high, row.differs, row.excluded) == (None, None, False, False) for row in few
    )
    assert found["check.all kinds"].low is not None
    assert {each.kind for each in found.unmet} >= {"check.negation", "check.antonym"}
    shares = [
        row
        for row in found.rows
        if row.part in ("check", "neighbours", "rank") and row.low is not None
    ]
    assert all(-1 <= row.low <= row.difference <= row.high <= 1 for row in shares)


def test_a_planted_difference_is_found_where_it_is(deaf):
    assert deaf.differs
    words = {row.name for row in deaf.rows if row.differs and row.part == "word"}
    assert {"not", "never"} <= words
    assert all(NEGATIONS.search(name) for name in words)
    # Where negations no longer count, the other words of their texts can only rise.
    ranks = [row for row in deaf.rows if row.differs and row.part == "rank"]
    assert all((row.difference < 0) == bool(NEGATIONS.search(row.name)) for row in ranks)
    negation = deaf["removal.negation"]
    assert negation.differs
    assert negation.high < 0
    assert deaf["rank.not"].second < 0.2 < deaf["rank.not"].first


def test_every_number_is_that_of_encoding_the_texts_again():
    """All words are removed: a word's row is then the mean over its texts of plain encoding."""
    texts = [" ".join(text.split()[:30]) for text in TEXTS[:20]]
    found = ws.compare(bag_of_words, deaf_to_negations, texts, "none", words_per_text=60)
    row = found["word.the"]
    held = [
        text for text in texts if "the" in [text[slice(*span)].lower() for span in word_spans(text)]
    ]
    assert row.count == len(held)
    for value, encode in ((row.first, bag_of_words), (row.second, deaf_to_negations)):
        assert value == pytest.approx(
            np.mean([relative(encode, text, "the") for text in held]), abs=1e-12
        )


def test_the_other_order_is_the_same_comparison_with_the_signs_turned(deaf):
    back = ws.compare(deaf_to_negations, bag_of_words, TEXTS, few_pairs(), **EFFORT)
    for row in deaf.rows:
        other = back[row.key]
        if row.part == "neighbours":
            assert other.difference == pytest.approx(row.difference)
        else:
            assert other.difference == pytest.approx(-row.difference)
            assert other.low == pytest.approx(-row.high)
        assert other.differs == row.differs


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


SCENES = [
    f"{opening} {subject} {state}"
    for opening in ("today the", "we say that the", "everybody knows why the")
    for subject in ("lift", "main door", "old road bridge")
    for state in ("is not working", "is working on time", "was closed")
]


def unit(encode, text):
    (vector,) = np.asarray(encode([text]))
    return vector / np.linalg.norm(vector)


def units(seed, texts=9):
    drawn = torch.randn(
        texts, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )
    return torch.nn.functional.normalize(drawn, dim=1)


def test_agreement_is_that_of_plain_cosines():
    one, other = units(0), units(1)
    found = agreement(one, other, 3)
    for at in range(9):
        lists = [
            sorted(
                (i for i in range(9) if i != at),
                key=lambda i, at=at, cosines=each @ each.T: -cosines[at, i],
            )[:3]
            for each in (one, other)
        ]
        assert (list(found.first[at][:3]), list(found.second[at][:3])) == tuple(lists)
        assert found.changed[at] == (lists[0][0] != lists[1][0])
        assert found.recall[at] == pytest.approx(len({*lists[0]} & {*lists[1]}) / 3)


def test_the_standard_errors_are_those_of_other_texts():
    """Of 40 texts drawn from a large population; the half samples' errors are within 0.75 and 1.5
    of the truth."""
    found, errors = [], []
    for seed in range(40):
        one = units(seed, 40)
        other = torch.nn.functional.normalize(one + 0.3 * units(seed + 1000, 40), dim=1)
        between, same = agreement(one, other, 3), agreement(one, one, 3)
        found.append([between.changed.mean(), between.recall.mean()])
        if seed < 6:
            errors.append(sampling_errors(between, [same, same], 3, seed=seed))
    ratios = np.mean(errors, axis=0) / np.std(found, axis=0, ddof=1)
    assert ((ratios > 0.75) & (ratios < 1.5)).all()


def test_a_changed_neighbour_and_its_words_are_those_of_plain_encoding():
    found = ws.compare(bag_of_words, deaf_to_negations, SCENES, "none", neighbours=3)
    row = found["neighbours.nearest"]
    assert (row.first, row.count) == (0.0, len(SCENES))
    assert 0 < len(found.changed) <= round(row.second * len(SCENES))
    for one in found.changed:
        assert one.first >= 0 >= one.second
        assert max(one.first, -one.second) > 1e-6
        assert (one.text, one.old_text, one.new_text) == tuple(
            SCENES[at] for at in (one.at, one.old, one.new)
        )
    one = found.changed[0]
    for encode, margin, changes in (
        (bag_of_words, one.first, [word.first for word in one.words]),
        (deaf_to_negations, one.second, [word.second for word in one.words]),
    ):
        apart = unit(encode, one.old_text) - unit(encode, one.new_text)
        assert margin == pytest.approx(unit(encode, one.text) @ apart)
        for word, change in zip(one.words, changes, strict=True):
            moved = unit(encode, without(one.text, (word.start, word.stop))) @ apart
            assert change == pytest.approx(moved - margin)
            assert (word.back if encode is deaf_to_negations else word.away) == (
                moved > 0 if encode is deaf_to_negations else moved < 0
            )
    assert [abs(word.apart) for word in one.words] == sorted(
        (abs(word.apart) for word in one.words), reverse=True
    )
    assert found.changed[-1].words == () or len(found.changed) <= 5


TAGGED = [f"<b>{review.text}" for review in ws.shipped_reviews()[:40]]
ASKED = (
    "neighbours.recall.second >= .99",
    "check.all.low >= -1",
    "removal.negation.differs <= 0",
    "all.count >= 6",
)


@pytest.fixture(scope="module")
def found():
    return ws.compare(bag_of_words, deaf_to_negations, TAGGED, few_pairs(), requirements=ASKED)


def test_it_comes_back_from_a_file(found, tmp_path):
    found.save(tmp_path / "comparison")
    back = ws.Comparison.load(tmp_path / "comparison")
    assert back == found
    assert back.answer == found.answer
    assert back["removal.negation"].differs


def test_it_shows_itself(found):
    assert len(found.table()) == len(found.rows)
    assert found.headline in " ".join(found.show().split())
    page = found._repr_html_()
    assert "&lt;b&gt;" in page and "<b>José" not in page
    document = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (
        sum(row["differs"] for row in document["rows"])
        == sum(row.differs for row in found.rows)
        > 0
    )
    with pytest.raises(KeyError, match="not a row of this comparison"):
        found["word.zebra"]


def test_requirements_fail_with_what_was_found(found):
    assert {(each.requirement, each.kind) for each in found.unmet} == {
        (ASKED[0], "neighbours.recall"),
        (ASKED[2], "removal.negation"),
    }


def test_the_threshold_of_the_second_model_keeps_as_many_near_duplicates():
    pairs = few_pairs()

    def shifted(texts):
        """Another scale: every vector is drawn towards one direction."""
        return bag_of_words(texts) + 0.3

    found = ws.compare(bag_of_words, shifted, TAGGED, pairs, threshold=0.7)
    first, second = (ws.check(model, pairs).measured for model in (bag_of_words, shifted))
    near = [each.values[each.near] for each in (first, second)]
    kept = int((near[0] >= 0.7).sum())
    matched = found.matched
    assert matched.recall == kept / len(near[0])
    assert matched.second == sorted(near[1])[len(near[1]) - kept]
    assert (near[1] >= matched.second).sum() >= kept
    assert matched.second_low <= matched.second <= matched.second_high
    for share, each, threshold in (
        (matched.false_hits_first, first, 0.7),
        (matched.false_hits_second, second, matched.second),
    ):
        values = [
            value for pair, value in zip(each.pairs, each.values, strict=True) if not pair.same
        ]
        assert share == sum(value >= threshold for value in values) / len(values)
    assert found.to_dict()["matched"]["first"] == 0.7


def test_where_nothing_could_be_compared_no_difference_is_denied():
    texts = [
        "the lift works",
        "turn it on",
        "he did not go",
        "turn it off",
        "the door is shut",
        "ok",
    ]
    found = ws.compare(
        bag_of_words, deaf_to_negations, texts, "none", requirements=["all.differs <= 0"]
    )
    assert found.rows == () and not found.passed
    with pytest.raises(ws.InputError, match="`texts` holds none of two words or more"):
        ws.compare(
            bag_of_words, bag_of_words, ["on", "off", "yes", "no", "ok", "lift", "stairs"], "none"
        )


def test_a_threshold_is_one_that_a_cosine_can_have_and_recall_is_that_of_each_model():
    def equal(texts):
        return [[1.0, 1.0]] * len(texts)

    texts = [f"The {thing} is open." for thing in ("door", "lift", "road", "gate", "shop", "bank")]
    with pytest.raises(ws.InputError, match="must be a cosine"):
        ws.compare(bag_of_words, equal, texts, few_pairs(), threshold=1.6)
    matched = ws.compare(bag_of_words, equal, texts, few_pairs(), threshold=0.9).matched
    assert 0 < matched.recall < 1
    assert (matched.recall_second, matched.false_hits_second) == (1, 1)


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
    for table in [part for part in found.view().parts if hasattr(part, "columns")]:
        rows = zip(table.columns["differs"], table.columns["difference"], strict=True)
        order = [(not differs, -abs(change.value)) for differs, change in rows]
        assert order == sorted(order)


def test_the_kind_that_changed_most_is_named_first():
    def opposites(kind, number):
        other = "the lift is open" if kind == "most" or number % 2 else "a red boat sails"
        return kind, f"{kind}{number} the lift is not open", f"{kind}{number} {other}", False

    pairs = [opposites(kind, number) for kind in ("less", "most") for number in range(60)]
    pairs += [("same", f"b{n} it is not so", f"b{n} it is not so!", True) for n in range(60)]
    texts = [pair[1] for pair in pairs]
    said = " ".join(ws.compare(bag_of_words, deaf_to_negations, texts, pairs).answer)
    assert 0 < said.index("most AUC") < said.index("less AUC")
