"""Labelled texts to train on: one word decides, no single word does, or real texts; and pairs that
differ in a word."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.errors import InputError, require_count
from wordsens.seeds import Seed, generator
from wordsens.text.matrix import TextMatrix

# Texts for training, validation and test.
PARTS = (4096, 256, 512)


@dataclass(frozen=True, eq=False)
class Labelled:
    """Texts as word numbers of one vocabulary, and their labels.

    Attributes:
        table: (v, d), the words' embeddings.
        words: (m, n), the numbers of each text's words.
        labels: (m,), +1 or -1.
        deciding: (m,), the place of the word that decides the label; None where no single word
            does.
    """

    table: Float[Tensor, "v d"]
    words: Int[Tensor, "m n"]
    labels: Float[Tensor, " m"]
    deciding: Int[Tensor, " m"] | None = None

    def __len__(self) -> int:
        return len(self.words)

    def rows(self, chosen: Int[Tensor, " b"] | slice = slice(None)) -> Float[Tensor, "b n d"]:
        """The chosen texts as rows."""
        return self.table[self.words[chosen]]

    def part(self, chosen: Int[Tensor, " b"] | slice) -> "Labelled":
        """The chosen texts alone."""
        deciding = None if self.deciding is None else self.deciding[chosen]
        return Labelled(self.table, self.words[chosen], self.labels[chosen], deciding)


@dataclass(frozen=True, eq=False)
class Task:
    """A task: three parts that share no text unless their source repeats one."""

    training: Labelled
    validation: Labelled
    test: Labelled


Pairs = tuple[Labelled, Labelled]
"""Texts, and a copy of each in which a word is another; where the two labels differ, the copy means
something else than the text."""


def split_task(whole: Labelled, parts: tuple[int, int, int]) -> Task:
    """The first, the next and the last texts as the three parts of a task; InputError where they
    are too few."""
    for count in parts:
        require_count("parts", count)
    if len(whole) < sum(parts):
        raise InputError(
            f"`parts` (={parts}) want {sum(parts)} texts, and there are {len(whole)}; lower them"
        )
    ends = accumulate(parts)
    return Task(
        *(whole.part(slice(end - size, end)) for end, size in zip(ends, parts, strict=True))
    )


def sphere_words(count: int, d: int, stream: torch.Generator) -> Float[Tensor, "count d"]:
    """Words of a vocabulary: independent, uniform on the sphere of radius sqrt(d), in float32."""
    drawn = torch.randn(count, d, generator=stream, dtype=torch.float64)
    return (drawn * (d**0.5 / torch.linalg.vector_norm(drawn, dim=1, keepdim=True))).float()


def _stacked(name: str, texts: Sequence[TextMatrix]) -> Float[Tensor, "m n d"]:
    """The rows of texts of one shape, in float32."""
    shapes = {tuple(text.rows.shape) for text in texts}
    if len(shapes) != 1:
        raise InputError(
            f"`{name}` have texts of {len(shapes)} shapes; give at least one text, and all of n "
            "words: max_words=n"
        )
    return torch.stack([text.rows.float() for text in texts])


def text_pairs(pairs: Sequence[tuple[TextMatrix, TextMatrix, bool]]) -> Pairs:
    """Pairs of real texts, each with whether the second flips the meaning of the first.

    Args:
        pairs: (first, second, flipped), the texts as `ws.embed` gives them, all of one shape.

    Raises:
        InputError: no pair, or texts of several shapes.

    >>> import wordsens as ws
    >>> first, second = (ws.TextMatrix(ws.gaussian_text(3, 4, seed).rows) for seed in range(2))
    >>> texts, copies = text_pairs([(first, second, True), (second, second, False)])
    >>> copies.rows().shape, (texts.labels != copies.labels).tolist()
    (torch.Size([2, 3, 4]), [True, False])
    """
    rows = _stacked("pairs", [text for first, second, _ in pairs for text in (first, second)])
    words = torch.arange(rows.shape[0] * rows.shape[1]).view(-1, 2, rows.shape[1])
    table, labels = rows.flatten(0, 1), torch.ones(len(pairs))
    signs = torch.tensor([-1.0 if flipped else 1.0 for _, _, flipped in pairs])
    return Labelled(table, words[:, 0], labels), Labelled(table, words[:, 1], signs)


# Neutral words of the vocabulary: twice the 32 coordinates of the study's words, so that none
# is linearly independent of the rest.
NEUTRAL = 64


def one_word_task(n: int, d: int, seed: Seed = 0, *, parts: tuple[int, int, int] = PARTS) -> Task:
    """Texts of n - 1 neutral words and one of two key words at a random place: the label is +1 or
    -1 by which.

    The vocabulary has two key words and NEUTRAL neutral ones, independent and uniform on the sphere
    of radius sqrt(d); it depends on the seed alone. Each text's neutral words are drawn with
    replacement.

    Args:
        n, d: words of a text and coordinates of a word.
        seed: of all of them.
        parts: how many texts are for training, validation and test.

    >>> task = one_word_task(5, 8, parts=(6, 2, 2))
    >>> text, place = task.training.words[0], task.training.deciding[0]
    >>> int((text < 2).sum()), bool(text[place] == (task.training.labels[0] < 0))
    (1, True)
    """
    require_count("n", n, least=2)
    table = sphere_words(2 + NEUTRAL, d, generator(seed, "one-word task", "vocabulary"))
    stream, count = generator(seed, "one-word task", "texts", n), sum(parts)
    labels = 2.0 * torch.randint(2, (count,), generator=stream) - 1  # fair
    words = torch.randint(2, 2 + NEUTRAL, (count, n), generator=stream)
    places = torch.randint(n, (count,), generator=stream)
    words[torch.arange(count), places] = (labels < 0).long()
    return split_task(Labelled(table, words, labels, places), parts)


def one_word_pairs(part: Labelled, seed: Seed = 0) -> Pairs:
    """Each text of a part of the one-word task in two pairs: with a flipped copy, and with one that
    means the same.

    The flipped copy has the other key word, and so the other label; the other copy has another
    neutral word in the place of one. First all flipped pairs, in the order of the texts, then the
    others.

    Args:
        part: of `one_word_task`.
        seed: of the places and the neutral words.

    Raises:
        InputError: texts of another task, where no word decides.

    >>> texts, copies = one_word_pairs(one_word_task(5, 8, parts=(6, 2, 2)).test)
    >>> (texts.words != copies.words).sum(dim=1).tolist(), (texts.labels != copies.labels).tolist()
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
    words, labels = torch.cat([flipped, neutral]), torch.cat([-part.labels, part.labels])
    return part.part(each.repeat(2)), Labelled(part.table, words, labels)


