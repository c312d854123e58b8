"""The words that flip a classifier's label: without them, with another in their place, or moved as vectors."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from statistics import fmean, median
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from wordsens.display.content import Display, Marked, Strong, Table
from wordsens.errors import InputError, require_count
from wordsens.evaluation.explain import gradient
from wordsens.evaluation.replacements import Replacements, neighbours
from wordsens.evaluation.requirement import Requirement
from wordsens.evaluation.texts import LEAST_TEXTS, ChosenWords, Progress, choose_words, encoded
from wordsens.maps.mapping import perturbed_texts
from wordsens.models.black_box import require_texts
from wordsens.models.classifier import REGRESSION, Classifier, as_classifier
from wordsens.results import Result, ResultTable
from wordsens.seeds import Seed
from wordsens.statistics.operating_point import share_at_most, share_interval
from wordsens.text.whole_words import Span, with_word, words_at

FIELDS = ("removal", "swap", "radius", "median_radius", "texts")
"""Numbers of a class that a requirement may name."""

_TAIL = 0.05 / 2
"""Of an interval, on either side."""

_SHOWN, _AROUND = 10, 40
"""Words that are shown, and the letters of their text on either side."""

_NAMED = 5
"""Words that a sentence names."""

_GRID = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4, 1.0)
"""Radii that are tried along a direction before the first that flips is narrowed down."""

_HALVINGS = 5
"""Of the last interval of the grid: the radius is then known to 1/128 along its direction."""

_ROUNDS = 3
"""Directions: the slope at the text, then at the farthest or flipped text of the round before."""


@dataclass(frozen=True, kw_only=True)
class FlipPlan:
    """The effort.

    Attributes:
        words_per_text: words of a text that are measured: negations first, others at random.
        tries: other words tried in the place of each: listed opposites, then the model's nearest words of its kind; of
            a function random ones.
        radius_texts: texts whose words are also moved as vectors, the first ones; 0 for none.
    """

    words_per_text: int = 12
    tries: int = 4
    radius_texts: int = 20

    def __post_init__(self) -> None:
        require_count("words_per_text", self.words_per_text)
        require_count("tries", self.tries, least=0)
        require_count("radius_texts", self.radius_texts, least=0)


@dataclass(frozen=True, kw_only=True)
class FlipWord:
    """One word of one text, and what becomes of the text's label.

    Attributes:
        text: the text's number.
        label: of the text as it is.
        word, start, stop: the word and its place.
        removal: the change of the label's probability without the word: one change.
        removed_to: the label without it; None where it stays.
        swap, swapped_for: the largest fall of the probability by one of `tried` other words, among those that flip
            the label where any does, and that word; None where none was tried.
        swapped_to: the label with that word; None where it stays.
        tried: other words that were tried.
        radius: the smallest at which the word's rows were seen to flip the label, as a share of their own length:
            attained, so an upper bound; None where none up to 1 flips it, or it was not measured.
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
class Share:
    """A share of `count` with its 95 % interval (Clopper and Pearson 1934)."""

    value: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, hits: int, count: int) -> "Share":
        """The share of hits."""
        return cls(
            value=hits / count, **dict(zip(("low", "high"), share_interval(hits, count), strict=True)), count=count
        )

    def __str__(self) -> str:
        return f"{self.value:.0%} ({self.low:.0%} to {self.high:.0%})"


@dataclass(frozen=True, kw_only=True)
class ClassFlips:
    """The texts of one label.

    Attributes:
        label: that the model gives them.
        removal, swap: the share of texts that some word's removal, and some tried swap, gives another label.
        radius: the share of the texts whose words were moved as vectors that one flips within its own length; None
            where none were.
        median_radius: the median over those texts of their smallest radius; None where fewer than half flip.
    """

    label: str
    removal: Share
    swap: Share | None
    radius: Share | None
    median_radius: float | None

    def field(self, name: str) -> float | None:
        """The value of one of FIELDS."""
        if name == "texts":
            return self.removal.count
        value = getattr(self, name)
        return value.value if isinstance(value, Share) else value


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
    share: Share
    usual: float
    more: bool


