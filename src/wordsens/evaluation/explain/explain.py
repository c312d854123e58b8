"""The words that carry one score, one embedding, or one text's sensitivity under a map."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError, require_count
from wordsens.evaluation.explain.explanation import SHOWN, Explanation, PairEffect, WordEffect
from wordsens.evaluation.explain.scores import ClassScore, CosineScore, MovedScore, RerankerScore, Score, gradient
from wordsens.evaluation.near_misses.lists import ANTONYMS, QUANTITIES, TIMES
from wordsens.maps.contract import FeatureMap
from wordsens.maps.mapping import perturbed_texts
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.models.load import as_model, as_pair_model, is_pair_model
from wordsens.models.pairs import PairModel
from wordsens.seeds import Seed, derive_seed
from wordsens.sensitivity.one_word import word_sensitivity
from wordsens.text.alternatives import SameKind
from wordsens.text.matrix import TextMatrix
from wordsens.text.shipped_data import shipped_reviews
from wordsens.text.whole_words import with_word, without, word_spans

BATCH = 32
"""Moved texts that run together."""


@dataclass(frozen=True, kw_only=True)
class ExplainPlan:
    """The effort of an explanation.

    Attributes:
        tries: other words tried in the place of each: those of the other text that this one lacks, listed opposites,
            then random words of the same kind.
        vectors: whether each word is also moved as a vector, where the model has gradients.
    """

    tries: int = 2
    vectors: bool = True

    def __post_init__(self) -> None:
        require_count("tries", self.tries, least=0)


def explain(
    model: Any,
    text: str | TextMatrix,
    other: str | None = None,
    *,
    target: int | None = None,
    plan: ExplainPlan | None = None,
    seed: Seed = 0,
) -> Explanation:
    """The words that carry a number: what becomes of it without each, with another in its place, or moved as a vector.

    The number is the cosine of two texts; of a model that scores pairs, its score; of a classifier, the probability of
    a class; of one text alone, how far its vector moves. A removal and a swap are one change each, by encoding the text
    again; `lowers` and `raises` are attained: the score at x_G ± the longest step along its slope, ‖x_j‖ for every row
    j of the word G, lower bounds of what the best vector does.

    Args:
        model: whatever `as_model` or `as_pair_model` takes; a TransformerFeatures with output="probabilities" for
            classes; or any feature map, with `text` as rows: its sensitivities and their certified bounds.
        text: the text.
        other: the text that it is compared with.
        target: the class; None for the likeliest.
        plan: the effort.
        seed: of the random words.

    Raises:
        InputError: no such model, a text without a word, or what the model cannot be asked.

    >>> def letters(texts):
    ...     return [[text.count(letter) + 0.1 for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]
    >>> found = explain(letters, "the door is open", "the door is shut", plan=ExplainPlan(tries=0))
    >>> found.most("apart", 1)[0].word, found.most("apart", 1)[0].counterpart
    ('open', 'shut')
    """
    if isinstance(text, TextMatrix):
        return _of_rows(model, text, seed)
    plan = plan or ExplainPlan()
    score, name = _score(model, text, other, target)
    spans = [_words(each) for each in score.texts]
    effects = [_removed(score, side, spans[side]) for side in range(len(score.texts))]
    effects, pairs = _together(score, spans, effects)
    notes = []
    for side in range(len(score.texts)):
        if plan.tries:
            effects[side] = _swapped(score, side, spans[side], effects[side], plan.tries, seed)
        if plan.vectors:
            effects[side], note = _moved(score, side, spans[side], effects[side])
            notes += [note] if note and note not in notes else []
    return Explanation(
        name, score.name, score.value, score.texts, tuple(word for one in effects for word in one), pairs, tuple(notes)
    )


def _score(model: Any, text: str, other: str | None, target: int | None) -> tuple[Score, str]:
    if isinstance(model, TransformerFeatures) and model.output == "probabilities":
        if other is not None:
            raise InputError("`other` goes with a model of embeddings or of pairs; leave it out for a classifier")
        return ClassScore(model, text, target), model.name
    if target is not None:
        raise InputError(f"`target` (={target}) goes with a classifier: a TransformerFeatures of probabilities")
    if isinstance(model, PairModel) or is_pair_model(model):
        if other is None:
            raise InputError("`other` is missing: this model scores pairs of texts; give both")
        pair = as_pair_model(model)
        return RerankerScore(pair, text, other), pair.name
    asked = as_model(model)
    return (MovedScore(asked, text) if other is None else CosineScore(asked, text, other)), asked.name


def _words(text: str) -> list[tuple[int, int]]:
    """The places of the words that have a letter or digit."""
    found = [span for span in word_spans(text) if any(sign.isalnum() for sign in text[slice(*span)])]
    if len(found) < 2:
        raise InputError(f"`text` (={text[:40]!r}) has {len(found)} words; an explanation compares two or more")
    return found


def _removed(score: Score, side: int, spans: Sequence[tuple[int, int]]) -> list[WordEffect]:
    text = score.texts[side]
    changes = score.of(side, [without(text, span) for span in spans]) - score.value
    return [
        WordEffect(side=side, word=text[start:stop], start=start, stop=stop, removal=change)
        for (start, stop), change in zip(spans, changes.tolist(), strict=True)
    ]


def _together(
    score: Score, spans: Sequence[Sequence[tuple[int, int]]], effects: list[list[WordEffect]]
) -> tuple[list[list[WordEffect]], tuple[PairEffect, ...]]:
    """Words of the two texts removed together: every word's counterpart, and the pairs that are no sum."""
    if len(effects) < 2:
        return effects, ()
    texts = [[without(text, span) for span in places] for text, places in zip(score.texts, spans, strict=True)]
    scores = score.together(*texts)
    if scores is None:
        return effects, ()
    joint = scores - score.value
    told = []
    for side, table in enumerate((joint, joint.T)):
        best, at = table.max(dim=1)
        others = effects[1 - side]
        told.append(
            [
                replace(word, apart=rise, counterpart=others[index].word)
                for word, rise, index in zip(effects[side], best.tolist(), at.tolist(), strict=True)
            ]
        )
    first, second = (torch.tensor([word.removal for word in one], dtype=joint.dtype) for one in effects)
    alone = first.unsqueeze(1) + second
    order = (joint - alone).abs().flatten().argsort(descending=True)[:SHOWN].tolist()
    pairs = []
    for at in order:
        one, two = divmod(at, len(effects[1]))
        pairs.append(
            PairEffect(
                first=effects[0][one].word, second=effects[1][two].word, first_at=one, second_at=len(effects[0]) + two,
                together=float(joint[one, two]), alone=float(alone[one, two]),
            )
        )  # fmt: skip
    return told, tuple(pairs)


def _swapped(
    score: Score, side: int, spans: Sequence[tuple[int, int]], effects: Sequence[WordEffect], tries: int, seed: Seed
) -> list[WordEffect]:
    text = score.texts[side]
    own = {word.word.lower() for word in effects}
    elsewhere = [score.texts[other][slice(*span)] for other in range(len(score.texts)) if other != side
                 for span in _words(score.texts[other])]  # fmt: skip
    lacking = [word for word in dict.fromkeys(elsewhere) if word.lower() not in own]
    same_kind = SameKind([*score.texts, *(review.text for review in shipped_reviews())])
    chance = random.Random(derive_seed(seed, "explain", text))
    tried = []
    for word in effects:
        near = [other for other in (word.counterpart, *lacking) if other in lacking]
        listed = [words[word.word.lower()] for words in (ANTONYMS, QUANTITIES, TIMES) if word.word.lower() in words]
        drawn = chance.sample(offered := same_kind(word.word), min(tries, len(offered)))
        others = [other for other in dict.fromkeys([*near[:1], *listed, *drawn]) if other.lower() != word.word.lower()]
        tried.append(others[:tries])
    asked = [with_word(text, span, other) for span, others in zip(spans, tried, strict=True) for other in others]
    if not asked:
        return list(effects)
    changes = iter((score.of(side, asked) - score.value).tolist())
    told = []
    for word, others in zip(effects, tried, strict=True):
        found = [(next(changes), other) for other in others]
        best = max(found, key=lambda one: abs(one[0]), default=(None, None))
        told.append(replace(word, swap=best[0], swapped_for=best[1], tried=len(others)))
    return told


def _moved(
    score: Score, side: int, spans: Sequence[tuple[int, int]], effects: Sequence[WordEffect]
) -> tuple[list[WordEffect], str | None]:
    """The score with every word's rows moved as far as they are long, up and down its slope."""
    try:
        phi, X, function = score.function(side)
    except InputError as error:
        return list(effects), f"No vectors: {error}"
    rows = X.rows
    members = rows_of(X, [word.word for word in effects])
    if score.signed:
        slope = gradient(function, rows)
    else:
        # A distance has no slope where it is 0: that of the features' sum of squares along a random direction.
        direction = torch.randn(phi(rows).numel(), generator=torch.Generator().manual_seed(derive_seed(0, "slope")))
        slope = gradient(lambda moved: phi.features(moved).flatten(1) @ direction.to(moved), rows)
    radius = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    step = radius * torch.nn.functional.normalize(slope, dim=1)
    told = list(effects)
    placed = [(at, member) for at, member in enumerate(members) if member]
    moved = torch.cat(
        [rows.expand(1, *rows.shape)]
        + [
            perturbed_texts(rows, torch.tensor([member]), sign * step[list(member)].unsqueeze(0))
            for _, member in placed
            for sign in (1, -1)
        ]
    )
    with torch.no_grad():
        values = torch.cat([function(part).double() for part in moved.split(BATCH)])
    changes = (values[1:] - values[0]).view(-1, 2)
    for (at, _), (up, down) in zip(placed, changes.tolist(), strict=True):
        raises, lowers = max(up, down), min(up, down)
        told[at] = replace(told[at], raises=max(raises, 0.0), lowers=min(lowers, 0.0) if score.signed else None)
    return told, None


def rows_of(X: TextMatrix, words: Sequence[str]) -> list[tuple[int, ...] | None]:
    """The rows of each word; None for words that the model did not read."""
    whole, at, found = X.whole_words or (), 0, []
    for word in words:
        place = next((index for index in range(at, len(whole)) if whole[index].text == word), None)
        found.append(None if place is None else whole[place].rows)
        at = at if place is None else place + 1
    return found


def _of_rows(phi: Any, X: TextMatrix, seed: Seed) -> Explanation:
    """The sensitivities of a map that takes rows, and their certified bounds where it has any."""
    if not isinstance(phi, FeatureMap):
        raise InputError("`text` as rows goes with a feature map as `model`; pass a text for a model")
    found = word_sensitivity(phi, X, seed=seed)
    upper: Float[Tensor, " w"] | None = found.upper_per_word
    names, at, words = [X.word(row) for row in range(len(X))], 0, []
    for row, (name, value) in enumerate(zip(names, found.per_word.tolist(), strict=True)):
        bound = None if upper is None else float(upper[row])
        words.append(
            WordEffect(side=0, word=name, start=at, stop=at + len(name), removal=None, raises=value, upper=bound)
        )
        at += len(name) + 1
    return Explanation(phi.name, "relative change", 0.0, (" ".join(names),), tuple(words), (), phi.notes)
