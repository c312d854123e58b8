"""Explanations against plain encoding, closed forms and planted words."""

import pytest

import wordsens as ws
from tests.evaluation.stand_ins import bag_of_words
from tests.maps.tiny_models import model_of, tokenizer
from wordsens.display.view import Words
from wordsens.evaluation.explain import explain
from wordsens.findings.explain import exchanged, separation
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
    rows = found.columns()
    assert found.value == pytest.approx(value, abs=1e-6)
    assert rows["word"] == [*FIRST.rstrip("?").split(), *SECOND.rstrip("?").split()]
    assert found.removal == tuple(effect.change for effect in found.by("delete"))
    for effect in found.effects[::3]:
        changed = list(texts)
        changed[effect.text] = (
            without(texts[effect.text], effect.span)
            if effect.way == "delete"
            else with_word(texts[effect.text], effect.span, effect.replaced_by)
        )
        assert effect.change == pytest.approx(cosine(model, *changed) - value, abs=1e-6)
    for pair in (*found.pairs[:3], *found.partners[::4]):
        spans = pair.first.span, pair.second.span
        both = [without(text, span) for text, span in zip(texts, spans, strict=True)]
        assert pair.together == pytest.approx(cosine(model, *both) - value, abs=1e-6)
        assert pair.alone == pair.first.change + pair.second.change
    best = max(pair.together for pair in found.partners)
    assert max(cell for cell in rows["both deleted"] if cell is not None) == best


def test_a_planted_word_is_what_separates_the_texts():
    """Texts that differ in it alone: in nearly all shipped pairs it comes first."""
    one_word = [
        pair
        for pair in ws.meaning_pairs()
        if pair.kind in ("antonym", "time") and all(len(part.split()) == 1 for part in pair.changed)
    ][:12]
    model = as_model("minilm")
    sentences = [
        separation(explain(model, pair.first, pair.second, **BARE))[0] for pair in one_word
    ]
    alone = [
        sentence == "The texts differ only in '{}' and '{}'.".format(*pair.changed)
        for sentence, pair in zip(sentences, one_word, strict=True)
    ]
    assert sum(alone) >= 11


def test_what_separates_texts_most_may_be_a_single_word():
    """The score is low because of one word alone: nothing of the other text has to go with it."""

    def encode(texts):
        return [[1.0, 0.0] if "odd" not in text.split() else [0.2, 1.0] for text in texts]

    found = explain(encode, "an odd lamp stands here", "a lamp is here", **BARE)
    sentence, parts = separation(found)
    assert sentence == "Deleting 'odd' brings the texts closest: the cosine becomes 1.0000."
    assert parts == [(0, (3, 6))]


@pytest.mark.parametrize(
    ("colour", "said"), [(0.3, "Deleting 'red' and 'blue'"), (0.01, "No single word")]
)
def test_what_separates_texts_is_no_word_of_both_and_moves_the_cosine_by_a_hundredth(colour, said):
    """The cosine rises most without the door of both texts."""

    def encode(texts):
        words = [text.split() for text in texts]
        return [
            [
                1.0,
                colour * (its.count("red") - its.count("blue")),
                its.count("door") * (0.5 if {"a", "red"} & {*its} else -0.5),
                3.0 * ("door" not in its),
            ]
            for its in words
        ]

    found = explain(encode, "a red door", "the blue door", **BARE)
    best = max(found.partners, key=lambda pair: pair.together)
    assert best.first.word == best.second.word == "door"
    assert separation(found)[0].startswith(said)


def test_equal_texts_have_no_difference_to_explain():
    same = explain(letters, "an odd lamp", "an odd lamp", **BARE)
    assert separation(same) == ("", [])


def test_the_headline_names_the_word_that_changes_the_score_most_up_or_down():
    found = explain(letters, "an odd lamp", "the lamp", **BARE)
    leader = max(found.by("delete"), key=lambda effect: abs(effect.change))
    assert leader.change < 0 < max(effect.change for effect in found.by("delete"))
    assert f"deleting {leader.word!r}" in found.headline
    assert ("of the second text" in found.headline) == (leader.text == 1)


LEEDS = "A train from Leeds to Bristol", "A train from Bristol to Leeds"


