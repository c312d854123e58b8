"""Deleting or masking a word: what other tools report, beside what the word could do."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError, require_choice, require_kind
from wordsens.maps.arguments import as_text
from wordsens.maps.base import DEFAULT_MEMORY_BUDGET, FeatureMap
from wordsens.maps.mapping import feature_norm
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.results import Result, ResultTable
from wordsens.text.document import Document
from wordsens.text.matrix import TextMatrix, Word

WAYS = ("delete", "mask")


@dataclass(frozen=True, eq=False, repr=False)
class Removals(Result):
    """The changes of a map when words are deleted or masked.

    Attributes:
        way: "delete" or "mask".
        words: the indices of the words among the text's whole words.
        whole: the words.
        change: (w,), ‖phi(text without the word) - phi(text)‖ / ‖phi(text)‖.
        distance: (w,), 1 - cos of the angle between the two.
    """

    way: str
    words: tuple[int, ...]
    whole: tuple[Word, ...]
    change: Float[Tensor, " w"]
    distance: Float[Tensor, " w"]

    def result_table(self) -> ResultTable:
        """A row a word."""
        columns = {
            "word": self.words,
            "text": [word.text for word in self.whole],
            "change": self.change.tolist(),
            "distance": self.distance.tolist(),
        }
        done = {"delete": "deleted", "mask": "masked"}[self.way]
        most = int(self.change.argmax())
        heading = (
            f"{self.whole[most].text!r} {done} moves the output most: {float(self.change[most]):.3g} times its size"
        )
        return ResultTable(heading, columns, "change", "text")


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

    Not a sup: one changed text a word, the same that occlusion and leave-one-out tools evaluate. Deleting moves the
    later words one place forward. Cost: one forward pass a word, batched by length.

    Args:
        phi: a transformer; for "delete" with features whose size does not depend on the text's length.
        text: the text.
        words: indices of its whole words; None for all.
        way: "delete" or "mask".
        max_words: a longer text keeps its first tokens.
        memory_budget: bytes for intermediate results.

    Raises:
        InputError: "delete" with features of every row; "mask" with a model without a mask token; a word index out of
            range; a text of one word that would be deleted.

    >>> phi = TransformerFeatures.from_pretrained("minilm", pool="own")
    >>> found = removal_effects(phi, "This film is not good", way="delete")
    >>> [word.text for word in found.whole]
    ['This', 'film', 'is', 'not', 'good']
    """
    require_choice("way", way, WAYS)
    require_kind("phi", phi, TransformerFeatures, remedy="load one with TransformerFeatures.from_pretrained")
    if phi.reader is None:
        raise InputError("this map has no tokenizer; pass one to TransformerFeatures")
    mask = phi.reader.tokenizer.mask_token_id
    if way == "mask" and mask is None:
        raise InputError(f"`way` (='mask') needs a mask token, but {phi.name} has none; use way='delete'")
    content = text.text if isinstance(text, Document) else text
    read = phi.reader.tokens(content, max_words=max_words)
    ids, whole = list(read.ids), read.whole_words or ()
    chosen = list(range(len(whole))) if words is None else [int(word) for word in words]
    if any(not 0 <= word < len(whole) for word in chosen) or not chosen:
        raise InputError(f"`words` (={chosen!r}) must name words from 0 to {len(whole) - 1}, at least one")
    if way == "delete" and len(whole) == 1:
        raise InputError("the text has one word, and nothing is left without it; give a longer text, or way='mask'")
    by_length: dict[int, list[tuple[int, list[int]]]] = defaultdict(list)
    for at, word in enumerate(chosen):
        rows = set(whole[word].rows)
        changed = [mask if place in rows else number for place, number in enumerate(ids)]
        saved = changed if way == "mask" else [number for place, number in enumerate(ids) if place not in rows]
        by_length[len(saved)].append((at, saved))
    with torch.no_grad():
        features = phi(phi.rows_of(torch.tensor([ids])))[0]
        if way == "delete" and features.ndim > 1:
            raise InputError(
                "`way` (='delete') changes the number of rows, and phi keeps every row; choose a pool, or way='mask'"
            )
        base = features.flatten().double()
        norm = feature_norm(base, phi.name)
        change, distance = (torch.empty(len(chosen), dtype=torch.float64) for _ in range(2))
        for length, texts in by_length.items():
            size = max(1, memory_budget // phi.bytes_per_text(length))
            for start in range(0, len(texts), size):
                part = texts[start : start + size]
                features = phi(phi.rows_of(torch.tensor([saved for _, saved in part]))).flatten(start_dim=1).double()
                at = [index for index, _ in part]
                change[at] = (torch.linalg.vector_norm(features - base, dim=1) / norm).cpu()
                distance[at] = cosine_distance(features, base).cpu()
    return Removals(way, tuple(chosen), tuple(whole[word] for word in chosen), change, distance)


def cosine_distance(one: Float[Tensor, "*batch p"], other: Float[Tensor, " p"]) -> Float[Tensor, "*batch"]:
    """1 - cos of the angle between vectors, as ‖u - v‖² / 2 of their unit vectors: never negative, and exact where the
    two are close, where 1 - cos itself cancels."""
    units = [vectors / torch.linalg.vector_norm(vectors, dim=-1, keepdim=True) for vectors in (one, other)]
    return (units[0] - units[1]).square().sum(dim=-1) / 2


def row_removal(phi: FeatureMap, X: TextMatrix | torch.Tensor, word: int) -> float | None:
    """‖phi(X without row i) - phi(X)‖ / ‖phi(X)‖ for features of the whole text; of features with a row for each word
    the rows other than i are compared (ours; one changed text, not a sup).

    A trained model moves the later words one place forward. None where phi takes no shorter text.

    Args:
        phi: the map.
        X: the text, at least three words.
        word: i.

    >>> from wordsens import RandomAttentionFeatures, gaussian_text
    >>> 0 < row_removal(RandomAttentionFeatures(8, seed=0), gaussian_text(4, 8, seed=0), 1) < 1
    True
    """
    rows = phi.accept(as_text(X).rows)
    n = len(rows)
    if phi.text_shape[0] is not None or n < 3:
        return None
    saved = [at for at in range(n) if at != word]
    with torch.no_grad():
        base, less = phi(rows), phi(rows[saved])
        norm = feature_norm(base, phi.name)
        if base.shape != less.shape:
            base = base[..., saved, :]
        return float(torch.linalg.vector_norm((less - base).flatten(), dtype=torch.float64)) / norm