@dataclass(frozen=True, eq=False, repr=False)
class LabelFlips(Result):
    """The words that flip a classifier's labels.

    Attributes:
        model: its name.
        texts: the texts, each once.
        labels: the label that each has.
        words: every word that was measured.
        classes: a row a label.
        by_word: a row a word and label, of words in six texts or more.
        failures: a sentence for every requirement that is not met.
        notes: what was left out.
    """

    model: str
    texts: tuple[str, ...]
    labels: tuple[str, ...]
    words: tuple[FlipWord, ...]
    classes: tuple[ClassFlips, ...]
    by_word: tuple[WordFlips, ...]
    failures: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """True where every requirement is met."""
        return not self.failures

    @cached_property
    def answer(self) -> tuple[str, ...]:
        """The findings in sentences."""
        return tuple(self._sentences())

    def _sentences(self) -> Iterator[str]:
        for row in self.classes:
            sentence = f"{row.label}: {row.removal} of {row.removal.count} texts leave the class without one word"
            if row.swap is not None:
                sentence += f"; {row.swap} with one word exchanged for another that was tried"
            if row.radius is not None:
                middle = "" if row.median_radius is None else f", half of them within {row.median_radius:.2f} of it"
                sentence += f"; {row.radius} of {row.radius.count} with one word moved by up to its own length{middle}"
            yield sentence + "."
        for row in [row for row in self.by_word if row.more][:_NAMED]:
            yield (
                f"'{row.word}' decides: without it {row.share} of {row.share.count} {row.label} texts leave the class; "
                f"without another word of them {row.usual:.0%}."
            )

    def result_table(self) -> ResultTable:
        """A row a label."""
        rows = self.classes
        columns = {
            "class": [row.label for row in rows],
            "texts": [row.removal.count for row in rows],
            "without a word": [str(row.removal) for row in rows],
            "with another": [str(row.swap or "") for row in rows],
            "moved": [str(row.radius or "") for row in rows],
            "median radius": [row.median_radius for row in rows],
        }
        return ResultTable(f"{self.model}: labels that one word flips", columns, notes=(*self.answer, *self.notes))

    def display(self) -> Display:
        """The findings, the words whose removal flips a label, and the words that do so more than others."""
        flipping = sorted((word for word in self.words if word.removed_to), key=lambda word: word.removal)
        words = Table(
            "Words whose removal flips the label (one change)",
            ("word", "in", "label", "with another word", "radius"),
            tuple(map(self._flipped, flipping)),
            most=_SHOWN,
        )
        rows = [row for row in self.by_word if row.share.value > 0]
        shares = Table(
            "Share of a word's texts that its removal flips; coloured where surely more than other words do",
            ("word", "class", "flipped", "texts", "others"),
            tuple(
                (
                    Strong(row.word, "rise") if row.more else row.word,
                    *(row.label, str(row.share), row.share.count, f"{row.usual:.0%}"),
                )
                for row in rows
            ),
            most=_SHOWN,
        )
        return Display(
            (f"{self.model}: {len(self.texts)} texts, {len(self.words)} words", *self.answer),
            (words, shares),
            failures=self.failures,
            notes=self.notes,
        )

    def _flipped(self, word: FlipWord) -> tuple[Any, ...]:
        """The word in its text, and where the text goes without it, or with another."""
        text = self.texts[word.text]
        around = " ".join(text[max(0, word.start - _AROUND) : word.stop + _AROUND].split())
        shown = f"{'...' * (word.start > _AROUND)}{around}{'...' * (word.stop + _AROUND < len(text))}"
        swap = f"{word.swapped_for}: {word.swapped_to}" if word.swapped_to else None
        radius = None if word.radius is None else f"{word.radius:.2f}"
        change = f"{word.removal:+.3f}"
        return word.word, Marked(shown, (word.word,)), f"{word.label} -> {word.removed_to} ({change})", swap, radius

    def of_text(self, at: int) -> tuple[FlipWord, ...]:
        """The words of a text, those first whose removal takes most from its label."""
        return tuple(sorted((word for word in self.words if word.text == at), key=lambda word: word.removal))

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values."""
        return {
            "model": self.model,
            "passed": self.passed,
            "failures": list(self.failures),
            "answer": list(self.answer),
            "classes": [asdict(row) for row in self.classes],
            "by_word": [asdict(row) for row in self.by_word],
            "words": [asdict(word) for word in self.words],
            "texts": list(self.texts),
            "labels": list(self.labels),
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        return "\n".join(self.answer)


def label_flips(
    model: Any,
    texts: Sequence[str],
    *,
    labels: Sequence[str] | None = None,
    plan: FlipPlan | None = None,
    requirements: Sequence[str] = (),
    seed: Seed = 0,
    progress: Progress = lambda done: None,
) -> LabelFlips:
    """The words that give a text another label, and the share of each label's texts that one word can move.

    A removal and a swap are one change each, by classifying the text again; radii are attained, upper bounds of the
    smallest. "No word flips it" is about the words and swaps that were tried. Of a classifier of several labels at once
    the label is the set of those from 1/2 on.

    Args:
        model: whatever `as_classifier` takes.
        texts: the texts, each measured once; words past what the model reads are left out.
        labels: the classes' names; None: the model's own.
        plan: the effort.
        requirements: such as "toxic.removal <= .1" or "all.removal <= .2"; those that are not met are `failures`.
        seed: of the words and of the swaps.
        progress: called with the number of texts classified since the last call.

    Raises:
        InputError: no such model, a regression, or no text of two words.

    >>> def mood(texts):
    ...     return [[0.9, 0.1] if "bad" in text.split() else [0.2, 0.8] for text in texts]
    >>> result = label_flips(mood, ["a bad day", "a good day"], labels=("sad", "glad"), plan=FlipPlan(tries=0))
    >>> [(word.word, word.removed_to) for word in result.words if word.removed_to]
    [('bad', 'glad')]
    """
    plan, classifier = plan or FlipPlan(), as_classifier(model, labels=labels)
    if classifier.kind == REGRESSION:
        raise InputError(f"{classifier.name} is a regression: it gives a number and no label; use explain")
    gate = [Requirement.read(one, FIELDS, "toxic.removal <= .1") for one in _listed(requirements)]
    chosen, notes = _chosen(classifier, require_texts(texts), plan, seed)
    tried = _tried(classifier, chosen, plan.tries, seed)
    words = _measured(classifier, chosen, tried, progress)
    if classifier.phi is not None and plan.radius_texts:
        words = _with_radii(classifier, chosen, words, plan.radius_texts)
    elif plan.radius_texts:
        notes.append(f"no radii: {classifier.name} gives probabilities alone, and moving a word takes gradients")
    by_text = {word.text: word.label for word in words}
    rows = tuple(_class(label, words, plan) for label in dict.fromkeys(by_text.values()))
    return LabelFlips(
        classifier.name, tuple(each.text for each in chosen), tuple(by_text[at] for at in range(len(chosen))),
        tuple(words), rows, tuple(_by_word(words)), tuple(_failures(gate, rows)), tuple(notes),
    )  # fmt: skip


def _listed(requirements: Sequence[str]) -> Sequence[str]:
    return [requirements] if isinstance(requirements, str) else requirements


def _failures(gate: Sequence[Requirement], rows: Sequence[ClassFlips]) -> Iterator[str]:
    for one in gate:
        named = [row for row in rows if one.kind in ("all", row.label)]
        if not named:
            yield f"{one.text}: no text has the label {one.kind!r}"
        for row in named:
            value = row.field(one.field)
            if not one.met(value):
                shown = "none" if value is None else f"{value:.4g}"
                yield f"{row.label}.{one.field} is {shown}, required {one.sign} {one.bound:g}"


def _chosen(
    classifier: Classifier, texts: Sequence[str], plan: FlipPlan, seed: Seed
) -> tuple[list[ChosenWords], list[str]]:
    """The texts with the words that are measured, and notes on what is left out."""
    different = list(dict.fromkeys(texts))
    parts = [classifier.read_span(text) for text in different]
    every = [choose_words(text, plan.words_per_text, seed, part) for text, part in zip(different, parts, strict=True)]
    chosen = [each for each in every if each.length > 1 and each.words]
    if not chosen:
        raise InputError("`texts` holds none of two words or more; a flip takes one away")
    notes = []
    if len(chosen) < len(texts):
        notes.append(f"{len(texts) - len(chosen)} texts are copies or have fewer than two words")
    cut = [each for each, part in zip(every, parts, strict=True) if part != (0, len(each.text))]
    if cut:
        notes.append(
            f"{sum(each.unread for each in cut)} words of {len(cut)} texts are past what the model reads and were "
            f"not measured, the first text is {cut[0].text[:40]!r}..."
        )
    return chosen, notes


def _tried(classifier: Classifier, chosen: Sequence[ChosenWords], tries: int, seed: Seed) -> list[list[list[str]]]:
    """The words that are tried in the place of each."""
    offered = Replacements((each.text for each in chosen), seed=seed)
    near = neighbours(classifier.phi, [word for each in chosen for word in each.words]) if tries else {}

    def others(word: str) -> list[str]:
        result = dict.fromkeys([*offered.opposites(word), *(near.get(word) or offered(word))])
        return [other for other in result if other.lower() != word.lower()][:tries]

    return [[others(word) if tries else [] for word in each.words] for each in chosen]


def _measured(
    classifier: Classifier, chosen: Sequence[ChosenWords], tried: Sequence[Sequence[Sequence[str]]], progress: Progress
) -> list[FlipWord]:
    """Every word's removal and best swap."""
    variants = [each.text for each in chosen]
    for each, others in zip(chosen, tried, strict=True):
        variants += each.changed
        variants += [
            with_word(each.text, span, other) for span, some in zip(each.spans, others, strict=True) for other in some
        ]
    rows = encoded(classifier.probabilities, variants, progress)
    labels = classifier.labels_of(rows)
    at, words = len(chosen), []
    for number, (each, others) in enumerate(zip(chosen, tried, strict=True)):
        own = labels[number]
        falls = (
            classifier.support(rows, rows[number]) - classifier.support(rows[number : number + 1], rows[number])
        ).tolist()
        swaps = at + len(each.words)
        for place, word in enumerate(each.words):
            removed = at + place
            measured = FlipWord(
                text=number, label=own, word=word, start=each.spans[place][0], stop=each.spans[place][1],
                removal=falls[removed], removed_to=_other(labels[removed], own), tried=len(others[place]),
            )  # fmt: skip
            offered = range(swaps, swaps + len(others[place]))
            swaps += len(others[place])
            if offered:
                best = min(offered, key=lambda one: (labels[one] == own, falls[one]))
                measured = replace(
                    measured, swap=falls[best], swapped_for=others[place][best - offered.start],
                    swapped_to=_other(labels[best], own),
                )  # fmt: skip
            words.append(measured)
        at = swaps
    return words


