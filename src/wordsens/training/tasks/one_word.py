"""The task that one word decides: sensitivity to a single word is what it asks for."""

import torch

from wordsens.seeds import Seed, generator
from wordsens.training.tasks.contract import Labelled, Task, TaskSize, random_labels, sphere_words, split_task

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
