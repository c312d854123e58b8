"""Real labelled texts as a task."""

from collections.abc import Sequence

import torch

from wordsens.errors import InputError
from wordsens.seeds import Seed, generator
from wordsens.studies.control.tasks.contract import Labelled, Task, split_task
from wordsens.text.matrix import TextMatrix


def texts_task(texts: Sequence[TextMatrix], parts: tuple[int, int, int], seed: Seed = 0) -> Task:
    """Labelled texts of one shape, in an order that the seed decides.

    Args:
        texts: as `ws.embed` gives them, of one shape, each with a label.
        parts: how many texts are for training, validation and test.
        seed: of the order.

    Raises:
        InputError: no label, several shapes, or too few texts.

    >>> import wordsens as ws
    >>> texts = [ws.TextMatrix(ws.gaussian_text(3, 4, seed).rows, label=1 - 2 * (seed % 2)) for seed in range(6)]
    >>> texts_task(texts, (2, 2, 2)).shape
    (3, 4)
    """
    shapes = {tuple(text.rows.shape) for text in texts}
    if len(shapes) != 1:
        raise InputError(f"`texts` have {len(shapes)} shapes; give at least one text, and all of n words: max_words=n")
    for text in texts:
        if text.label is None:
            raise InputError(f"the text {text.source!r} has no label; give texts that are labelled +1 or -1")
    ((n, _),) = shapes
    rows = torch.stack([text.rows.float() for text in texts])
    order = torch.randperm(len(texts), generator=generator(seed, "order of texts"))
    words = torch.arange(rows.shape[0] * n).view(-1, n)[order]
    labels = torch.tensor([float(text.label or 0) for text in texts])[order]
    return split_task("`texts`", Labelled(rows.flatten(0, 1), words, labels), parts)