def _other(label: str, own: str) -> str | None:
    return None if label == own else label


def _with_radii(
    classifier: Classifier, chosen: Sequence[ChosenWords], words: Sequence[FlipWord], most: int
) -> list[FlipWord]:
    """The words with the radii of those of the first texts."""
    radii = [radius for each in chosen[:most] for radius in flip_radii(classifier, each.text, each.spans)]
    moved = [replace(word, radius=radius) for word, radius in zip(words, radii, strict=False)]
    return [*moved, *words[len(moved) :]]


def _class(label: str, words: Sequence[FlipWord], plan: FlipPlan) -> ClassFlips:
    by_text: dict[int, list[FlipWord]] = {}
    for word in words:
        if word.label == label:
            by_text.setdefault(word.text, []).append(word)
    own = list(by_text.values())
    moved = [some for at, some in by_text.items() if at < plan.radius_texts]
    measured = any(word.radius is not None for word in words)
    smallest = [min((word.radius for word in some if word.radius is not None), default=float("inf")) for some in moved]
    middle = median(smallest) if measured and smallest else float("inf")
    return ClassFlips(
        label=label,
        removal=Share.of(sum(any(word.removed_to for word in some) for some in own), len(own)),
        swap=Share.of(sum(any(word.swapped_to for word in some) for some in own), len(own)) if plan.tries else None,
        radius=Share.of(sum(one <= 1 for one in smallest), len(smallest)) if measured and smallest else None,
        median_radius=middle if middle <= 1 else None,
    )


