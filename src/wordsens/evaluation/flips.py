"""The words that flip a classifier's label: without them, with another in their place, or moved as
vectors."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, groupby
from statistics import fmean, median
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from wordsens.display.numbers import Estimate
from wordsens.display.view import View
from wordsens.errors import InputError, require_count
from wordsens.evaluation.requirement import Gated, Requirement, Unmet
from wordsens.evaluation.substitutes import substitutes
from wordsens.evaluation.text_scores import gradient
from wordsens.evaluation.texts import LEAST_TEXTS, ChosenWords, choose_words, encoded
from wordsens.intervals import ends, share_at_most, share_estimate
from wordsens.maps.mapping import perturbed_texts
from wordsens.models.classifier import REGRESSION, Classifier, as_classifier
from wordsens.models.function import require_texts
from wordsens.seeds import Seed
from wordsens.text.whole_words import Span, with_word, words_at

FIELDS = ("removal", "swap", "radius", "median_radius", "texts")
"""Numbers of a class that a requirement may name."""

_TAIL = 0.05 / 2
"""Of an interval, on either side."""

_GRID = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4, 1.0)
"""Radii that are tried along a direction before the first that flips is narrowed down."""

_HALVINGS = 5
"""Of the last interval of the grid: the radius is then known to 1/128 along its direction."""

_ROUNDS = 3
"""Directions: the slope at the text, then at the farthest or flipped text of the round before."""


@dataclass(frozen=True, kw_only=True)
class FlipWord:
    """One word of one text, and what becomes of the text's label.

    Attributes:
        text: the text's number.
        label: of the text as it is.
        word, start, stop: the word and its place.
        removal: the change of the label's probability without the word: one change.
        removed_to: the label without it; None where it stays.
        swap, swapped_for: the largest fall of the probability by one of `tried` other words, among
            those that flip the label where any does, and that word; None where none was tried.
        swapped_to: the label with that word; None where it stays.
        tried: other words that were tried.
        radius: the smallest at which the word's rows were seen to flip the label, as a share of
            their own length: an upper bound of the smallest; None where none up to 1 flips it, or
            it was not measured.
    """

    text: int
    label: str
    word: str
    start: int
    stop: int
    removal: float
    removed_to: str | None
    swap: float | None = None
    swapped_for: str | None = None
    swapped_to: str | None = None
    tried: int = 0
    radius: float | None = None


@dataclass(frozen=True, kw_only=True)
class ClassFlips:
    """The texts of one label.

    Attributes:
        label: that the model gives them.
        removal, swap: the share of texts that some word's removal, and some tried swap, gives
            another label.
        radius: the share of the texts whose words were moved as vectors that one flips within its
            own length; None where none were.
        median_radius: the median over those texts of their smallest radius; None where fewer than
            half flip.
    """

    label: str
    removal: Estimate
    swap: Estimate | None
    radius: Estimate | None
    median_radius: float | None

    def number(self, field: str) -> float | None:
        """The value of one of FIELDS."""
        value = self.removal.n if field == "texts" else getattr(self, field)
        return value.value if isinstance(value, Estimate) else value


@dataclass(frozen=True, kw_only=True)
class WordFlips:
    """One word in the texts of one label.

    Attributes:
        word, label: which.
        share: of its texts that its removal gives another label.
        usual: the mean over those texts of the share of their other words that do so.
        more: whether the interval at the level .05 over all words' number lies above `usual`.
    """

    word: str
    label: str
    share: Estimate
    usual: float
    more: bool


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LabelFlips(Gated):
    """The words that flip a classifier's labels.

    Attributes:
        model: its name.
        texts: the texts, each once.
        labels: the label that each has.
        words: every word that was measured.
        classes: a row a label.
        by_word: a row a word and label, of words in six texts or more.
        unmet: the requirements that fail.
        notes: what was left out.
    """

    model: str
    texts: tuple[str, ...]
    labels: tuple[str, ...]
    words: tuple[FlipWord, ...]
    classes: tuple[ClassFlips, ...]
    by_word: tuple[WordFlips, ...]
    unmet: tuple[Unmet, ...]
    notes: tuple[str, ...]

    @property
    def answer(self) -> tuple[str, ...]:
        """One sentence per class, and one per word that decides."""
        from wordsens.findings.flips import answer

        return answer(self)

    @property
    def headline(self) -> str:
        """How much was measured."""
        return f"{self.model}: labels that one word flips in {len(self.texts)} texts"

    def view(self) -> View:
        """The sentences, and the words that flip a label."""
        from wordsens.findings.flips import view

        return view(self)

    def columns(self) -> dict[str, Any]:
        """A row a label: shares, and the median radius."""
        names = {
            "texts": "texts",
            "without a word": "removal",
            "with another": "swap",
            "moved": "radius",
            "median radius": "median_radius",
        }
        rows = {title: [row.number(name) for row in self.classes] for title, name in names.items()}
        return {"class": [row.label for row in self.classes], **rows}

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values."""
        rows = {
            name: [asdict(row) for row in getattr(self, name)]
            for name in ("classes", "by_word", "words")
        }
        return {
            "model": self.model,
            "passed": self.passed,
            "failures": list(self.failures),
            "answer": list(self.answer),
            **rows,
            "texts": list(self.texts),
            "labels": list(self.labels),
            "notes": list(self.notes),
        }


