"""The task that no single word decides: the majority of signed words, by a margin that one change cannot undo."""

import math

import torch

from wordsens.errors import InputError
from wordsens.seeds import Seed, generator
from wordsens.studies.control.tasks.contract import Labelled, Task, TaskSize, random_labels, sphere_words, split_task
from wordsens.studies.control.tasks.pairs import TextPairs

SIGNED = 8
"""Words of each sign: so few that 16 coordinates can tell all of them apart linearly."""

_LEAST = 5
"""A text needs so many words for a margin of 3 with words of both signs."""


def margin_of(n: int) -> int:
    """The least whole number that is at least 3 and sqrt(n), and has the parity of n.

    >>> [margin_of(n) for n in (8, 9, 16, 64, 256)]
    [4, 3, 4, 8, 16]
    """
    least = max(3, math.ceil(math.sqrt(n)))
    return least + (least - n) % 2


def majority_task(size: TaskSize, seed: Seed = 0) -> Task:
    """Texts of n signed words; the label is the sign of their sum, which is +-margin_of(n).

    Another word in one place changes the sum by at most 2, and the margin is at least 3: the label stays. The
    vocabulary has SIGNED words of each sign, independent and uniform on the sphere of radius sqrt(d).

    Raises:
        InputError: n < 5.

    >>> task = majority_task(TaskSize(n=9, d=8, training=6, validation=2, test=2))
    >>> signs = 1 - 2 * (task.training.words >= SIGNED).long()
    >>> bool((signs.sum(dim=1) == margin_of(9) * task.training.labels).all())
    True
    """
    if size.n < _LEAST:
        raise InputError(f"`n` (={size.n}) must be at least {_LEAST}: a majority that no single word may change")
    table = sphere_words(2 * SIGNED, size.d, generator(seed, "majority task", "vocabulary"))
    stream = generator(seed, "majority task", "texts", size.n)
    count = sum(size.parts)
    labels = random_labels(count, stream)
    order = torch.rand(count, size.n, generator=stream).argsort(dim=1)
    ayes = (size.n + margin_of(size.n)) // 2
    against = (order >= ayes) == (labels > 0).unsqueeze(1)
    words = torch.randint(SIGNED, (count, size.n), generator=stream) + SIGNED * against
    return split_task("the majority task", Labelled(table, words, labels), size.parts)


def majority_pairs(part: Labelled, seed: Seed = 0) -> TextPairs:
    """Each text of a part of the majority task, and a copy with another word of the vocabulary in a random place.

    No single word changes the label, so that every copy means the same, whatever the new word's sign.

    Args:
        part: of `majority_task`.
        seed: of the places and the new words.

    >>> part = majority_task(TaskSize(n=9, d=8, training=6, validation=2, test=3)).test
    >>> pairs = majority_pairs(part)
    >>> (pairs.first != pairs.second).sum(dim=1).tolist(), bool(pairs.flipped.any())
    ([1, 1, 1], False)
    """
    stream, each = generator(seed, "majority pairs"), torch.arange(len(part))
    places = torch.randint(part.words.shape[1], (len(part),), generator=stream)
    shift = torch.randint(1, 2 * SIGNED, (len(part),), generator=stream)
    changed = part.words.clone()
    changed[each, places] = (changed[each, places] + shift) % (2 * SIGNED)
    return TextPairs(part.table, part.words, changed, torch.zeros(len(part), dtype=torch.bool))
