"""Explanations against plain encoding, closed forms and planted words."""

import copy

import pytest

import wordsens as ws
from tests.maps.tiny_models import model_of, tokenizer
from wordsens.evaluation.explain import explain
from wordsens.models import as_pair_model
from wordsens.models.load import as_model
from wordsens.text.whole_words import TAKEN_APART, with_word, without

FIRST, SECOND = "How do I enable two-factor login?", "Where can I disable the login of my team?"
BARE = {"tries": 0, "vectors": False}


def letters(texts):
    return [
        [text.lower().count(letter) + 0.5 for letter in "abcdefghijklmnopqrstuvwxyz"]
        for text in texts
    ]


def cosine(model, first, second):
    one, two = (as_model(model).encode([text])[0] for text in (first, second))
    return float(one @ two / one.norm() / two.norm())


@pytest.mark.slow_cases("minilm")
@pytest.mark.parametrize("model", ["minilm", letters])
def test_every_number_is_that_of_encoding_the_texts_again(model):
    found = explain(model, FIRST, SECOND, vectors=False)
    value, texts = cosine(model, FIRST, SECOND), (FIRST, SECOND)
    assert found.value == pytest.approx(value, abs=1e-6)
    assert [word.word for word in found.words] == [
        *FIRST.rstrip("?").split(),
        *SECOND.rstrip("?").split(),
    ]
    assert found.removal == tuple(word.removal for word in found.words)
    for word in found.words[::4]:
        span, moved = (word.start, word.stop), list(texts)
        moved[word.side] = without(texts[word.side], span)
        assert word.removal == pytest.approx(cosine(model, *moved) - value, abs=1e-6)
        if word.swap is not None:
            moved[word.side] = with_word(texts[word.side], span, word.swapped_for)
            assert word.swap == pytest.approx(cosine(model, *moved) - value, abs=1e-6)
    for pair in found.pairs[:3]:
        one, two = found.words[pair.first_at], found.words[pair.second_at]
        both = cosine(
            model,
            *(without(text, (w.start, w.stop)) for text, w in zip(texts, (one, two), strict=True)),
        )
        assert pair.together == pytest.approx(both - value, abs=1e-6)
        assert pair.alone == pytest.approx(one.removal + two.removal)


def test_a_planted_word_is_what_keeps_the_texts_apart():
    """Texts that differ in it alone: in nearly all shipped pairs it comes first."""
    one_word = [
        pair
        for pair in ws.meaning_pairs()
        if pair.kind in ("antonym", "time") and all(len(part.split()) == 1 for part in pair.changed)
    ][:12]
    model = as_model("minilm")
    found = [explain(model, pair.first, pair.second, **BARE).dividing for pair in one_word]
    hits = [
        (word.word, word.counterpart) == pair.changed
        for word, pair in zip(found, one_word, strict=True)
    ]
    assert sum(hits) >= 11
    assert found[0].apart > 0


def test_a_moved_word_reaches_what_is_said_and_stays_in_its_ball():
    """The claim of a lower bound: a search of the same ball finds as much, or more."""
    phi = ws.TransformerFeatures(model_of("bert"), tokenizer(), name="bert", pool="mean")
    text = "the film was not good"
    found = explain(phi, text, tries=0)
    searched = ws.whole_word_sensitivity(phi, phi.embed([text])[0])
    for word, most in zip(found.words, searched.per_word.tolist(), strict=True):
        assert 0 < word.raises <= most * (1 + 1e-6)
        assert (word.lowers, word.farthest) == (None, word.raises)
    assert [word.removal for word in found.words] == pytest.approx(
        ws.removal_effects(phi, text).per_word.tolist(), abs=1e-6
    )


def test_a_class_and_the_words_that_carry_it():
    classifier = model_of("bert", "AutoModelForSequenceClassification", num_labels=3)
    phi = ws.TransformerFeatures(classifier, tokenizer(), name="tiny", output="probabilities")
    text = "the film was not good"
    found = explain(phi, text, target=2, tries=1)
    whole = phi.encode([text])[0]
    assert found.value == pytest.approx(float(whole[2]))
    assert found.words[3].removal == pytest.approx(
        float(phi.encode(["the film was good"])[0, 2] - whole[2]), abs=1e-6
    )
    assert found.score == "probability of class LABEL_2"
    assert explain(phi, text, **BARE).value == pytest.approx(float(whole.max()))
    with pytest.raises(ws.InputError, match=r"`target` \(=3\) is no class; .* has 0 to 2"):
        explain(phi, text, target=3)


@pytest.mark.parametrize(
    "phi",
    [
        ws.RandomAttentionFeatures(8),
        ws.RandomFeatures(4, 8),
        ws.RandomFeatures(4, 8, gaussian="lazy"),
    ],
    ids=["attention", "dense", "lazy"],
)
def test_the_rows_of_a_random_map_have_their_bounds_and_how_surely_they_hold(phi):
    X = ws.gaussian_text(4, 8, seed=0)
    expected = ws.word_sensitivity(copy.deepcopy(phi), X)
    found = explain(phi, X)
    assert [word.farthest for word in found.words] == pytest.approx(expected.per_word.tolist())
    assert [word.upper for word in found.words] == pytest.approx(expected.upper_per_word.tolist())
    certified = getattr(phi, "gaussian", "dense") == "dense"
    assert ("certified" in found._repr_html_()) == certified
    assert ("with probability" in found._repr_html_()) != certified