def first_word_counts_more(texts):
    return [
        [
            2.0 ** -text.lower().split().index(word) if word in text.lower() else 0.0
            for word in words
        ]
        for text in texts
        for words in [("leeds", "bristol", "train")]
    ]


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (bag_of_words, "'Leeds' and 'Bristol' are exchanged; the cosine is 1.0000."),
        (
            lambda texts: [[*row, 4.0] for row in first_word_counts_more(texts)],
            "'Leeds' and 'Bristol' are exchanged; the cosine is 0.99",
        ),
        (first_word_counts_more, "'Leeds' and 'Bristol' are exchanged; the cosine is 0.9"),
    ],
)
def test_an_exchange_is_recognised_with_what_the_model_makes_of_it(model, said):
    found = explain(model, *LEEDS, **BARE)
    sentence, parts = separation(found)
    assert sentence.startswith(said)
    assert {LEEDS[side][slice(*span)] for side, span in parts} == {"Leeds", "Bristol"}
    assert len(parts) == 4


@pytest.mark.parametrize(
    ("first", "second", "phrases"),
    [
        (
            "From the north hall to the annex.",
            "From the annex to the north hall.",
            "north hall, annex",
        ),
        ("She only ate fish", "She ate only fish", "only, ate"),
        ("Ann saw Bob", "ann saw Bob", None),
        ("Ann saw Bob and Cy", "Bob and Ann saw Dan", None),
        ("a b c d", "b a d c", None),
    ],
)
def test_phrases_of_several_words_are_exchanged(first, second, phrases):
    found = exchanged(first, second)
    if phrases is None:
        assert found is None
    else:
        named = [(first, second)[side][slice(*span)] for side, span in found]
        assert named == [*phrases.split(", ")] * 2


def test_a_moved_word_stays_in_its_ball():
    """The claim of a lower bound: a search of the same ball finds as much, or more."""
    phi = ws.TransformerFeatures(model_of("bert"), tokenizer(), name="bert", pool="mean")
    text = "the film was not good"
    found = explain(phi, text, tries=0)
    searched = ws.whole_word_sensitivity(phi, phi.embed([text])[0])
    moved = {(word.side, (word.start, word.stop)): word.moved for word in found.words}
    for change, most in zip(moved.values(), searched.per_word.tolist(), strict=True):
        assert 0 < change <= most * (1 + 1e-6)
    removed = ws.removal_effects(phi, text).per_word.tolist()
    assert found.removal == pytest.approx(removed, abs=1e-6)
    leading = explain(phi, text, tries=0, leaders=2).by("move")
    largest = sorted(found.by("delete"), key=lambda effect: -effect.change)[:2]
    assert {effect.span for effect in leading} == {effect.span for effect in largest}
    for effect in leading:
        assert effect.change == pytest.approx(moved[0, effect.span], rel=1e-4)


def test_a_class_and_the_words_that_carry_it():
    classifier = model_of("bert", "AutoModelForSequenceClassification", num_labels=3)
    phi = ws.TransformerFeatures(classifier, tokenizer(), name="tiny", output="probabilities")
    text = "the film was not good"
    found = explain(phi, text, target=2, tries=1)
    whole = phi.encode([text])[0]
    without_not = phi.encode(["the film was good"])[0]
    assert found.value == pytest.approx(float(whole[2]))
    assert found.removal[3] == pytest.approx(float(without_not[2] - whole[2]), abs=1e-6)
    assert found.score == "probability of class LABEL_2"
    assert explain(phi, text, **BARE).value == pytest.approx(float(whole.max()))
    with pytest.raises(ws.InputError, match=r"`target` \(=3\) is no class; .* has 0 to 2"):
        explain(phi, text, target=3)


def test_rows_of_a_map_are_referred_to_word_sensitivity():
    with pytest.raises(ws.InputError, match=r"call word_sensitivity\(model, text\)"):
        explain(ws.RandomAttentionFeatures(8), ws.gaussian_text(4, 8, seed=0))


def test_a_function_of_pairs_has_no_vectors_and_says_so():
    def score(first, second):
        return [
            len(set(one.split()) & set(two.split())) for one, two in zip(first, second, strict=True)
        ]

    found = explain(as_pair_model(score), "turn it on", "turn it off", tries=0)
    assert (found.value, found.removal) == (2.0, (-1.0, -1.0, 0.0, -1.0, -1.0, 0.0))
    assert (found.pairs, found.partners, found.by("move")) == ((), (), [])
    (note,) = found.notes
    assert "where gradients are needed score cannot be used" in note


