"""How often distinct questions collide in a cache, against a plain loop, and the promise of a
threshold without labels."""

import csv
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

import wordsens as ws
from tests.evaluation.stand_ins import bag_of_words
from wordsens.evaluation import collisions as module
from wordsens.evaluation.collisions import LABELLED
from wordsens.intervals import share_at_most
from wordsens.models.pairs import FunctionPairModel
from wordsens.seeds import derive_seed

ROOT = Path(__file__).parents[2]
USES = [(guard, quarter) for quarter in (False, True) for guard in (False, True)]


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


QUESTIONS = [row["question"] for row in rows_of(ROOT / "examples" / "questions.csv")]
REPEATED = rows_of(Path(__file__).with_name("repeated_questions.csv"))
DOORS = [
    f"Is {thing} {n} open{end}" for thing in ("door", "gate") for n in range(20) for end in "?."
]


def nearest(vectors, question, cache, guard):
    """The largest cosine of a question of the cache that the guard does not call different."""
    scores = [
        float(vectors[text] @ vectors[question])
        for text in cache
        if not guard or ws.guard(text, question).verdict != "different"
    ]
    return max(scores, default=-np.inf)


def unit_vectors(encode, texts):
    vectors = np.asarray(encode(texts), dtype=float)
    return dict(zip(texts, vectors / np.linalg.norm(vectors, axis=1, keepdims=True), strict=True))