def _by_word(words: Sequence[FlipWord]) -> Iterator[WordFlips]:
    """Words in LEAST_TEXTS texts of a label or more, those that flip most first.

    A text that is on the edge is flipped by many words: a word's share is set against that of the other words of the
    same texts.
    """
    by_text: dict[int, list[FlipWord]] = {}
    for word in words:
        by_text.setdefault(word.text, []).append(word)
    flipped: dict[tuple[str, str], list[tuple[bool, float]]] = {}
    for some in by_text.values():
        for name in dict.fromkeys(word.word.lower() for word in some):
            own = [word.removed_to is not None for word in some if word.word.lower() == name]
            others = [word.removed_to is not None for word in some if word.word.lower() != name]
            if others:
                flipped.setdefault((name, some[0].label), []).append((any(own), fmean(others)))
    frequent = {key: texts for key, texts in flipped.items() if len(texts) >= LEAST_TEXTS}
    rows = []
    for (name, label), texts in frequent.items():
        hits, usual = sum(own for own, _ in texts), fmean(others for _, others in texts)
        # Of many words some stand out by chance: the level is shared among them.
        low = 1 - share_at_most(len(texts) - hits, len(texts), 1 - _TAIL / len(frequent))
        rows.append(
            WordFlips(word=name, label=label, share=Share.of(hits, len(texts)), usual=usual, more=bool(low > usual))
        )
    yield from sorted(rows, key=lambda row: (-row.share.low, row.word))