def label_flips(
    model: Any,
    texts: Sequence[str],
    *,
    labels: Sequence[str] | None = None,
    words_per_text: int = 12,
    tries: int = 4,
    radius_texts: int = 20,
    requirements: Sequence[str] = (),
    seed: Seed = 0,
) -> LabelFlips:
    """The words that give a text another label, and the share of each label's texts that one word
    can move.

    A removal and a swap are one change each, by classifying the text again; radii are upper bounds
    of the smallest. "No word flips it" is about the words and swaps that were tried. Of a
    classifier of several labels at once the label is the set of those from 1/2 on.

    Args:
        model: whatever `as_classifier` takes.
        texts: the texts, each measured once; words past what the model reads are left out.
        labels: the classes' names; None: the model's own.
        words_per_text: words of a text that are measured: negations first, others at random.
        tries: at most so many of a word's `substitutes`, words that a writer could put there, are
            tried in its place.
        radius_texts: texts whose words are also moved as vectors, the first ones; 0 for none.
        requirements: such as "toxic.removal <= .1" or "all.removal <= .2"; those that are not met
            are `failures`.
        seed: of the words, and of the search that moves them.

    Raises:
        InputError: no such model, a regression, or no text of two words.

    >>> def mood(texts):
    ...     return [[0.9, 0.1] if "bad" in text.split() else [0.2, 0.8] for text in texts]
    >>> flips = label_flips(mood, ["a bad day", "a good day"], labels=("sad", "glad"), tries=0)
    >>> [(word.word, word.removed_to) for word in flips.words if word.removed_to]
    [('bad', 'glad')]
    """
    require_count("words_per_text", words_per_text)
    require_count("tries", tries, least=0)
    require_count("radius_texts", radius_texts, least=0)
    gate = Requirement.read_all(requirements, FIELDS, "toxic.removal <= .1")
    classifier = as_classifier(model, labels=labels)
    if classifier.kind == REGRESSION:
        raise InputError(
            f"{classifier.name} is a regression: it gives a number and no label; use explain"
        )
    chosen, notes = _chosen(classifier, require_texts(texts), words_per_text, seed)
    words = _measured(classifier, chosen, tries)
    if classifier.phi is not None:
        radii = [
            radius
            for each in chosen[:radius_texts]
            for radius in flip_radii(classifier, each.text, each.spans)
        ]
        words[: len(radii)] = [
            replace(word, radius=radius) for word, radius in zip(words, radii, strict=False)
        ]
    elif radius_texts:
        notes.append(
            f"no radii: {classifier.name} gives probabilities alone, and moving a word takes "
            "gradients"
        )
    of_text = [
        list(words_of_text) for _, words_of_text in groupby(words, key=lambda word: word.text)
    ]
    labels_of_texts = tuple(words_of_text[0].label for words_of_text in of_text)
    moved = radius_texts if classifier.phi is not None else 0
    classes = {
        label: _class(label, of_text, tries > 0, moved) for label in dict.fromkeys(labels_of_texts)
    }
    outside = [
        row.unmet(classes, number=ClassFlips.number, missing="no text has this label")
        for row in gate
    ]
    return LabelFlips(
        model=classifier.name,
        texts=tuple(each.text for each in chosen),
        labels=labels_of_texts,
        words=tuple(words),
        classes=tuple(classes.values()),
        by_word=tuple(_by_word(of_text)),
        unmet=tuple(chain(*outside)),
        notes=tuple(notes),
    )