def test_what_keeps_texts_apart_most_may_be_a_single_word():
    """The score is low because of one word alone: nothing of the other text has to go with it."""

    def encode(texts):
        return [[1.0, 0.0] if "odd" not in text.split() else [0.2, 1.0] for text in texts]

    found = explain(encode, "an odd lamp stands here", "a lamp is here", **BARE)
    assert found.dividing.word == "odd"
    assert found.value + found.dividing.rise == pytest.approx(1)


def test_a_function_of_pairs_has_no_vectors_and_says_so():
    def score(first, second):
        return [
            len(set(one.split()) & set(two.split())) for one, two in zip(first, second, strict=True)
        ]

    found = explain(as_pair_model(score), "turn it on", "turn it off", tries=0)
    assert (found.value, [word.removal for word in found.words]) == (
        2.0,
        [-1.0, -1.0, 0.0, -1.0, -1.0, 0.0],
    )
    assert (found.pairs, {word.farthest for word in found.words}) == ((), {None})
    assert len(found.notes) == 1
    assert "where gradients are needed score cannot be used" in found.notes[0]


def test_a_text_of_one_word_is_compared_with_a_longer_one():
    model = (model_of("bert"), tokenizer())
    found = explain(model, "film", "the film was good", **BARE)
    alone, *others = found.words
    assert (alone.word, alone.removal, found.pairs) == ("film", None, ())
    less = cosine(model, "film", "the film was")
    assert others[-1].removal == pytest.approx(less - found.value, abs=1e-6)
    assert len(found.notes) == 1
    for texts in (["film"], ["film", "good"]):
        with pytest.raises(ws.InputError, match="has 1 words; an explanation compares two or more"):
            explain(model, *texts)


def test_a_long_text_has_every_removal_and_swaps_of_its_leading_words():
    """A text of n words costs n + 1 encodings, and `tries` for each leading word; pairs of words
    cost none."""
    texts = [
        " ".join([first, second] * 20) for first, second in (("dentist", "pear"), ("sofa", "tiger"))
    ]
    calls = []

    def counted(texts):
        calls.extend(texts)
        return letters(texts)

    model = as_model(counted)
    calls.clear()
    found = explain(model, *texts, tries=3, leaders=5)
    assert len(calls) == len(set(calls)) <= 2 + 2 * (40 + 5 * 3)
    assert None not in found.removal
    assert {len(found.pairs), sum(word.apart is not None for word in found.words)} == {8, 80}
    for side in (0, 1):
        words = [word for word in found.words if word.side == side]
        leading = sorted(words, key=lambda word: -abs(word.removal))[:5]
        assert {word.span for word in words if word.swap is not None} == {
            word.span for word in leading
        }
    assert sum("leaders=40" in note for note in found.notes) == 2
    whole = explain(model, *texts, tries=3, leaders=40)
    assert whole.removal == found.removal
    assert not any("leaders" in note for note in whole.notes)


def test_vectors_of_the_leading_words_alone_are_moved():
    phi = ws.TransformerFeatures(model_of("bert"), tokenizer(), name="bert", pool="mean")
    text = "the film was not good"
    every, found = explain(phi, text, tries=0), explain(phi, text, tries=0, leaders=2)
    leading = sorted(every.words, key=lambda word: -word.removal)[:2]
    raised = {word.span: word.raises for word in found.words if word.raises is not None}
    assert raised == pytest.approx({word.span: word.raises for word in leading}, rel=1e-4)


@pytest.mark.parametrize(
    ("model", "options"),
    [
        (letters, {}),
        (letters, {"tries": 0, "vectors": False}),
        ((model_of("bert"), tokenizer()), {"leaders": 2}),
    ],
)
def test_progress_reaches_its_total_and_never_passes_it(model, options):
    """Also where words have fewer candidates than `tries`, or the model no gradients."""
    steps = []
    explain(
        model,
        "the film was not good",
        "the film was good",
        **options,
        progress=lambda done, total: steps.append((done, total)),
    )
    done, totals = zip(*steps, strict=True)
    assert list(done) == sorted(done)
    assert {done[-1]} == set(totals)


def test_of_a_score_that_no_word_moves_no_word_is_named():
    said = explain(
        lambda texts: [[1.0, 2.0]] * len(texts), "the lift is on", "the lift is off"
    ).answer
    assert "no word changes it" in said[1]
    assert not any("'" in line for line in said[:3])


def test_a_word_that_no_other_can_stand_for_has_no_swap_and_is_named():
    found = explain(letters, "the nurse has ibuprofen", vectors=False)
    swaps = {word.word: word.swapped_for for word in found.words}
    assert (swaps["the"], swaps["has"]) == (None, "had")
    assert swaps["ibuprofen"] in ("aspirin", "paracetamol", "penicillin", "insulin")
    (note,) = found.notes
    assert "'the'" in note


def test_words_that_are_taken_apart_are_said():
    thai, english = "ร้านไม่เปิดวันนี้", "The shop is not open today."

    def model(texts):
        return [[text.count(sign) + 1.0 for sign in thai + english] for text in texts]

    for text, said in ((thai, True), (english, False)):
        assert (TAKEN_APART in ws.explain(model, text).notes) is said
        others = [f"{text} {number}" for number in range(6)]
        compared = ws.compare(model, model, others, pairs="none")
        assert (TAKEN_APART in compared.notes) is said
