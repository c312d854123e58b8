"""Deleting or masking a word: what other tools report, beside what the word could do."""

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError, require_choice, require_kind
from wordsens.maps.arguments import as_text
from wordsens.maps.base import DEFAULT_MEMORY_BUDGET, FeatureMap
from wordsens.maps.mapping import feature_norm
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.sensitivity.result import SensitivityResult
from wordsens.text.document import Document
from wordsens.text.matrix import TextMatrix, Word

WAYS = ("delete", "mask")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Removals(SensitivityResult):
    """The changes of a map when words are deleted or masked: no sup, one changed text a word.

    Attributes:
        value: the largest of `per_word`.
        way: "delete" or "mask".
        words: the indices of the words among the text's whole words.
        whole: the words.
        per_word: (w,), ‖phi(text without the word) - phi(text)‖ / ‖phi(text)‖.
        distance: (w,), 1 - cos of the angle between the two.
    """

    way: str
    words: tuple[int, ...]
    whole: tuple[Word, ...]
    per_word: Float[Tensor, " w"]
    distance: Float[Tensor, " w"]

    ranked = "change"
    row_names = "text"

    @property
    def headline(self) -> str:
        """The word whose removal moves the output most."""
        removed = {"delete": "Deleting", "mask": "Masking"}[self.way]
        word = self.whole[int(self.per_word.argmax())].text
        return f"{removed} {word!r} moves the output most: {self.value:.3g} times its size"

    def columns(self) -> dict[str, Any]:
        """One row per word."""
        return {
            "word": self.words,
            "text": [word.text for word in self.whole],
            "change": self.per_word.tolist(),
            "distance": self.distance.tolist(),
        }


def removal_effects(
    phi: TransformerFeatures,
    text: str | Document,
    words: Sequence[int] | None = None,
    *,
    way: str = "delete",
    max_words: int | None = None,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> Removals:
    """The change of phi when a whole word is deleted, or each of its tokens becomes the mask token.

    No sup: one changed text a word, as occlusion and leave-one-out tools evaluate. Deleting moves
    the later words one place forward. Cost: one forward pass a word, batched by length.

    Args:
        phi: a transformer; for "delete" with features whose size does not depend on the text's
            length.
        text: the text.
        words: indices of its whole words; None for all.
        way: "delete" or "mask".
        max_words: a longer text keeps its first tokens.
        memory_budget: bytes for intermediate results.

    Raises:
        InputError: "delete" with features of every row; "mask" with a model without a mask token; a
            word index out of range; a text of one word that would be deleted.

    >>> phi = TransformerFeatures.from_pretrained("minilm", pool="own")
    >>> removed = removal_effects(phi, "This film is not good", way="delete")
    >>> [word.text for word in removed.whole]
    ['This', 'film', 'is', 'not', 'good']
    """
    started = time.perf_counter()
    require_choice("way", way, WAYS)
    require_kind(
        "phi", phi, TransformerFeatures, remedy="load one with TransformerFeatures.from_pretrained"
    )
    mask: Any = None if phi.model.tokenizer is None else phi.model.tokenizer.mask_token_id
    if way == "mask" and mask is None:
        raise InputError(
            f"`way` (='mask') needs a mask token, but {phi.name} has none; use way='delete'"
        )
    read = text.text if isinstance(text, Document) else text
    tokens = phi.model.read(read, "the text", max_words)
    ids, whole = list(tokens.ids), tokens.whole_words or ()
    chosen = list(range(len(whole))) if words is None else [int(word) for word in words]
    if any(not 0 <= word < len(whole) for word in chosen) or not chosen:
        raise InputError(
            f"`words` (={chosen!r}) must name words from 0 to {len(whole) - 1}, at least one"
        )
    if way == "delete" and len(whole) == 1:
        raise InputError(
            "the text has one word, and nothing is left without it; give a longer text, or "
            "way='mask'"
        )
    by_length: dict[int, list[tuple[int, list[int]]]] = defaultdict(list)
    for index, word in enumerate(chosen):
        rows = set(whole[word].rows)
        if way == "mask":
            changed = [mask if place in rows else number for place, number in enumerate(ids)]
        else:
            changed = [number for place, number in enumerate(ids) if place not in rows]
        by_length[len(changed)].append((index, changed))
    with torch.no_grad():
        features = phi(phi.rows_of(torch.tensor([ids])))[0]
        if way == "delete" and features.ndim > 1:
            raise InputError(
                "`way` (='delete') changes the number of rows, and phi keeps every row; choose a "
                "pool, or way='mask'"
            )
        base = features.flatten().double()
        norm = feature_norm(base, phi.name)
        change, distance = (torch.empty(len(chosen), dtype=torch.float64) for _ in range(2))
        for length, texts in by_length.items():
            size = max(1, memory_budget // phi.bytes_per_text(length))
            for start in range(0, len(texts), size):
                places, changed = zip(*texts[start : start + size], strict=True)
                features = phi(phi.rows_of(torch.tensor(changed))).flatten(start_dim=1).double()
                change[list(places)] = (
                    torch.linalg.vector_norm(features - base, dim=1) / norm
                ).cpu()
                distance[list(places)] = cosine_distance(features, base).cpu()
    return Removals(
        value=float(change.max()),
        way=way,
        words=tuple(chosen),
        whole=tuple(whole[word] for word in chosen),
        per_word=change,
        perturbations=(),
        converged=None,
        distance=distance,
        evaluations=len(chosen),
        seconds=time.perf_counter() - started,
    )


def cosine_distance(
    first: Float[Tensor, "*batch p"], second: Float[Tensor, " p"]
) -> Float[Tensor, "*batch"]:
    """1 - cos of the angle between vectors, as ‖u - v‖² / 2 of their unit vectors: never negative,
    and exact where the two are close, where 1 - cos itself cancels."""
    units = [
        vectors / torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
        for vectors in (first, second)
    ]
    return (units[0] - units[1]).square().sum(dim=-1) / 2


def row_removal(phi: FeatureMap, X: TextMatrix | torch.Tensor, word: int) -> float | None:
    """‖phi(X without row i) - phi(X)‖ / ‖phi(X)‖ for features of a whole text of three words or
    more; of features with a row for each word the rows other than i are compared (ours; one changed
    text, not a sup).

    A trained model moves the later words one place forward. None where phi takes no shorter text.

    >>> from wordsens import RandomAttentionFeatures, gaussian_text
    >>> 0 < row_removal(RandomAttentionFeatures(8, seed=0), gaussian_text(4, 8, seed=0), 1) < 1
    True
    """
    rows = phi.accept(as_text(X).rows)
    n = len(rows)
    if phi.text_shape[0] is not None or n < 3:
        return None
    others = [row for row in range(n) if row != word]
    with torch.no_grad():
        base, less = phi(rows), phi(rows[others])
        norm = feature_norm(base, phi.name)
        if base.shape != less.shape:
            base = base[..., others, :]
        return float(torch.linalg.vector_norm((less - base).flatten(), dtype=torch.float64)) / norm