# Words of each sign: so few that 16 coordinates can tell all of them apart linearly.
SIGNED = 8

# A text needs this many words for a margin of 3 with words of both signs.
_LEAST = 5


def margin_of(n: int) -> int:
    """The least whole number that is at least 3 and sqrt(n), and has the parity of n.

    >>> [margin_of(n) for n in (8, 9, 16, 64, 256)]
    [4, 3, 4, 8, 16]
    """
    least = max(3, math.ceil(math.sqrt(n)))
    return least + (least - n) % 2


def majority_task(n: int, d: int, seed: Seed = 0, *, parts: tuple[int, int, int] = PARTS) -> Task:
    """Texts of n signed words; the label is the sign of their sum, which is +-margin_of(n).

    Another word in one place changes the sum by at most 2, and the margin is at least 3: the label
    stays. The vocabulary has SIGNED words of each sign, independent and uniform on the sphere of
    radius sqrt(d).

    Args:
        n, d, seed, parts: as for `one_word_task`; n is at least 5.

    >>> task = majority_task(9, 8, parts=(6, 2, 2))
    >>> signs = 1 - 2 * (task.training.words >= SIGNED).long()
    >>> bool((signs.sum(dim=1) == margin_of(9) * task.training.labels).all())
    True
    """
    require_count("n", n, least=_LEAST, remedy="no single word may change a majority")
    table = sphere_words(2 * SIGNED, d, generator(seed, "majority task", "vocabulary"))
    stream, count = generator(seed, "majority task", "texts", n), sum(parts)
    labels = 2.0 * torch.randint(2, (count,), generator=stream) - 1  # fair
    order = torch.rand(count, n, generator=stream).argsort(dim=1)
    against = (order >= (n + margin_of(n)) // 2) == (labels > 0).unsqueeze(1)
    words = torch.randint(SIGNED, (count, n), generator=stream) + SIGNED * against
    return split_task(Labelled(table, words, labels), parts)


def majority_pairs(part: Labelled, seed: Seed = 0) -> Pairs:
    """Each text of a part of the majority task, and a copy with another word of the vocabulary in a
    random place.

    No single word changes the label, so that every copy means the same, whatever the new word's
    sign.

    Args:
        part: of `majority_task`.
        seed: of the places and the new words.

    >>> texts, copies = majority_pairs(majority_task(9, 8, parts=(6, 2, 3)).test)
    >>> (texts.words != copies.words).sum(dim=1).tolist()
    [1, 1, 1]
    """
    stream, each = generator(seed, "majority pairs"), torch.arange(len(part))
    places = torch.randint(part.words.shape[1], (len(part),), generator=stream)
    shift = torch.randint(1, 2 * SIGNED, (len(part),), generator=stream)
    changed = part.words.clone()
    changed[each, places] = (changed[each, places] + shift) % (2 * SIGNED)
    return part, Labelled(part.table, changed, part.labels)


def texts_task(texts: Sequence[TextMatrix], parts: tuple[int, int, int], seed: Seed = 0) -> Task:
    """Labelled texts of one shape: the first are for the test, the others are in an order that the
    seed decides.

    Args:
        texts: as `ws.embed` gives them, of one shape, each with a label.
        parts: how many texts are for training, validation and test.
        seed: of the order.

    Raises:
        InputError: no label, several shapes, or too few texts.

    >>> import wordsens as ws
    >>> texts = [ws.TextMatrix(ws.gaussian_text(3, 4, seed).rows, label=1 - 2 * (seed % 2)) for seed in range(6)]
    >>> texts_task(texts, (2, 2, 2)).training.rows().shape
    torch.Size([2, 3, 4])
    """  # noqa: E501
    rows, given = _stacked("texts", texts), [text.label for text in texts]
    if None in given:
        raise InputError(
            f"the text {texts[given.index(None)].source!r} has no label; give texts that are "
            "labelled +1 or -1"
        )
    test = torch.arange(len(texts))[: parts[2]]
    others = len(texts) - len(test)
    order = torch.randperm(others, generator=generator(seed, "order of texts")) + len(test)
    order = torch.cat([order[: parts[0] + parts[1]], test])
    words = torch.arange(rows.shape[0] * rows.shape[1]).view(-1, rows.shape[1])[order]
    labels = torch.tensor([float(label or 0) for label in given])[order]
    return split_task(Labelled(rows.flatten(0, 1), words, labels), parts)