def _chosen(
    classifier: Classifier, texts: Sequence[str], words: int, seed: Seed
) -> tuple[list[ChosenWords], list[str]]:
    """The texts with the words that are measured, and notes on what is left out."""
    every = [
        choose_words(text, words, seed, classifier.read_span(text)) for text in dict.fromkeys(texts)
    ]
    chosen = [each for each in every if each.length > 1 and each.words]
    if not chosen:
        raise InputError("`texts` holds none of two words or more; a flip takes one away")
    notes = []
    if len(chosen) < len(texts):
        notes.append(f"{len(texts) - len(chosen)} texts are copies or have fewer than two words")
    if cut := [each for each in every if each.unread]:
        notes.append(
            f"{sum(each.unread for each in cut)} words of {len(cut)} texts are past what the model "
            "reads and were "
            f"not measured, the first text is {cut[0].text[:40]!r}..."
        )
    return chosen, notes


def _measured(classifier: Classifier, chosen: Sequence[ChosenWords], tries: int) -> list[FlipWord]:
    """Every word's removal and best swap."""
    # Each text is followed by the text without each of its words, and then with each of the words
    # tried.
    tried = [[substitutes(each.text, span)[:tries] for span in each.spans] for each in chosen]
    variants: list[str] = []
    for each, others in zip(chosen, tried, strict=True):
        swaps = [
            with_word(each.text, span, other)
            for span, some in zip(each.spans, others, strict=True)
            for other in some
        ]
        variants += [each.text, *each.changed, *swaps]
    rows = encoded(classifier.probabilities, variants)
    labels = classifier.labels_of(rows)
    words, start = [], 0
    for number, (each, others) in enumerate(zip(chosen, tried, strict=True)):
        label, row = labels[start], rows[start]
        swap = start + 1 + len(each.words)
        stop = swap + sum(map(len, others))
        support = classifier.support(rows[start:stop], row)
        falls = dict(zip(range(start, stop), (support - support[0]).tolist(), strict=True))

        def flipped(variant: int, label: str = label) -> str | None:
            return None if labels[variant] == label else labels[variant]

        for removed, (word, span, some) in enumerate(
            zip(each.words, each.spans, others, strict=True), start + 1
        ):
            measured = FlipWord(
                text=number,
                label=label,
                word=word,
                start=span[0],
                stop=span[1],
                removal=falls[removed],
                removed_to=flipped(removed),
                tried=len(some),
            )
            if some:
                best = min(
                    range(swap, swap + len(some)), key=lambda at: (flipped(at) is None, falls[at])
                )
                other = some[best - swap]
                measured = replace(
                    measured, swap=falls[best], swapped_for=other, swapped_to=flipped(best)
                )
            swap += len(some)
            words.append(measured)
        start = stop
    return words


def _class(
    label: str, of_text: Sequence[Sequence[FlipWord]], swapped: bool, moved: int
) -> ClassFlips:
    """The row of a label; the words of the first `moved` texts were moved as vectors."""
    texts = [words for words in of_text if words[0].label == label]

    def share(field: str) -> Estimate:
        return share_estimate(
            sum(any(getattr(word, field) for word in words) for words in texts), len(texts)
        )

    radii = [
        min((word.radius for word in words if word.radius is not None), default=float("inf"))
        for words in texts
        if words[0].text < moved
    ]
    middle = median(radii) if radii else float("inf")
    return ClassFlips(
        label=label,
        removal=share("removed_to"),
        swap=share("swapped_to") if swapped else None,
        radius=share_estimate(sum(radius <= 1 for radius in radii), len(radii)) if radii else None,
        median_radius=middle if middle <= 1 else None,
    )


