"""Words of one text that are deleted, masked, or swapped for the word of a vocabulary that moves a
map most.

A swap is found by a scan of all entries, or by a shortlist (ours) for maps whose every evaluation
is a pass of a model: some entries, the anchors, are evaluated with their gradients, and the squared
change f of every other entry is predicted from each anchor to first order,

    f(Delta_v) ≈ sum_a w_va (f(Delta_a) + g_a . (Delta_v - Delta_a)) / sum_a w_va,

with weights w_va = exp(8 cos) of the angle between the entries' rows. The best predicted entries
are the next anchors. Every reported change is computed, not predicted.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.display.numbers import plural
from wordsens.errors import InputError, argument, require_choice, require_count, require_kind
from wordsens.maps.arguments import as_feature_map, as_text, word_indices
from wordsens.maps.base import DEFAULT_MEMORY_BUDGET, Change, FeatureMap
from wordsens.maps.mapping import feature_norm, restores_state
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.models.vocabulary import Vocabulary
from wordsens.search.objective import Progress
from wordsens.seeds import Seed, generator
from wordsens.sensitivity.one_word import relative_change
from wordsens.sensitivity.result import SensitivityResult
from wordsens.text.document import Document
from wordsens.text.matrix import TextMatrix

WAYS = ("delete", "mask")
SEARCHES = ("auto", "scan", "shortlist")

# Entries that a shortlist evaluates for each word by default, and how many at a time.
_ANCHORS, _BATCH = 288, 24

# How fast an anchor's weight falls with the angle: exp(sharpness cos).
_SHARPNESS = 8.0

# Entries this close to the best, relative, in the squared change are evaluated again in the map's
# own precision.
_COARSE_MARGIN = 1e-3

_CHUNK_BYTES = 192 << 20
_ENTRIES_AT_ONCE = 2048


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Replacements(SensitivityResult):
    """What swapping, deleting or masking single words of one text does to a map.

    Attributes:
        value: the largest of `per_word`.
        way: "swap", "delete" or "mask".
        word: the word with the largest change.
        words: (w,), rows of the text; of removals, numbers of its whole words.
        tokens: what these words are called.
        swapped_for: of swaps, the vocabulary's entry of each word that moves the map most.
        per_word: (w,), ‖phi(changed text) - phi(X)‖ / ‖phi(X)‖, computed through phi.
        distance: (w,), of removals, 1 - cos of the angle between the two.
        perturbations: (w, d), of swaps, from the word's row to the entry's.
        search: of swaps, "scan" or "shortlist".
        exact: whether every entry was evaluated; if not, a better swap may exist.
        evaluations: texts that were mapped, a gradient counted as three.
    """

    way: str
    word: int
    words: Int[Tensor, " w"]
    tokens: tuple[str, ...]
    per_word: Float[Tensor, " w"]
    swapped_for: tuple[str, ...] = ()
    distance: Float[Tensor, " w"] | None = None
    exact: bool = True

    ranked = "change"
    row_names = "token"

    @property
    def headline(self) -> str:
        """The replacement that moves the output most."""
        place = int(self.per_word.argmax())
        moves = f"moves the output {self.value:.3g} times its size, the most of"
        if not self.swapped_for:
            removed = {"delete": "Deleting", "mask": "Masking"}[self.way]
            return f"{removed} {self.tokens[place]!r} {moves} all words"
        return (
            f"{self.swapped_for[place]!r} in place of {self.tokens[place]!r} (word {self.word}) "
            f"{moves} {'all' if self.exact else 'those tried'}"
        )

    def columns(self) -> dict[str, Any]:
        """One row per word."""
        columns = {
            "word": self.words.tolist(),
            "token": self.tokens,
            "swapped for": self.swapped_for,
            "change": self.per_word.tolist(),
            "distance": [] if self.distance is None else self.distance.tolist(),
        }
        return {name: cells for name, cells in columns.items() if cells}


@restores_state
@torch.no_grad()
def best_swaps(
    phi: FeatureMap | Callable[[Tensor], Tensor],
    X: TextMatrix | Tensor | np.ndarray,
    words: Iterable[int] | Tensor | SupportsIndex | None = None,
    seed: Seed = 0,
    *,
    vocabulary: Vocabulary,
    search: str | int = "auto",
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
    progress: Progress | None = None,
) -> Replacements:
    """max over the vocabulary's entries v of ‖phi(X^i(x_v - x_i)) - phi(X)‖ / ‖phi(X)‖, for each
    word i.

    The swap may be longer than the radius of a ball around x_i. Cost for each word: v evaluations
    for a scan, which a map with a closed form makes cheap; for a shortlist of a anchors, a
    evaluations with their gradients, and O(v a d) for the predictions.

    Args:
        phi, X: as for word_sensitivity.
        words: the rows that are swapped; None for all.
        seed: of a shortlist's first anchors.
        vocabulary: what a word may become, with its row at each place.
        search: "scan": every entry, exact; "shortlist", or the number of its anchors for each word;
            "auto": the shortlist for transformers, the scan for all others.
        memory_budget, progress: as for word_sensitivity.

    >>> import torch
    >>> rows = torch.tensor([[2.0, 0.0], [0.0, 5.0]], dtype=torch.float64)
    >>> vocabulary = Vocabulary.of_rows(["a", "b"], rows)
    >>> swaps = best_swaps(lambda X: X, torch.eye(2, dtype=torch.float64), vocabulary=vocabulary)
    >>> swaps.swapped_for, swaps.exact
    (('b', 'b'), True)
    """
    started = time.perf_counter()
    phi, text = as_feature_map(phi), as_text(X)
    anchors = _ANCHORS
    if not isinstance(search, str):
        anchors = require_count("search", search)
    elif require_choice("search", search, SEARCHES) == "auto":
        search = "shortlist" if hasattr(phi, "bytes_per_text") else "scan"
    rows = phi.accept(text.rows)
    chosen = word_indices(words, len(text)).to(rows.device)
    change = phi.change(rows, chosen.unsqueeze(1), memory_budget=memory_budget)
    if search == "scan":
        squared = _scan(change.coarse(), chosen, vocabulary, progress)
        evaluations = squared.numel()
    else:
        stream = generator(seed, "anchors")
        squared = _shortlist(change.coarse(), chosen, vocabulary, anchors, stream, progress)
        evaluations = 3 * int((squared != -torch.inf).sum())
    entries, deltas = [], []
    for place, word in enumerate(chosen):
        best = squared[place].max()
        finalists = (squared[place] >= best * (1 - _COARSE_MARGIN)) | squared[place].isnan()
        finalists = finalists.nonzero().squeeze(1)
        delta = _deltas(change, word, vocabulary, finalists)
        winner = change.value(delta, torch.full_like(finalists, place)).argmax()
        evaluations += len(finalists)
        entries.append(int(finalists[winner]))
        deltas.append(delta[winner])
    perturbations = torch.stack(deltas)
    per_word = relative_change(
        phi, rows, chosen.unsqueeze(1), perturbations, memory_budget=memory_budget
    )
    return Replacements(
        value=float(per_word.max()),
        way="swap",
        word=int(chosen[per_word.argmax()]),
        words=chosen,
        tokens=tuple(text.word(int(word)) for word in chosen),
        swapped_for=tuple(vocabulary.tokens[entry] for entry in entries),
        per_word=per_word,
        perturbations=perturbations.squeeze(1),
        search="scan" if search == "scan" else "shortlist",
        exact=bool((squared != -torch.inf).all()),
        converged=None,
        evaluations=evaluations + len(chosen),
        seconds=time.perf_counter() - started,
        seed=int(seed),
    )


def _scan(
    change: Change,
    words: Int[Tensor, " w"],
    vocabulary: Vocabulary,
    progress: Progress | None,
) -> Float[Tensor, "w v"]:
    """The squared change of every word by every entry."""
    places = torch.arange(len(words), device=words.device)
    size = max(1, _CHUNK_BYTES // (4 * len(words) * change.rows[0].nbytes))
    squared = []
    for chunk in torch.arange(len(vocabulary), device=words.device).split(size):
        delta = vocabulary.rows(chunk, words).to(change.rows) - change.rows[words]
        pairs = delta.flatten(end_dim=1).unsqueeze(1)
        squared.append(change.value(pairs, places.repeat(len(chunk))).view(len(chunk), -1))
        if progress is not None:
            progress(int(chunk[-1]) + 1, len(vocabulary))
    return torch.cat(squared).T


def _shortlist(
    change: Change,
    words: Int[Tensor, " w"],
    vocabulary: Vocabulary,
    anchors: int,
    stream: torch.Generator,
    progress: Progress | None,
) -> Float[Tensor, "w v"]:
    """The squared change of every word by its anchors, and -inf for all other entries."""
    count, device = len(vocabulary), words.device
    everything = torch.arange(count, device=device)
    outliers = torch.tensor(vocabulary.outliers, dtype=torch.long)
    squared = change.rows.new_full((len(words), count), -torch.inf)
    for place, word in enumerate(words):
        deltas = _deltas(change, word, vocabulary, everything)[:, 0]
        directions = torch.nn.functional.normalize(deltas - deltas.mean(dim=0), dim=1)
        drawn = torch.randperm(count, generator=stream)[: min(_BATCH, anchors)]
        new = torch.cat([drawn, outliers]).unique().to(device)
        predicted, total = change.rows.new_zeros(2, count)
        while len(new):
            value, slope = change.value_and_gradient(
                deltas[new].unsqueeze(1), torch.full_like(new, place)
            )
            squared[place, new] = value
            offset = value - (slope[:, 0] * deltas[new]).sum(dim=1)
            weight = torch.exp(_SHARPNESS * directions @ directions[new].T)
            predicted += (weight * (deltas @ slope[:, 0].T + offset)).sum(dim=1)
            total += weight.sum(dim=1)
            seen = squared[place] != -torch.inf
            left = max(0, min(anchors, count) - int(seen.sum()))
            ranked = (predicted / total).masked_fill(seen, -torch.inf)
            new = ranked.topk(min(_BATCH, left)).indices
        if progress is not None:
            progress(place + 1, len(words))
    return squared


def _deltas(
    change: Change, word: Tensor, vocabulary: Vocabulary, entries: Int[Tensor, " e"]
) -> Float[Tensor, "e 1 d"]:
    """From the word's row to that of each entry."""
    chunks = entries.split(_ENTRIES_AT_ONCE)
    rows = torch.cat([vocabulary.rows(chunk, word.unsqueeze(0)) for chunk in chunks])
    return rows.to(change.rows) - change.rows[word]


