"""The words that flip a classifier's label: without them, with another in their place, or moved as vectors."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Any

from wordsens.errors import InputError, require_count
from wordsens.evaluation.compare.seen import Chosen, Told, choose_words, encoded
from wordsens.evaluation.compare.words import LEAST_TEXTS
from wordsens.evaluation.flips.radius import flip_radii
from wordsens.evaluation.flips.result import ClassFlips, FlipWord, LabelFlips, Share, WordFlips
from wordsens.evaluation.near_misses.lists import ANTONYMS, QUANTITIES, TIMES
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.models.black_box import require_texts
from wordsens.models.classifier import Classifier, as_classifier
from wordsens.seeds import Seed, derive_seed
from wordsens.statistics.operating_point import share_at_most
from wordsens.text.alternatives import SameKind
from wordsens.text.whole_words import with_word

_TAIL = 0.05 / 2
"""Of an interval, on either side."""


@dataclass(frozen=True, kw_only=True)
class FlipPlan:
    """The effort.

    Attributes:
        words_per_text: words of a text that are measured: negations first, others at random.
        tries: other words tried in the place of each: listed opposites, then random ones of its kind.
        radius_texts: texts whose words are also moved as vectors, the first ones; 0 for none.
    """

    words_per_text: int = 12
    tries: int = 4
    radius_texts: int = 20

    def __post_init__(self) -> None:
        require_count("words_per_text", self.words_per_text)
        require_count("tries", self.tries, least=0)
        require_count("radius_texts", self.radius_texts, least=0)


def label_flips(
    model: Any,
    texts: Sequence[str],
    *,
    labels: Sequence[str] | None = None,
    plan: FlipPlan | None = None,
    seed: Seed = 0,
    told: Told = lambda done: None,
) -> LabelFlips:
    """The words that put a text into another class, and the share of each class's texts that one word can move.

    A removal and a swap are one change each, by classifying the text again; radii are attained, upper bounds of the
    smallest. "No word flips it" is about the words and swaps that were tried.

    Args:
        model: whatever `as_classifier` takes.
        texts: the texts, each measured once.
        labels: the classes' names; None: the model's own.
        plan: the effort.
        seed: of the words and of the swaps.
        told: called with the number of texts classified since the last call.

    Raises:
        InputError: no such model, or no text of two words.

    >>> def mood(texts):
    ...     return [[0.9, 0.1] if "bad" in text.split() else [0.2, 0.8] for text in texts]
    >>> found = label_flips(mood, ["a bad day", "a good day"], labels=("sad", "glad"), plan=FlipPlan(tries=0))
    >>> [(word.word, word.removed_to) for word in found.words if word.removed_to]
    [('bad', 'glad')]
    """
    plan, asked = plan or FlipPlan(), as_classifier(model, labels=labels)
    given = require_texts(texts)
    kept = [each for each in (choose_words(text, plan.words_per_text, seed) for text in dict.fromkeys(given))
            if each.length > 1]  # fmt: skip
    if not kept:
        raise InputError("`texts` holds none of two words or more; a flip takes one away")
    notes = (
        [f"{len(given) - len(kept)} texts are copies or have fewer than two words"] if len(kept) < len(given) else []
    )
    others = _others(kept, plan.tries, seed)
    words = _measured(asked, kept, others, told)
    if asked.phi is not None and plan.radius_texts:
        words = _with_radii(asked.phi, kept, words, plan.radius_texts)
    elif plan.radius_texts:
        notes.append(f"no radii: {asked.name} gives probabilities alone, and moving a word as a vector takes gradients")
    own = {word.text: word.label for word in words}
    rows = tuple(_class(label, words, plan) for label in dict.fromkeys(own.values()))
    return LabelFlips(
        asked.name, tuple(each.text for each in kept), tuple(own[at] for at in range(len(kept))), tuple(words), rows,
        tuple(_by_word(words)), tuple(notes),
    )  # fmt: skip


def _others(kept: Sequence[Chosen], tries: int, seed: Seed) -> list[list[list[str]]]:
    """The words that are tried in the place of each."""
    same_kind = SameKind(each.text for each in kept)
    found = []
    for each in kept:
        chance = random.Random(derive_seed(seed, "flips", each.text))
        tried = []
        for word in each.words:
            listed = [words[word.lower()] for words in (ANTONYMS, QUANTITIES, TIMES) if word.lower() in words]
            drawn = chance.sample(offered := same_kind(word), min(tries, len(offered)))
            different = [other for other in dict.fromkeys([*listed, *drawn]) if other.lower() != word.lower()]
            tried.append(different[:tries])
        found.append(tried)
    return found


def _measured(
    asked: Classifier, kept: Sequence[Chosen], others: Sequence[Sequence[Sequence[str]]], told: Told
) -> list[FlipWord]:
    """Every word's removal and best swap."""
    variants = [each.text for each in kept]
    for each, tried in zip(kept, others, strict=True):
        variants += each.changed
        variants += [with_word(each.text, span, other) for span, some in zip(each.spans, tried, strict=True)
                     for other in some]  # fmt: skip
    rows = encoded(asked.probabilities, variants, told)
    labels = rows.argmax(dim=1).tolist()
    at, words = len(kept), []
    for number, (each, tried) in enumerate(zip(kept, others, strict=True)):
        own = labels[number]
        falls = (rows[:, own] - rows[number, own]).tolist()
        swaps = at + len(each.words)
        for place, word in enumerate(each.words):
            removed = at + place
            found = FlipWord(
                text=number, label=asked.label(own), word=word, start=each.spans[place][0], stop=each.spans[place][1],
                removal=falls[removed], removed_to=_other(asked, labels[removed], own), tried=len(tried[place]),
            )  # fmt: skip
            offered = range(swaps, swaps + len(tried[place]))
            swaps += len(tried[place])
            if best := min(offered, key=lambda one: (labels[one] == own, falls[one]), default=None):
                found = replace(
                    found, swap=falls[best], swapped_for=tried[place][best - offered.start],
                    swapped_to=_other(asked, labels[best], own),
                )  # fmt: skip
            words.append(found)
        at = swaps
    return words


