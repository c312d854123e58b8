"""The texts of each label that one word flips: deleted, swapped, or moved as vectors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.display.numbers import Estimate
from wordsens.display.view import View
from wordsens.errors import InputError, require_count
from wordsens.evaluation.requirement import Gated, Requirement, Unmet
from wordsens.evaluation.text_scores import LabelScore, uphill
from wordsens.evaluation.word_effects import WordEffect, WordEffects, word_effects
from wordsens.intervals import share_estimate
from wordsens.maps.mapping import perturbed_texts
from wordsens.models.classifier import Classifier, as_classifier
from wordsens.seeds import Seed
from wordsens.text.whole_words import words_at

# Numbers of a label that a requirement may name.
FIELDS = ("texts", "delete", "swap", "move")

# Shares of a word's length by which it moves along a direction.
_GRID = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4, 1.0)

# Directions: the slope at the text, then at the farthest text of the round before.
_ROUNDS = 3


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ClassFlips(Gated, WordEffects):
    """The words that flip a classifier's label.

    Attributes:
        labels: the label of each text.
        shares: for each label, its number of `texts` and, for each way of changing a word, the
            share of the texts measured in that way that one word flips, an Estimate.
        unmet: the requirements that fail.
    """

    labels: tuple[str, ...]
    shares: dict[str, dict[str, int | Estimate]]
    unmet: tuple[Unmet, ...] = ()

    not_in_dict: ClassVar[tuple[str, ...]] = ("unmet",)

    def columns(self) -> dict[str, Any]:
        """One row per label: its texts, and the shares of them that one word flips."""
        rows = self.shares.values()
        return {
            "label": list(self.shares),
            **{name: [row.get(name) for row in rows] for name in FIELDS},
        }

    def view(self) -> View:
        """One row per label, and the words that flip one."""
        from wordsens.findings.classes import view

        return view(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values."""
        return {**super().to_dict(), "passed": self.passed, "failures": list(self.failures)}


def explain_classes(
    model: Any,
    texts: Sequence[str],
    *,
    labels: Sequence[str] | None = None,
    words_per_text: int = 12,
    tries: int = 4,
    move_texts: int = 20,
    requirements: Sequence[str] = (),
    seed: Seed = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> ClassFlips:
    """The share of each label's texts that one word flips, and the words that do.

    A deletion and a swap are one change each, by classifying the text again. A move is a search
    among moves of the word's rows by up to their own length: a share is a lower bound. "No word
    flips it" is about the words and swaps that were tried. For a classifier of several labels at
    once, the label is the set of classes with a probability of at least 1/2.

    Args:
        model: whatever `as_classifier` takes, or an object with `predict_proba`.
        texts: the texts, each measured once; words past what the model reads are left out.
        labels: the classes' names; None: the model's own.
        words_per_text: words of a text that are measured: negations first, others at random.
        tries: the most `substitutes` that are tried in the place of each word.
        move_texts: texts whose words are also moved as vectors, the first ones; 0 for none.
        requirements: such as "toxic.delete <= .1" or "all.swap <= .2".
        seed: of the draw of words.
        progress: called with (texts done, texts).

    Raises:
        InputError: no such model, a regression, or no text of two words.

    >>> def mood(texts):
    ...     return [[0.9, 0.1] if "bad" in text.split() else [0.2, 0.8] for text in texts]
    >>> flips = explain_classes(mood, ["a bad day", "a good day"], labels=("sad", "glad"), tries=0)
    >>> [(effect.word, effect.label) for effect in flips.effects if effect.label]
    [('bad', 'glad')]
    """
    require_count("tries", tries, least=0)
    require_count("move_texts", move_texts, least=0)
    gate = Requirement.read_all(requirements, FIELDS, "toxic.delete <= .1")
    classifier = as_classifier(model, labels=labels)
    # A regression, which has no labels, is refused before the texts are run.
    classifier.labels_of(torch.empty(0, 1))
    found = word_effects(
        classifier,
        texts,
        ["delete", "swap"] if tries else ["delete"],
        words_per_text=words_per_text,
        tries=max(1, tries),
        seed=seed,
        progress=progress,
    )
    effects, notes = list(found.effects), list(found.notes)
    if classifier.no_rows is None:
        for number, text in enumerate(found.texts[:move_texts]):
            deleted = [effect for effect in found.by("delete") if effect.text == number]
            effects += _moved(classifier, text, deleted)
        if move_texts < len(found.texts):
            notes.append(f"words were moved in the first {move_texts} of {len(found.texts)} texts")
    elif move_texts:
        notes.append(f"no vectors moved: {classifier.no_rows}, and a move takes gradients")
    label_of = [classifier.labels_of(classifier.probabilities([text]))[0] for text in found.texts]
    shares = _shares(effects, label_of)
    unmet = [
        each.unmet(
            shares,
            number=lambda row, field: getattr(row.get(field), "value", row.get(field)),
            missing="no text has this label",
        )
        for each in gate
    ]
    return ClassFlips(
        model=found.model,
        score="probability of the label",
        texts=found.texts,
        effects=tuple(effects),
        read=found.read,
        left_out=found.left_out,
        notes=tuple(notes),
        labels=tuple(label_of),
        shares=shares,
        unmet=tuple(chain(*unmet)),
    )


def _shares(
    effects: Sequence[WordEffect], labels: Sequence[str]
) -> dict[str, dict[str, int | Estimate]]:
    """For each label its texts, and by way the share of them that one word flips."""
    moved = {effect.text for effect in effects if effect.way == "move"}
    shares: dict[str, dict[str, int | Estimate]] = {}
    for label in dict.fromkeys(labels):
        texts = {text for text, its in enumerate(labels) if its == label}
        shares[label] = {"texts": len(texts)}
        for way in dict.fromkeys(effect.way for effect in effects):
            changed = texts & moved if way == "move" else texts
            flipped = {effect.text for effect in effects if effect.way == way and effect.label}
            if changed:
                shares[label][way] = share_estimate(len(changed & flipped), len(changed))
    return shares


@torch.no_grad()
def _moved(classifier: Classifier, text: str, deleted: Sequence[WordEffect]) -> list[WordEffect]:
    """For each of these words the move of its vectors that flips the label, or the last one
    tried."""
    try:
        phi, X, probability = LabelScore(classifier, text).rows(0)
    except InputError:  # hardly a token that the vocabulary knows
        return []
    features = phi.features(X.rows.unsqueeze(0))
    words = words_at(X.whole_words, [effect.span for effect in deleted])
    rows = []
    for effect, word in zip(deleted, words, strict=True):
        if word is None:
            continue
        moved = _flipping(
            lambda texts: classifier.margin(phi.features(texts), features[0]), X.rows, word.rows
        )
        both = torch.stack([X.rows, moved])
        before, after = classifier.labels_of(phi.features(both))
        change = float(probability(both).diff())
        label = "" if after == before else after
        rows.append(replace(effect, way="move", change=change, label=label))
    return rows


def _flipping(
    margin: Callable[[Tensor], Tensor], rows: Float[Tensor, "n d"], member: tuple[int, ...]
) -> Float[Tensor, "n d"]:
    """The text with these rows moved by up to their own length, up to the first move that flips the
    label."""
    places = torch.tensor([member] * len(_GRID))
    start = rows
    for _ in range(_ROUNDS):
        step = -uphill(margin, start, rows)[list(member)]
        moved = perturbed_texts(rows, places, torch.stack([share * step for share in _GRID]))
        flipped = moved[margin(moved) < 0]
        if len(flipped):
            return flipped[0]
        start = moved[-1]
    return start