def test_a_text_of_one_word_is_compared_with_a_longer_one():
    model = (model_of("bert"), tokenizer())
    found = explain(model, "film", "the film was good", **BARE)
    assert (found.removal[0], found.pairs) == (None, ())
    less = cosine(model, "film", "the film was")
    assert found.removal[-1] == pytest.approx(less - found.value, abs=1e-6)
    assert "the first text has 1 word" in found.headline
    for texts in (["film"], ["film", "good"]):
        with pytest.raises(ws.InputError, match="has 1 word; an explanation compares two or more"):
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
    assert (len(found.pairs), len(found.partners)) == (8, 80)
    for side in (0, 1):
        deleted = [effect for effect in found.by("delete") if effect.text == side]
        leading = sorted(deleted, key=lambda effect: -abs(effect.change))[:5]
        swapped = {effect.span for effect in found.by("swap") if effect.text == side}
        assert swapped == {effect.span for effect in leading}
    assert sum("leaders=40" in note for note in found.notes) == 2
    whole = explain(model, *texts, tries=3, leaders=40)
    assert whole.removal == found.removal
    assert not any("leaders" in note for note in whole.notes)


@pytest.mark.parametrize(
    ("model", "options"),
    [(letters, {}), (letters, BARE), ((model_of("bert"), tokenizer()), {"leaders": 2})],
)
def test_progress_reaches_its_total_and_never_passes_it(model, options):
    """Also where words have fewer candidates than `tries`, or the model no gradients."""
    steps = []
    texts = "the film was not good", "the film was good"
    explain(model, *texts, **options, progress=lambda *step: steps.append(step))
    done, totals = zip(*steps, strict=True)
    assert list(done) == sorted(done)
    assert {done[-1]} == set(totals)


def test_of_a_score_that_no_word_moves_no_word_is_named():
    found = explain(lambda texts: [[1.0, 2.0]] * len(texts), "the lift is on", "the lift is off")
    headline, separating = found.answer
    assert "no word changes it" in headline
    assert "No single word explains the difference" in separating


def test_words_that_are_taken_apart_are_said():
    thai, english = "ร้านไม่เปิดวันนี้", "The shop is not open today."

    def model(texts):
        return [[text.count(sign) + 1.0 for sign in thai + english] for text in texts]

    for text, said in ((thai, True), (english, False)):
        assert (TAKEN_APART in ws.explain(model, text).notes) is said
        others = [f"{text} {number}" for number in range(6)]
        compared = ws.compare(model, model, others, pairs="none")
        assert (TAKEN_APART in compared.notes) is said


def test_two_models_keep_their_own_vectors_and_rows():
    """One text read by two models, such as one model with two prompts."""
    models = [as_model((model_of(name), tokenizer())) for name in ("bert", "roberta")]
    texts = "the film was good", "the film was not good"
    found = explain(tuple(models), *texts, tries=0)
    back = explain(tuple(models[::-1]), *texts[::-1], tries=0)

    def plain(first, second):
        one, two = (
            model.encode([text])[0] for model, text in zip(models, (first, second), strict=True)
        )
        return float(one @ two / one.norm() / two.norm())

    shared = next(word for word in found.words if word.side and word.word == "not")
    expected = plain(texts[0], "the film was good") - plain(*texts)
    assert shared.removal == pytest.approx(expected, abs=1e-6)
    moved = {(1 - word.side, word.start): word.moved for word in back.words}
    for word in found.words:
        assert word.moved == pytest.approx(moved[word.side, word.start], abs=1e-5)


def test_a_partner_is_of_the_other_text_and_colours_are_of_each_text():
    texts = "dog lamp tree", "dog sofa moon"
    found = explain(letters, *texts, **BARE)
    for word in found.words:
        assert word.counterpart in texts[1 - word.side].split()
        kept = [
            " ".join(part for part in text.split() if part not in gone)
            for text, gone in zip(
                texts, ({word.word}, {word.counterpart})[:: 1 - 2 * word.side], strict=True
            )
        ]
        assert found.value + word.apart == pytest.approx(cosine(letters, *kept))
    coloured = [part for part in found.view().parts if isinstance(part, Words)]
    for side, part in enumerate(coloured):
        values = {piece.text: piece.value for piece in part.pieces if not isinstance(piece, str)}
        own = {word.word: word.removal for word in found.words if word.side == side}
        assert values == pytest.approx(own)