def removal_effects(
    phi: TransformerFeatures,
    text: str | Document,
    words: Sequence[int] | None = None,
    *,
    way: str = "delete",
    max_words: int | None = None,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> Replacements:
    """The change of phi when a whole word is deleted, or each of its tokens becomes the mask token.

    This is no sup: one changed text per word, as in occlusion and leave-one-out tools. Deleting
    moves the later words one place forward. Cost: one forward pass per word, batched by length.

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
            word index out of range; a text whose only word would be deleted.

    >>> phi = TransformerFeatures.from_pretrained("minilm", pool="own")
    >>> removed = removal_effects(phi, "This film is not good", way="delete")
    >>> removed.tokens
    ('This', 'film', 'is', 'not', 'good')
    """
    started = time.perf_counter()
    require_choice("way", way, WAYS)
    require_kind(
        "phi", phi, TransformerFeatures, remedy="load one with TransformerFeatures.from_pretrained"
    )
    mask: Any = None if phi.model.tokenizer is None else phi.model.tokenizer.mask_token_id
    if way == "mask" and mask is None:
        raise InputError(
            f"{argument('way')} (='mask') needs a mask token, but {phi.name} has none; use "
            f"{argument('way', 'delete')}"
        )
    document = text.text if isinstance(text, Document) else text
    tokens = phi.model.read(document, "the text", max_words)
    whole = tuple(tokens.whole_words or ())
    least = 2 if way == "delete" else 1
    if len(whole) < least:
        raise InputError(
            f"{argument('text')} has {plural(len(whole), 'word')}, and {argument('way', way)} "
            f"takes {least} or more; give a longer text"
        )
    if way == "delete" and phi.pool is None and phi.output == "states":
        raise InputError(
            f"{argument('way')} (='delete') changes the number of rows, and phi keeps every row; "
            f"choose a pool, or {argument('way', 'mask')}"
        )
    chosen = word_indices(words, len(whole)).tolist()
    # None stands for a token that is deleted.
    new = mask if way == "mask" else None
    replaced = [
        [new if row in whole[word].rows else old for row, old in enumerate(tokens.ids)]
        for word in chosen
    ]
    changed = [[each for each in ids if each is not None] for ids in replaced]

    def features(batch: Int[Tensor, "b n"]) -> Float[Tensor, "b features"]:
        size = max(1, memory_budget // phi.bytes_per_text(batch.shape[1]))
        mapped = [phi(phi.rows_of(part)) for part in batch.split(size)]
        return torch.cat(mapped).flatten(start_dim=1).double().cpu()

    with torch.no_grad():
        base, *others = phi.model.by_length([tokens.ids, *changed], features)
    moved = torch.stack(others)
    change = torch.linalg.vector_norm(moved - base, dim=1) / feature_norm(base, phi.name)
    return Replacements(
        value=float(change.max()),
        way=way,
        word=chosen[int(change.argmax())],
        words=torch.tensor(chosen),
        tokens=tuple(whole[word].text for word in chosen),
        per_word=change,
        perturbations=(),
        converged=None,
        distance=cosine_distance(moved, base),
        evaluations=len(chosen) + 1,
        seconds=time.perf_counter() - started,
    )


def cosine_distance(
    first: Float[Tensor, "*batch p"], second: Float[Tensor, " p"]
) -> Float[Tensor, "*batch"]:
    """1 - cos of the angle between vectors, as ‖u - v‖² / 2 of their unit vectors: never negative,
    and exact where the two are close, where 1 - cos itself cancels."""
    units = [vectors / vectors.norm(dim=-1, keepdim=True) for vectors in (first, second)]
    return (units[0] - units[1]).square().sum(dim=-1) / 2


@torch.no_grad()
def row_removal(phi: FeatureMap, X: TextMatrix | Tensor, word: int) -> float | None:
    """‖phi(X without row i) - phi(X)‖ / ‖phi(X)‖ for features of a whole text of three words or
    more; of features with a row for each word the rows other than i are compared (ours; one changed
    text, not a sup).

    A trained model moves the later words one place forward. None where phi takes no shorter text.

    >>> from wordsens import RandomAttentionFeatures, gaussian_text
    >>> 0 < row_removal(RandomAttentionFeatures(8, seed=0), gaussian_text(4, 8, seed=0), 1) < 1
    True
    """
    rows = phi.accept(as_text(X).rows)
    others = [row for row in range(len(rows)) if row != word]
    if phi.text_shape[0] is not None or len(others) < 2:
        return None
    base, left = phi(rows), phi(rows[others])
    norm = feature_norm(base, phi.name)
    if base.shape != left.shape:
        base = base[..., others, :]
    return float(torch.linalg.vector_norm(left - base, dtype=torch.float64)) / norm