def _other(asked: Classifier, label: int, own: int) -> str | None:
    return None if label == own else asked.label(label)


def _with_radii(
    phi: TransformerFeatures, kept: Sequence[Chosen], words: Sequence[FlipWord], most: int
) -> list[FlipWord]:
    """The words with the radii of those of the first texts."""
    radii = [radius for each in kept[:most] for radius in flip_radii(phi, each.text, each.words)]
    moved = [replace(word, radius=radius) for word, radius in zip(words, radii, strict=False)]
    return [*moved, *words[len(moved) :]]


def _class(label: str, words: Sequence[FlipWord], plan: FlipPlan) -> ClassFlips:
    by_text: dict[int, list[FlipWord]] = {}
    for word in words:
        if word.label == label:
            by_text.setdefault(word.text, []).append(word)
    own = list(by_text.values())
    moved = [some for at, some in by_text.items() if at < plan.radius_texts]
    asked = any(word.radius is not None for word in words)
    smallest = [min((word.radius for word in some if word.radius is not None), default=float("inf")) for some in moved]
    middle = median(smallest) if asked and smallest else float("inf")
    return ClassFlips(
        label=label,
        removal=_share(sum(any(word.removed_to for word in some) for some in own), len(own)),
        swap=_share(sum(any(word.swapped_to for word in some) for some in own), len(own)) if plan.tries else None,
        radius=_share(sum(one <= 1 for one in smallest), len(smallest)) if asked and smallest else None,
        median_radius=middle if middle <= 1 else None,
    )


def _by_word(words: Sequence[FlipWord]) -> Iterator[WordFlips]:
    """Words in LEAST_TEXTS texts of a class or more, those that flip most first.

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
    found = []
    for (name, label), texts in frequent.items():
        hits, usual = sum(own for own, _ in texts), fmean(others for _, others in texts)
        # Of many words some stand out by chance: the level is shared among them.
        low = 1 - share_at_most(len(texts) - hits, len(texts), 1 - _TAIL / len(frequent))
        found.append(
            WordFlips(word=name, label=label, share=_share(hits, len(texts)), usual=usual, more=bool(low > usual))
        )
    yield from sorted(found, key=lambda row: (-row.share.low, row.word))


def _share(hits: int, count: int) -> Share:
    low, high = 1 - share_at_most(count - hits, count, 1 - _TAIL), share_at_most(hits, count, 1 - _TAIL)
    return Share(value=hits / count, low=low if hits else 0.0, high=high, count=count)
