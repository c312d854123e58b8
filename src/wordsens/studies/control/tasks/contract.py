"""A task: labelled texts of one shape to train on, to stop on, and to judge by."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.errors import InputError, require_count


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
        deciding: (m,), the place of the word that decides the label; None where no single word does.
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
    """The first, the next and the last texts as the three parts of a task; InputError where they are too few."""
    if len(whole) < sum(parts):
        raise InputError(
            f"{name} has {len(whole)} texts, but training, validation and test want {sum(parts)}; lower them"
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
