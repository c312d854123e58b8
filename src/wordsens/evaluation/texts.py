"""The words that are measured in a text, and encoding in batches of like length."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.display.numbers import plural
from wordsens.errors import InputError, argument
from wordsens.models.embedding import Texts, as_documents
from wordsens.models.model import Model
from wordsens.seeds import generator
from wordsens.text.english import kind_of

# The fewest texts, or pairs of a kind, of which a joint test of even a few rows can find anything.
LEAST_TEXTS = 6

NEGATION = "negation"

# The most texts, and about the most characters, between two reports of progress.
_TOGETHER, _CHARACTERS = 256, 25_000

Progress = Callable[[int], None]
"""Called with the number of texts encoded since the last call."""


def drawn_words(words: Sequence[str], count: int, *, seed: int, content: str) -> list[int]:
    """The places of at most `count` words: negations first, then a random draw, in their order."""
    order: list[int] = torch.randperm(
        len(words), generator=generator(seed, "audited words", content)
    ).tolist()
    order.sort(key=lambda place: kind_of(words[place]) != NEGATION)
    return sorted(order[:count])


def readable_texts(texts: Texts, models: Sequence[Model]) -> tuple[list[str], list[str]]:
    """The texts that all models read, each once; and what was left out: empty texts, copies, and
    those that a model refuses, such as one of emoji alone.

    Raises:
        InputError: fewer than LEAST_TEXTS are left.
    """
    documents = as_documents(texts)
    sources: dict[str, str] = {}
    for number, each in enumerate(documents):
        if each.text.strip():
            sources.setdefault(each.text, each.source or f"text {number}")
    reasons: dict[str, str] = {}
    for model in models:
        reasons |= model.refusals(list(sources))
    kept = [text for text in sources if text not in reasons]
    if len(kept) < LEAST_TEXTS:
        raise InputError(
            f"{argument('texts')} holds {plural(len(kept), 'different text')} that can be read; "
            f"give {LEAST_TEXTS} or more"
        )
    changes = []
    if copies := len(documents) - len(sources):
        changes.append(f"{plural(copies, 'text')} left out, empty or equal to another")
    for text, reason in list(reasons.items())[:1]:
        changes.append(
            f"{plural(len(reasons), 'text')} left out that a model cannot read (the first, "
            f"{sources[text]}: {reason})"
        )
    return kept, changes


def counting(progress: Callable[[int, int], None], total: int) -> Progress:
    """A function that adds up the texts of its calls and passes (done, total) on."""
    done = 0

    def count(more: int) -> None:
        nonlocal done
        done = min(total, done + more)
        progress(done, total)

    return count


# A text, or a pair of texts.
Item = TypeVar("Item", str, tuple[str, str])


def encoded(
    encode: Callable[[list[Item]], Tensor],
    items: Sequence[Item],
    progress: Progress = lambda done: None,
) -> Float[Tensor, "m ..."]:
    """The rows that `encode` gives the texts, or pairs of texts, each once; those of like length go
    together."""
    sizes = {item: len(item if isinstance(item, str) else "".join(item)) for item in items}
    order = sorted(sizes, key=lambda item: (sizes[item], item))
    rows: dict[Item, Tensor] = {}
    while order:
        count = max(1, min(_TOGETHER, _CHARACTERS // max(1, sizes[order[0]])))
        chunk, order = order[:count], order[count:]
        rows |= zip(chunk, encode(chunk), strict=True)
        progress(len(chunk))
    return torch.stack([rows[item] for item in items]) if items else torch.empty(0)