def _by_word(texts: Iterable[Sequence[FlipWord]]) -> list[WordFlips]:
    """Words in LEAST_TEXTS texts of a label or more, those that flip most first.

    A text that is on the edge is flipped by many words: a word's share is set against that of the
    other words of the same texts.
    """
    flipped: dict[tuple[str, str], list[tuple[bool, float]]] = {}
    for words in texts:
        for name in dict.fromkeys(word.word.lower() for word in words):
            flips = [word.removed_to is not None for word in words if word.word.lower() == name]
            others = [word.removed_to is not None for word in words if word.word.lower() != name]
            if others:
                flipped.setdefault((name, words[0].label), []).append((any(flips), fmean(others)))
    frequent = {key: counts for key, counts in flipped.items() if len(counts) >= LEAST_TEXTS}
    rows = []
    for (name, label), counts in frequent.items():
        hits, usual = sum(flips for flips, _ in counts), fmean(others for _, others in counts)
        # Of many words some stand out by chance: the level is shared among them.
        low = 1 - share_at_most(len(counts) - hits, len(counts), 1 - _TAIL / len(frequent))
        share = share_estimate(hits, len(counts))
        rows.append(
            WordFlips(word=name, label=label, share=share, usual=usual, more=bool(low > usual))
        )
    return sorted(rows, key=lambda row: (-ends(row.share)[0], row.word))


def flip_radii(classifier: Classifier, text: str, spans: Sequence[Span]) -> list[float | None]:
    """For every word the smallest radius at which its rows were seen to flip the label.

    Every row j of the word moves by up to radius ‖x_j‖ along the slope of the label's margin. An
    upper bound of the smallest: the text at that radius has another label. None where none up to 1
    flips, or the model did not read the word. The classifier has a map.
    """
    phi = classifier.phi
    assert phi is not None
    try:
        X = phi.embed([text])[0]
    except InputError:  # hardly a token that the vocabulary knows
        return [None] * len(spans)
    unchanged = phi.features(X.rows.unsqueeze(0))[0].detach()

    def margin(texts: Tensor) -> Tensor:
        return classifier.margin(phi.features(texts), unchanged)

    words = words_at(X.whole_words, spans)
    return [None if word is None else _smallest(margin, X.rows, word.rows) for word in words]


def _smallest(
    margin: Callable[[Tensor], Tensor], rows: Float[Tensor, "n d"], member: tuple[int, ...]
) -> float | None:
    """The smallest radius over a few directions: the slope at the text, then at the farthest or
    flipped one."""
    lengths = torch.linalg.vector_norm(rows[list(member)], dim=1, keepdim=True)

    def moved(step: Float[Tensor, "g d"], radii: Sequence[float]) -> Float[Tensor, "b n d"]:
        places = torch.tensor([member] * len(radii))
        return perturbed_texts(rows, places, torch.stack([radius * step for radius in radii]))

    def along(step: Float[Tensor, "g d"], most: float) -> float | None:
        """The smallest radius up to `most` that was seen to flip along the step; None where none
        does."""

        @torch.no_grad()
        def flips(radii: Sequence[float]) -> list[bool]:
            return (margin(moved(step, radii)) < 0).tolist()

        radii = [share * most for share in _GRID]
        first = next((index for index, flipped in enumerate(flips(radii)) if flipped), None)
        if first is None:
            return None
        low, high = (radii[first - 1] if first else 0.0), radii[first]
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if flips([middle])[0] else (middle, high)
        return high

    start, best = rows, None
    for _ in range(_ROUNDS):
        step = -lengths * normalize(gradient(margin, start)[list(member)], dim=1)
        best = along(step, best or 1.0) or best
        start = moved(step, [best or 1.0])[0]
    return best
