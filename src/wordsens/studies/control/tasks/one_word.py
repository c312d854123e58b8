"""The task that one word decides: sensitivity to a single word is what it asks for."""

import torch

from wordsens.errors import InputError
from wordsens.seeds import Seed, generator
from wordsens.studies.control.tasks.contract import Labelled, Task, TaskSize, random_labels, sphere_words, split_task
from wordsens.studies.control.tasks.pairs import TextPairs

NEUTRAL = 64
"""Neutral words of the vocabulary: twice the 32 coordinates of the study's words, so that none stands apart."""


def one_word_task(size: TaskSize, seed: Seed = 0) -> Task:
    """Texts of n - 1 neutral words and one of two key words at a random place: the label is +1 or -1 by which.

    The vocabulary has two key words and NEUTRAL neutral ones, independent and uniform on the sphere of radius sqrt(d);
    it depends on the seed alone. Each text's neutral words are drawn with replacement.

    >>> task = one_word_task(TaskSize(n=5, d=8, training=6, validation=2, test=2))
    >>> text, place = task.training.words[0], task.training.deciding[0]
    >>> int((text < 2).sum()), bool(text[place] == (task.training.labels[0] < 0))
    (1, True)
    """
    table = sphere_words(2 + NEUTRAL, size.d, generator(seed, "one-word task", "vocabulary"))
    stream = generator(seed, "one-word task", "texts", size.n)
    count = sum(size.parts)
    labels = random_labels(count, stream)
    words = torch.randint(2, 2 + NEUTRAL, (count, size.n), generator=stream)
    places = torch.randint(size.n, (count,), generator=stream)
    words[torch.arange(count), places] = (labels < 0).long()
    return split_task("the one-word task", Labelled(table, words, labels, places), size.parts)


def one_word_pairs(part: Labelled, seed: Seed = 0) -> TextPairs:
    """Each text of a part of the one-word task in two pairs: with a flipped copy, and with one that means the same.

    The flipped copy has the other key word, and so the other label; the other copy has another neutral word in the
    place of one. First all flipped pairs, in the order of the texts, then the others.

    Args:
        part: of `one_word_task`.
        seed: of the places and the neutral words.

    Raises:
        InputError: texts of another task, where no word decides.

    >>> part = one_word_task(TaskSize(n=5, d=8, training=6, validation=2, test=2)).test
    >>> pairs = one_word_pairs(part)
    >>> (pairs.first != pairs.second).sum(dim=1).tolist(), pairs.flipped.tolist()
    ([1, 1, 1, 1], [True, True, False, False])
    """
    if part.deciding is None:
        raise InputError("`part` has no deciding words; give a part of `one_word_task`")
    stream, each = generator(seed, "one-word pairs"), torch.arange(len(part))
    n = part.words.shape[1]
    flipped = part.words.clone()
    flipped[each, part.deciding] = 1 - flipped[each, part.deciding]
    places = (part.deciding + torch.randint(1, n, (len(part),), generator=stream)) % n
    shift = torch.randint(1, NEUTRAL, (len(part),), generator=stream)
    neutral = part.words.clone()
    neutral[each, places] = 2 + (neutral[each, places] - 2 + shift) % NEUTRAL
    turned = torch.cat([torch.ones(len(part)), torch.zeros(len(part))]).bool()
    return TextPairs(part.table, part.words.repeat(2, 1), torch.cat([flipped, neutral]), turned)
