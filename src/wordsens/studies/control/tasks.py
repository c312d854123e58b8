"""Labelled texts to train on: one word decides, no single word does, or real texts; and pairs that
differ in a word."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.errors import InputError, require_count
from wordsens.seeds import Seed, generator
from wordsens.text.matrix import TextMatrix


@dataclass(frozen=True)
class TaskSize:
    """The shape and the number of a task's texts.

    Attributes:
        n, d: words of a text and coordinates of a word.
        training, validation, test: how many texts each part has.
    """

    n: int
    d: int
    training: int = 4096
    validation: int = 256
    test: int = 512

    def __post_init__(self) -> None:
        for name in ("n", "d", "training", "validation", "test"):
            require_count(name, getattr(self, name), least=2 if name == "n" else 1)

    @property
    def parts(self) -> tuple[int, int, int]:
        """The number of texts of each part."""
        return self.training, self.validation, self.test


@dataclass(frozen=True, eq=False)
class Labelled:
    """Texts as numbers of words of one vocabulary, and their labels.

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


@dataclass(frozen=True, eq=False)
class Task:
    """A task: three parts that share no text unless their source repeats one."""

    name: str
    training: Labelled
    validation: Labelled
    test: Labelled

    @property
    def shape(self) -> tuple[int, int]:
        """(n, d)."""
        return self.training.words.shape[1], self.training.table.shape[1]


def split_task(name: str, whole: Labelled, parts: tuple[int, int, int]) -> Task:
    """The first, the next and the last texts as the three parts of a task; InputError where they
    are too few."""
    if len(whole) < sum(parts):
        raise InputError(
            f"{name} has {len(whole)} texts, but training, validation and test want {sum(parts)}; "
            "lower them"
        )
    result = []
    for part, first in zip(parts, (0, parts[0], parts[0] + parts[1]), strict=True):
        at = slice(first, first + part)
        deciding = None if whole.deciding is None else whole.deciding[at]
        result.append(Labelled(whole.table, whole.words[at], whole.labels[at], deciding))
    return Task(name, *result)


def sphere_words(count: int, d: int, stream: torch.Generator) -> Float[Tensor, "count d"]:
    """Words of a vocabulary: independent, uniform on the sphere of radius sqrt(d), in float32."""
    drawn = torch.randn(count, d, generator=stream, dtype=torch.float64)
    return (drawn * (d**0.5 / torch.linalg.vector_norm(drawn, dim=1, keepdim=True))).float()


def random_labels(count: int, stream: torch.Generator) -> Float[Tensor, " count"]:
    """Fair labels, +1 or -1."""
    return 2.0 * torch.randint(2, (count,), generator=stream) - 1


@dataclass(frozen=True, eq=False)
class TextPairs:
    """Pairs of texts of one shape, as numbers of words of one vocabulary.

    Attributes:
        table: (v, d), the words' embeddings.
        first, second: (p, n), the numbers of the words of each pair's two texts.
        flipped: (p,), True where the second means something else than the first, False where it
            means the same.
    """

    table: Float[Tensor, "v d"]
    first: Int[Tensor, "p n"]
    second: Int[Tensor, "p n"]
    flipped: Bool[Tensor, " p"]

    def __len__(self) -> int:
        return len(self.flipped)

    def rows(
        self, chosen: Tensor | slice = slice(None)
    ) -> tuple[Float[Tensor, "b n d"], Float[Tensor, "b n d"]]:
        """The two texts of the chosen pairs as rows; `chosen` are numbers of pairs, or a mask."""
        return self.table[self.first[chosen]], self.table[self.second[chosen]]

    def part(self, chosen: Tensor | slice) -> "TextPairs":
        """The chosen pairs alone."""
        return TextPairs(self.table, self.first[chosen], self.second[chosen], self.flipped[chosen])


def text_pairs(pairs: Sequence[tuple[TextMatrix, TextMatrix, bool]]) -> TextPairs:
    """Pairs of real texts, each with whether the second flips the meaning of the first.

    Args:
        pairs: (first, second, flipped), the texts as `ws.embed` gives them, all of one shape.

    Raises:
        InputError: no pair, or texts of several shapes.

    >>> import wordsens as ws
    >>> first, second = (ws.TextMatrix(ws.gaussian_text(3, 4, seed).rows) for seed in range(2))
    >>> pairs = text_pairs([(first, second, True), (second, second, False)])
    >>> len(pairs), pairs.rows()[0].shape, pairs.flipped.tolist()
    (2, torch.Size([2, 3, 4]), [True, False])
    """
    texts = [text for first, second, _ in pairs for text in (first, second)]
    shapes = {tuple(text.rows.shape) for text in texts}
    if len(shapes) != 1:
        raise InputError(
            f"`pairs` have texts of {len(shapes)} shapes; give at least one pair, and texts of as "
            "many words all"
        )
    ((n, _),) = shapes
    words = torch.arange(len(texts) * n).view(-1, 2, n)
    table = torch.cat([text.rows.float() for text in texts])
    return TextPairs(
        table, words[:, 0], words[:, 1], torch.tensor([flipped for _, _, flipped in pairs])
    )


NEUTRAL = 64
"""Neutral words of the vocabulary: twice the 32 coordinates of the study's words, so that none
stands apart."""


def one_word_task(size: TaskSize, seed: Seed = 0) -> Task:
    """Texts of n - 1 neutral words and one of two key words at a random place: the label is +1 or
    -1 by which.

    The vocabulary has two key words and NEUTRAL neutral ones, independent and uniform on the sphere
    of radius sqrt(d); it depends on the seed alone. Each text's neutral words are drawn with
    replacement.

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

    Another word in one place changes the sum by at most 2, and the margin is at least 3: the label
    stays. The vocabulary has SIGNED words of each sign, independent and uniform on the sphere of
    radius sqrt(d).

    Raises:
        InputError: n < 5.

    >>> task = majority_task(TaskSize(n=9, d=8, training=6, validation=2, test=2))
    >>> signs = 1 - 2 * (task.training.words >= SIGNED).long()
    >>> bool((signs.sum(dim=1) == margin_of(9) * task.training.labels).all())
    True
    """
    if size.n < _LEAST:
        raise InputError(
            f"`n` (={size.n}) must be at least {_LEAST}: a majority that no single word may change"
        )
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
    """Each text of a part of the majority task, and a copy with another word of the vocabulary in a
    random place.

    No single word changes the label, so that every copy means the same, whatever the new word's
    sign.

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
    """  # noqa: E501
    shapes = {tuple(text.rows.shape) for text in texts}
    if len(shapes) != 1:
        raise InputError(
            f"`texts` have {len(shapes)} shapes; give at least one text, and all of n words: "
            "max_words=n"
        )
    for text in texts:
        if text.label is None:
            raise InputError(
                f"the text {text.source!r} has no label; give texts that are labelled +1 or -1"
            )
    ((n, _),) = shapes
    rows = torch.stack([text.rows.float() for text in texts])
    order = torch.randperm(len(texts), generator=generator(seed, "order of texts"))
    words = torch.arange(rows.shape[0] * n).view(-1, n)[order]
    labels = torch.tensor([float(text.label or 0) for text in texts])[order]
    return split_task("`texts`", Labelled(rows.flatten(0, 1), words, labels), parts)
