"""Training examples: a text, the same in other words, and a text that differs by one change of meaning."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from wordsens.text.pairs import Pair
from wordsens.training.adapter.flips import KINDS, flip
from wordsens.training.adapter.frames import draw_meaning
from wordsens.training.adapter.rewordings import reword


@dataclass(frozen=True)
class Example:
    """Three texts.

    Attributes:
        kind: of the change.
        text: where all begins.
        same: the same meaning in other words.
        other: `text` after one change; None of a paraphrase in which no rule finds a place for one.
    """

    kind: str
    text: str
    same: str
    other: str | None


def from_frames(count: int, chance: random.Random) -> list[Example]:
    """Examples from the frames, each kind of change as often as the others."""
    made = []
    while len(made) < count:
        kind = KINDS[len(made) % len(KINDS)]
        meaning = draw_meaning(chance)
        if kind in meaning.flips():
            first, second = chance.sample(range(len(meaning.wordings)), 2)
            stream = chance.random()
            text, other = (each.text(first, random.Random(stream)) for each in (meaning, meaning.flipped(kind, chance)))
            if text != other:
                made.append(Example(kind, text, meaning.text(second, chance), other))
    return made


def from_sentences(sentences: Sequence[str], count: int, chance: random.Random) -> list[Example]:
    """Examples from plain sentences, as many kinds as they allow; a sentence may serve several times."""
    made: list[Example] = []
    for at in range(50 * count):
        if len(made) == count:
            break
        sentence, kind = chance.choice(sentences), KINDS[at % len(KINDS)]
        other = flip(sentence, kind, chance)
        if other is not None:
            made.append(Example(kind, sentence, reword(sentence, chance), other))
    return made


def from_pairs(pairs: Sequence[Pair], chance: random.Random) -> list[Example]:
    """Examples from pairs: an opposite's text is reworded by rule, a paraphrase's is flipped by rule."""
    made = []
    for pair in pairs:
        first, second = chance.sample((pair.first, pair.second), 2)
        if pair.same:
            kind = chance.choice(KINDS)
            made.append(Example(kind, first, second, flip(first, kind, chance)))
        else:
            made.append(Example(pair.kind, first, reword(first, chance), second))
    return made


def in_paragraphs(
    examples: Sequence[Example], sentences: Sequence[str], share: float, longest: int, chance: random.Random
) -> list[Example]:
    """The examples, a share of them among 2 to `longest` other sentences, which `same` has in other words."""
    return [
        _surrounded(example, sentences, chance.randint(2, longest), chance) if chance.random() < share else example
        for example in examples
    ]


def _surrounded(example: Example, sentences: Sequence[str], count: int, chance: random.Random) -> Example:
    around, reworded = [], []
    for _ in range(count):
        if chance.random() < 0.4:
            meaning = draw_meaning(chance)
            one, two = chance.sample(range(len(meaning.wordings)), 2)
            around.append(meaning.text(one, chance))
            reworded.append(meaning.text(two, chance))
        else:
            around.append(chance.choice(sentences))
            reworded.append(reword(around[-1], chance))
    at = chance.randint(0, count)

    def put(middle: str, others: Sequence[str]) -> str:
        return " ".join([*others[:at], middle, *others[at:]])

    other = None if example.other is None else put(example.other, around)
    return Example(example.kind, put(example.text, around), put(example.same, reworded), other)