def flip_radii(classifier: Classifier, text: str, spans: Sequence[Span]) -> list[float | None]:
    """For every word the smallest radius at which its rows were seen to flip the label.

    Every row j of the word moves by up to radius ‖x_j‖ along the slope of the label's margin. The text at the radius
    that is given has another label; a smaller one may too. None where none up to 1 flips, or the model did not read
    the word.

    Args:
        classifier: with a map.
        text: the text.
        spans: of its words.
    """
    phi = classifier.phi
    assert phi is not None
    try:
        X = phi.embed([text])[0]
    except InputError:  # hardly a token that the vocabulary knows
        return [None] * len(spans)
    own = phi.features(X.rows.unsqueeze(0))[0].detach()

    def margin(texts: Tensor) -> Tensor:
        return classifier.margin(phi.features(texts), own)

    words = words_at(X.whole_words, spans)
    return [None if word is None else _smallest(margin, X.rows, word.rows) for word in words]


def _smallest(margin: Callable[[Tensor], Tensor], rows: Float[Tensor, "n d"], member: tuple[int, ...]) -> float | None:
    own = list(member)
    lengths = torch.linalg.vector_norm(rows[own], dim=1, keepdim=True)
    at, best = rows, None
    for _ in range(_ROUNDS):
        step = -lengths * normalize(gradient(margin, at)[own], dim=1)
        radius = _along(margin, rows, member, step, best or 1.0)
        best = radius if radius is not None else best
        at = _moved(rows, member, step, [best or 1.0])[0]
    return best


def _along(
    margin: Callable[[Tensor], Tensor], rows: Float[Tensor, "n d"], member: tuple[int, ...], step: Tensor, most: float
) -> float | None:
    """The smallest radius up to `most` that was seen to flip along the step; None where none does."""

    def flips(radii: list[float]) -> list[bool]:
        with torch.no_grad():
            return (margin(_moved(rows, member, step, radii)) < 0).tolist()

    radii = [share * most for share in _GRID]
    first = next((at for at, flipped in enumerate(flips(radii)) if flipped), None)
    if first is None:
        return None
    low, high = (radii[first - 1] if first else 0.0), radii[first]
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if flips([middle])[0] else (middle, high)
    return high


def _moved(
    rows: Float[Tensor, "n d"], member: tuple[int, ...], step: Float[Tensor, "g d"], radii: list[float]
) -> Float[Tensor, "b n d"]:
    places = torch.tensor([member] * len(radii))
    return perturbed_texts(rows, places, torch.stack([radius * step for radius in radii]))