@pytest.mark.parametrize("guard", [False, True])
def test_similarities_are_those_of_a_plain_loop(guard, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", 7)
    found = ws.collisions(bag_of_words, DOORS, 0.3, guard=guard, seed=3)
    drawn = np.random.default_rng(derive_seed(3, "cache")).permutation(len(DOORS))
    cache = [DOORS[place] for place in drawn[:40]]
    assert {*found.asked} == {*DOORS} - {*cache}
    assert found.cached == (40, 10)
    vectors = unit_vectors(bag_of_words, DOORS)
    for row, (with_guard, quarter) in enumerate(USES):
        part = cache[:10] if quarter else cache
        expected = [nearest(vectors, text, part, with_guard) for text in found.asked]
        assert found.similarities[row] == pytest.approx(expected, abs=1e-11)
    for text, other, verdict, score in zip(
        found.asked, found.nearest, found.verdicts, found.similarities[int(guard)], strict=True
    ):
        if other:
            assert other in cache
            assert verdict == ws.guard(other, text).verdict
            assert vectors[text] @ vectors[other] == pytest.approx(score, abs=1e-11)
    assert list(found.similarities[int(guard)]) == sorted(found.similarities[int(guard)])[::-1]


def test_a_quarter_never_has_more_hits_nor_has_the_guard():
    found = ws.collisions(bag_of_words, QUESTIONS, 0.05)
    for threshold in found.thresholds:
        alone, guarded, quarter, both = (
            found.hits(threshold, guard=guard, quarter=part)[0] for guard, part in USES
        )
        assert both <= quarter <= alone
        assert both <= guarded <= alone
    columns = found.columns()
    assert columns["cache"] != columns["quarter"]
    assert columns["cache"] == sorted(columns["cache"], reverse=True)


@pytest.mark.parametrize("guard", [False, True])
@pytest.mark.parametrize(("budget", "confidence"), [(0.05, 0.95), (0.2, 0.8), (0.5, 0.95)])
def test_the_threshold_is_the_smallest_that_keeps_the_budget(guard, budget, confidence):
    found = ws.collisions(bag_of_words, QUESTIONS, budget, guard=guard, confidence=confidence)
    hits, limit = found.hits(found.threshold, guard=guard)
    scores = found.similarities[int(guard)]
    assert limit == share_at_most(hits, len(found.asked), confidence) <= budget
    assert (found.point.hits, found.point.limit) == (hits, limit)
    below = scores[scores < found.threshold].max()
    assert found.threshold - below <= 1e-4 + 1e-12
    assert found.hits(below, guard=guard)[1] > budget


def promise(texts, vectors, *, guard, budget, monkeypatch):
    """In how many of 200 splits of the texts the share of questions in truth is above the budget at
    the threshold, and above the limit at a fixed one. Three fifths are the user's; new are those of
    them that ask, and all others."""
    monkeypatch.setattr(module, "judge", lru_cache(None)(ws.guard))
    matrix = np.array([vectors[text] for text in texts])
    places = {text: place for place, text in enumerate(texts)}
    cosines = matrix @ matrix.T

    def encode(some):
        return [vectors.get(text, np.full(matrix.shape[1], 1.0 + len(text))) for text in some]

    def hits(threshold, asked, cache):
        columns = [places[text] for text in cache]
        count = 0
        for text in asked:
            scores = cosines[places[text], columns]
            near = np.flatnonzero(scores >= threshold)
            count += any(
                not guard or module.judge(cache[at], text).verdict != "different" for at in near
            )
        return count

    over = {"budget": 0, "limit": 0}
    for seed in range(200):
        order = np.random.default_rng(seed).permutation(len(texts)).tolist()
        known = [texts[place] for place in order[: 3 * len(texts) // 5]]
        found = ws.collisions(encode, known, budget, guard=guard, seed=seed)
        cache = [text for text in known if text not in set(found.asked)]
        others = [texts[place] for place in order[3 * len(texts) // 5 :]]
        new = [*found.asked, *others]
        if found.threshold is not None:
            over["budget"] += hits(found.threshold, new, cache) > budget * len(new)
        limit = found.hits(0.8, guard=guard)[1]
        over["limit"] += hits(0.8, new, cache) > limit * len(new)
    return over


@pytest.mark.slow
@pytest.mark.parametrize("guard", [False, True])
@pytest.mark.parametrize("which", ["questions", "shipped"])
def test_the_limit_holds_in_95_percent_of_splits(which, guard, monkeypatch):
    """500 invented questions and 25 that repeat one of them; and the short opposites of the
    package, of which 5 % cannot be reached with this model. Seeds 0 to 199. In truth less than 5 %
    fail: the new questions are drawn without replacement."""
    texts, budget = QUESTIONS, 0.05
    if which == "shipped":
        opposites = [pair for pair in ws.meaning_pairs() if not pair.same]
        short = [pair for pair in opposites if pair.length == "question"]
        texts = list(dict.fromkeys(text for pair in short for text in (pair.first, pair.second)))
        budget = 0.5
    vectors = unit_vectors(ws.as_model("minilm").encode, texts)
    over = promise(texts, vectors, guard=guard, budget=budget, monkeypatch=monkeypatch)
    assert max(over.values()) <= 10


def test_pairs_with_a_label_are_no_hits_where_they_mean_the_same():
    plain = ws.collisions(bag_of_words, QUESTIONS, 0.05)
    labelled = ws.collisions(bag_of_words, QUESTIONS, 0.05, pairs=REPEATED)
    texts = {frozenset((row["first"], row["second"])) for row in REPEATED}
    met = [pair for pair in zip(plain.asked, plain.nearest, strict=True) if {*pair} in texts]
    assert met
    assert len(labelled.repeated) >= len(met)
    vectors = unit_vectors(bag_of_words, QUESTIONS)
    cache = {*QUESTIONS} - {*labelled.asked}
    crossing = [
        vectors[row["first"]] @ vectors[row["second"]]
        for row in REPEATED
        if len({row["first"], row["second"]} & cache) == 1
    ]
    assert sorted(labelled.repeated) == pytest.approx(sorted(crossing), abs=1e-11)
    assert labelled.reached == (labelled.repeated >= labelled.threshold).sum()
    assert (labelled.differing, labelled.changes) == (0, ())
    assert not any({*pair} in texts for pair in zip(labelled.asked, labelled.nearest, strict=True))
    assert {*labelled.asked} == {*plain.asked}
    assert labelled.hits(0.5, guard=False) < plain.hits(0.5, guard=False)
    assert labelled.threshold <= plain.threshold


def test_the_pairs_to_label_are_the_highest_hits_without_one():
    found = ws.collisions(bag_of_words, QUESTIONS, 0.05)
    rows = found.to_label()
    assert (len(rows), {row["same"] for row in rows}) == (20, {""})
    verdicts = [row["guard"] for row in rows]
    first = verdicts.count("same")
    assert verdicts[:first] == ["same"] * first
    scores = [row["similarity"] for row in rows[first:]]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] == max(
        score
        for score, verdict in zip(found.similarities[0], found.verdicts, strict=True)
        if verdict != "same"
    )
    half = [{**row, "same": "false"} for row in rows[:10]] + rows[10:]
    again = ws.collisions(bag_of_words, QUESTIONS, 0.05, pairs=half)
    assert again.point == found.point
    assert again.verdicts.count(LABELLED) == 10
    assert again.differing == 10
    known = {row["first"] for row in rows[:10]}
    assert not known & {row["first"] for row in again.to_label()}


def test_what_the_guard_calls_the_same_comes_first():
    """Of ten twins some are in both halves (seed 0)."""
    twins = [
        f"{word} does the lift go to floor {n}" for n in range(10) for word in ("When", "when")
    ]
    twins += ["How do I open the door?", "How do I open door?"]
    found = ws.collisions(bag_of_words, [*twins, *QUESTIONS[:40]], 0.5)
    verdicts = [row["guard"] for row in found.to_label(60)]
    first = verdicts.count("same")
    assert 0 < first < len(verdicts)
    assert verdicts[:first] == ["same"] * first


def test_labels_of_other_questions_are_left_out_and_the_first_line_says_so():
    pairs = [REPEATED[0], {**REPEATED[1], "second": "Something else?"}]
    found = ws.collisions(bag_of_words, QUESTIONS, 0.3, pairs=pairs)
    assert "1 labelled pair left out" in found.headline


def test_copies_are_left_out_and_the_first_line_says_so():
    found = ws.collisions(bag_of_words, [*QUESTIONS[:40], *QUESTIONS[:3], " "], 0.3)
    assert len(found.asked) + found.cached[0] == 40
    assert "4 texts left out" in found.headline


def test_too_few_questions_have_no_threshold_and_say_how_many_it_takes():
    found = ws.collisions(bag_of_words, QUESTIONS[:100], 0.02)
    assert (found.threshold, found.needed, found.distances) == (None, 149, None)
    assert all(count in found.headline for count in ("50 new questions", "149"))


def test_the_two_prompts_are_for_the_cache_and_for_the_new_questions(monkeypatch):
    class Prompted(type(ws.as_model(bag_of_words))):
        def prompted(self, name):
            return ws.as_model(lambda texts: bag_of_words([f"{name} {text}" for text in texts]))

    model = ws.as_model(bag_of_words)
    model.__class__ = Prompted
    found = ws.collisions(model, QUESTIONS[:60], 0.3, prompt_names=("one", "one two three"))
    cache = [text for text in QUESTIONS[:60] if text not in found.asked]
    stored = unit_vectors(bag_of_words, [f"one {text}" for text in cache])
    new = unit_vectors(bag_of_words, [f"one two three {text}" for text in found.asked])
    expected = [max(vector @ other for other in stored.values()) for vector in new.values()]
    assert found.similarities[0] == pytest.approx(expected, abs=1e-11)


def test_a_model_of_pairs_has_no_nearest_question():
    scorer = FunctionPairModel(lambda first, second: [0.5 for _ in first], name="half")
    with pytest.raises(ws.InputError, match="`model` scores pairs"):
        ws.collisions(scorer, QUESTIONS)


@pytest.mark.parametrize(("budget", "confidence"), [(0, 0.95), (0.02, 1), (True, 0.95)])
def test_a_budget_and_a_confidence_are_shares(budget, confidence):
    with pytest.raises(ws.InputError, match="must be a share above 0 and below 1"):
        ws.collisions(bag_of_words, QUESTIONS, budget, confidence=confidence)


def test_pairs_without_any_label_are_refused():
    rows = ws.collisions(bag_of_words, QUESTIONS[:40], 0.3).to_label()
    with pytest.raises(ws.InputError, match="fill in `same` with true or false"):
        ws.collisions(bag_of_words, QUESTIONS[:40], 0.3, pairs=rows)


def test_questions_with_one_vector_have_no_cosine_that_parts_them():
    found = ws.collisions(lambda texts: [[1.0, 2.0]] * len(texts), DOORS, 0.3)
    assert (found.threshold, found.distances) == (None, None)
    assert found.hits(1.0, guard=False)[0] == len(found.asked)


def test_a_question_that_differs_from_all_of_the_cache_has_no_hit_with_the_guard():
    rooms = [f"Is room {number} free?" for number in range(101, 131)]
    found = ws.collisions(bag_of_words, rooms, 0.3, guard=True)
    assert (found.nearest, found.worst()) == (("",) * 15, [])
    assert np.isneginf(found.similarities[[1, 3]]).all()
    assert found.point.hits == 0
