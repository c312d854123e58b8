"""Real swaps: the word of a vocabulary that, put in the place of a word of the text, moves a map
most.

By a scan of all entries, or by a shortlist (ours), for maps whose every evaluation is a pass of a
model. A few entries, the anchors, are evaluated with their gradients; every other entry's squared
change is predicted from each anchor to first order,

    f(Delta_v) ≈ m_v = sum_a w_av (f(Delta_a) + g_a . (Delta_v - Delta_a)),

with weights w_av that fall with the angle between the rows, plus what kriging makes of the misses f
- m at all entries E that were evaluated, k_vE (K_EE + noise)^-1 (f - m)_E, with k that falls with
  the angle too (simple kriging). The best
predicted are evaluated, the best of those become anchors, and so on. The first anchors are spread
over the vocabulary by k-means, its centres seeded by k-means++ (Arthur and Vassilvitskii, 2007), or
a group of few entries would be overlooked. The vocabulary's outliers are evaluated whatever is
predicted. What it returns is evaluated, not predicted.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.errors import require_choice
from wordsens.maps.arguments import as_feature_map, as_text, word_indices
from wordsens.maps.base import DEFAULT_MEMORY_BUDGET, Change, FeatureMap
from wordsens.models.vocabulary import Vocabulary
from wordsens.search.objective import Progress
from wordsens.seeds import Seed, generator
from wordsens.sensitivity.one_word import relative_change
from wordsens.sensitivity.result import SensitivityResult
from wordsens.text.matrix import TextMatrix

SEARCHES = ("auto", "scan", "shortlist")

FINALISTS = 16
"""The number of entries a word keeps for a second evaluation in the map's own precision."""

_COARSE_MARGIN = 1e-3
"""Entries this close to the best, relative, in the squared change are not told apart by a scan in
float32."""

_LLOYD_STEPS = 8
"""Of k-means."""

_NOISE = 1e-2
"""Of the kernel's 1 at a distance of 0: how far the misses of two entries with the same direction
may differ."""

_CHUNK_BYTES = 192 << 20
_PREDICTED_AT_ONCE = 8192
"""Entries: their kernel with all that were evaluated is held."""


@dataclass(frozen=True)
class ShortlistPlan:
    """The effort that a shortlist spends on each word.

    Attributes:
        anchors: entries evaluated with their gradients at the beginning, spread over the
            vocabulary.
        rounds: how often entries are predicted and evaluated.
        verified: entries evaluated a round.
        promoted: how many of them become anchors.
        sharpness: how fast an anchor's weight falls with the angle: exp(sharpness cos).
        kriging: how fast the correction's kernel falls with the angle: exp(kriging (cos - 1)).
    """

    anchors: int = 24
    rounds: int = 8
    verified: int = 80
    promoted: int = 8
    sharpness: float = 8.0
    kriging: float = 2.0

    def evaluations(self) -> int:
        """Evaluations a word besides the vocabulary's outliers, a gradient counted as three."""
        return (
            3 * self.anchors
            + self.rounds * self.verified
            + 3 * (self.rounds - 1) * self.promoted
            + FINALISTS
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Swaps(SensitivityResult):
    """The swaps of words of one text that move a map most.

    Attributes:
        value: the largest of `per_word`.
        word: the row of its word.
        words: (w,), the rows that were swapped.
        tokens: what they are called.
        swapped_for: the vocabulary's entry of each that moves the map most.
        per_word: (w,), ‖phi(X^i(Delta)) - phi(X)‖ / ‖phi(X)‖ of that swap, recomputed through phi.
        perturbations: (w, d), from the word's row to the entry's.
        search: "scan" or "shortlist".
        exact: whether every entry was evaluated; if not, a better swap may exist.
        evaluations: swaps that were evaluated, a gradient counted as three.
    """

    word: int
    words: Int[Tensor, " w"]
    tokens: tuple[str, ...]
    swapped_for: tuple[str, ...]
    per_word: Float[Tensor, " w"]
    perturbations: Float[Tensor, "w d"]
    exact: bool

    ranked = "change"
    row_names = "token"

    @property
    def headline(self) -> str:
        """The swap that moves the output most."""
        place = int((self.words == self.word).nonzero()[0])
        most = "the most of all" if self.exact else "the most of those tried"
        return (
            f"{self.swapped_for[place]!r} in place of {self.tokens[place]!r} (word {self.word}) "
            f"moves the output {self.value:.3g} times its size, {most}"
        )

    def columns(self) -> dict[str, Any]:
        """One row per word."""
        return {
            "word": self.words.tolist(),
            "token": self.tokens,
            "swapped for": self.swapped_for,
            "change": self.per_word.tolist(),
        }


def best_swaps(
    phi: FeatureMap | Callable[[Tensor], Tensor],
    X: TextMatrix | Tensor | np.ndarray,
    words: Iterable[int] | Tensor | SupportsIndex | None = None,
    seed: Seed = 0,
    *,
    vocabulary: Vocabulary,
    search: str | ShortlistPlan = "auto",
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
    progress: Progress | None = None,
) -> Swaps:
    """max over the vocabulary's entries v of ‖phi(X^i(x_v - x_i)) - phi(X)‖ / ‖phi(X)‖, for each
    word i.

    The swap may be longer than the radius of a ball around x_i. Cost: w v evaluations for a scan,
    which a map with a closed form makes cheap; ShortlistPlan.evaluations() = E passes of the model
    a word for a shortlist, and O(v E d) for its predictions.

    Args:
        phi, X: as for word_sensitivity.
        words: the rows that are swapped; None for all.
        seed: of a shortlist's first entries.
        vocabulary: what a word may become, with its row at each place.
        search: "scan": every entry, exact; "shortlist", or a ShortlistPlan: by gradients, then
            evaluated; "auto": the shortlist for transformers, the scan for all others.
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
    plan = search if isinstance(search, ShortlistPlan) else ShortlistPlan()
    if not isinstance(search, ShortlistPlan):
        require_choice("search", search, SEARCHES)
    rows = phi.accept(text.rows)
    chosen = word_indices(words, len(text)).to(rows.device)
    groups = torch.arange(len(rows), device=rows.device).unsqueeze(1)
    change = phi.change(rows, groups, memory_budget=memory_budget)
    exact = search == "scan" or (search == "auto" and not hasattr(phi, "bytes_per_text"))
    if exact:
        best = scan(change, chosen, vocabulary, progress)
    else:
        best = shortlist(change, chosen, vocabulary, plan, seed, progress)
    per_word = relative_change(
        phi, rows, chosen.unsqueeze(1), best.perturbations.unsqueeze(1), memory_budget=memory_budget
    )
    most = int(per_word.argmax())
    return Swaps(
        value=float(per_word[most]),
        word=int(chosen[most]),
        words=chosen,
        tokens=tuple(text.word(int(word)) for word in chosen),
        swapped_for=tuple(vocabulary.tokens[int(entry)] for entry in best.entries),
        per_word=per_word,
        perturbations=best.perturbations,
        search="scan" if exact else "shortlist",
        exact=exact,
        converged=None,
        evaluations=best.evaluations + len(chosen),
        seconds=time.perf_counter() - started,
        seed=int(seed),
    )


@dataclass(frozen=True)
class BestEntries:
    """The best entry of each word.

    Attributes:
        entries: (w,), indices into the vocabulary.
        perturbations: (w, d), from the word's row to the entry's.
        evaluations: swaps that were evaluated, a gradient counted as three.
    """

    entries: Int[Tensor, " w"]
    perturbations: Float[Tensor, "w d"]
    evaluations: int


def scan(
    change: Change,
    words: Int[Tensor, " w"],
    vocabulary: Vocabulary,
    progress: Progress | None = None,
) -> BestEntries:
    """Every entry for every word: exact. O(w v) evaluations, in float32 where the map has a faster
    float32 twin.

    Entries that float32 cannot tell from the best are evaluated again in the map's own precision.
    """
    coarse = change.coarse()
    w, d = len(words), change.rows.shape[1]
    size = max(1, _CHUNK_BYTES // (4 * w * d * change.rows.element_size()))
    best = torch.full((w, FINALISTS), -torch.inf, dtype=coarse.rows.dtype, device=words.device)
    entry = torch.zeros(w, FINALISTS, dtype=torch.long, device=words.device)
    everything = torch.arange(len(vocabulary), device=words.device)
    for start in range(0, len(vocabulary), size):
        chunk = everything[start : start + size]
        delta = vocabulary.rows(chunk, words).to(coarse.rows) - coarse.rows[words]
        squared = (
            coarse.value(delta.flatten(end_dim=1).unsqueeze(1), words.repeat(len(chunk)))
            .view(len(chunk), w)
            .T
        )
        joined = torch.cat([best, squared], dim=1)
        best, places = (
            joined.topk(FINALISTS, dim=1) if joined.shape[1] >= FINALISTS else (joined, None)
        )
        entry = (
            torch.cat([entry, chunk.expand(w, -1)], dim=1).gather(1, places)
            if places is not None
            else entry
        )
        if progress is not None:
            progress(min(start + size, len(vocabulary)), len(vocabulary))
    evaluations = w * len(vocabulary)
    if coarse is not change:
        best, more = _verified(change, words, vocabulary, entry, best)
        evaluations += more
    chosen = entry.gather(1, best.argmax(dim=1, keepdim=True)).squeeze(1)
    return BestEntries(chosen, _deltas(change, vocabulary, chosen, words), evaluations)


def _verified(
    change: Change, words: Tensor, vocabulary: Vocabulary, entry: Tensor, coarse: Tensor
) -> tuple[Tensor, int]:
    """The finalists' squared changes in the map's own precision; a word whose finalists are all
    alike is scanned so."""
    finite = torch.isfinite(coarse)
    exact = torch.full_like(coarse, -torch.inf, dtype=change.rows.dtype)
    for rank in range(coarse.shape[1]):
        delta = _deltas(change, vocabulary, entry[:, rank], words)
        exact[:, rank] = torch.where(
            finite[:, rank], change.value(delta.unsqueeze(1), words), -torch.inf
        )
    evaluations = int(finite.sum())
    crowded = coarse[:, -1] > coarse.amax(dim=1) * (1 - _COARSE_MARGIN)
    for place in crowded.nonzero().squeeze(1).tolist():
        word = words[place : place + 1]
        for chunk in torch.arange(len(vocabulary), device=words.device).split(4096):
            delta = (vocabulary.rows(chunk, word)[:, 0] - change.rows[word]).to(change.rows.dtype)
            squared = change.value(delta.unsqueeze(1), word.expand(len(chunk)))
            evaluations += len(chunk)
            if squared.max() > exact[place].max():
                entry[place, 0], exact[place, 0] = chunk[squared.argmax()], squared.max()
    return exact, evaluations


def shortlist(
    change: Change,
    words: Int[Tensor, " w"],
    vocabulary: Vocabulary,
    plan: ShortlistPlan,
    seed: Seed,
    progress: Progress | None = None,
) -> BestEntries:
    """The best of the entries that the plan evaluates, for each word: not always the best of
    all."""
    coarse, stream = change.coarse(), generator(seed, "anchors")
    everything = torch.arange(len(vocabulary), device=words.device)
    outliers = torch.tensor(vocabulary.outliers, dtype=torch.long, device=words.device)
    chosen, deltas, evaluations = [], [], 0
    for done, word in enumerate(words.split(1), start=1):
        rows = torch.cat([vocabulary.rows(chunk, word)[:, 0] for chunk in everything.split(2048)])
        hunt = _Hunt(coarse, int(word), rows.to(coarse.rows), plan, outliers)
        finalists = hunt.run(stream)
        delta = (rows[finalists] - change.rows[word]).to(change.rows.dtype)
        exact = change.value(delta.unsqueeze(1), word.expand(len(finalists)))
        evaluations += hunt.evaluations + len(finalists)
        chosen.append(finalists[exact.argmax()])
        deltas.append(delta[exact.argmax()])
        if progress is not None:
            progress(done, len(words))
    return BestEntries(torch.stack(chosen), torch.stack(deltas), evaluations)


class _Hunt:
    """The shortlist of one word."""

    def __init__(
        self,
        change: Change,
        word: int,
        rows: Float[Tensor, "v d"],
        plan: ShortlistPlan,
        outliers: Int[Tensor, " o"],
    ):
        self._change, self._word, self._plan = change, word, plan
        self._deltas = rows - change.rows[word]
        self._directions = torch.nn.functional.normalize(rows - rows.mean(dim=0), dim=1)
        self._squared = torch.full((len(rows),), -torch.inf, dtype=rows.dtype, device=rows.device)
        self.evaluations = 0
        if len(outliers):
            self._evaluate(outliers)

    def run(self, stream: torch.Generator) -> Int[Tensor, " f"]:
        """The finalists: the entries with the largest squared change of those evaluated."""
        plan, new = self._plan, self._spread(stream)
        anchors = new[:0]
        slopes = self._deltas[:0]
        for turn in range(plan.rounds):
            value, slope = self._change.value_and_gradient(
                self._deltas[new].unsqueeze(1), self._same(new)
            )
            slope = slope.squeeze(1)
            self._squared[new] = value
            anchors, slopes = torch.cat([anchors, new]), torch.cat([slopes, slope])
            self.evaluations += 3 * len(new)
            score = self._predicted(anchors, slopes).masked_fill(
                torch.isfinite(self._squared), -torch.inf
            )
            open_ones = int(torch.isfinite(score).sum())
            promising = score.topk(min(plan.verified, open_ones)).indices
            if len(promising) == 0:
                break
            self._evaluate(promising)
            if turn + 1 < plan.rounds:
                # Of all that were evaluated, whenever and for whatever reason.
                best = self._squared.index_fill(0, anchors, -torch.inf)
                new = best.topk(min(plan.promoted, int(torch.isfinite(best).sum()))).indices
        return self._squared.topk(min(FINALISTS, int(torch.isfinite(self._squared).sum()))).indices

    def _spread(self, stream: torch.Generator) -> Int[Tensor, " a"]:
        """The entries nearest the centres of spherical k-means, seeded by k-means++: at most
        `anchors`."""
        directions, count = self._directions, min(self._plan.anchors, len(self._directions))
        drawn = torch.rand(count, generator=stream, dtype=torch.float64).to(directions.device)
        chosen = [int(drawn[0] * len(directions))]
        apart = torch.full(
            (len(directions),), torch.inf, dtype=torch.float64, device=directions.device
        )
        for share in drawn[1:]:
            apart = torch.minimum(apart, 1 - (directions @ directions[chosen[-1]]).double()).clamp(
                min=0
            )
            mass = apart.cumsum(dim=0)
            chosen.append(
                min(
                    int(torch.searchsorted(mass, share * mass[-1], right=True)), len(directions) - 1
                )
            )
        centres = directions[chosen]
        for _ in range(_LLOYD_STEPS):
            nearest = (directions @ centres.T).argmax(dim=1)
            sums = torch.zeros_like(centres).index_add_(0, nearest, directions)
            centres = torch.nn.functional.normalize(sums, dim=1)
        return (directions @ centres.T).argmax(dim=0).unique()

    def _predicted(
        self, anchors: Int[Tensor, " a"], slopes: Float[Tensor, "a d"]
    ) -> Float[Tensor, " v"]:
        """The squared change of every entry: the first-order mixture m and the correction. O(v E d
        + E³)."""
        known = torch.isfinite(self._squared).nonzero().squeeze(1)
        offsets = self._squared[anchors] - torch.linalg.vecdot(slopes, self._deltas[anchors])

        def first_order(entries: Tensor) -> Tensor:
            weights = torch.softmax(self._plan.sharpness * self._cosines(entries, anchors), dim=1)
            return (weights * (self._deltas[entries] @ slopes.T + offsets)).sum(dim=1)

        def kernel(entries: Tensor) -> Tensor:
            return torch.exp(self._plan.kriging * (self._cosines(entries, known) - 1))

        among = kernel(known).double()
        among.diagonal().add_(_NOISE)
        misses = (self._squared[known] - first_order(known)).double().unsqueeze(1)
        weights = (
            torch.cholesky_solve(misses, torch.linalg.cholesky(among)).squeeze(1).to(offsets.dtype)
        )
        everything = torch.arange(len(self._deltas), device=known.device)
        return torch.cat(
            [
                first_order(chunk) + kernel(chunk) @ weights
                for chunk in everything.split(_PREDICTED_AT_ONCE)
            ]
        )

    def _cosines(
        self, entries: Int[Tensor, " e"], others: Int[Tensor, " o"]
    ) -> Float[Tensor, "e o"]:
        return self._directions[entries] @ self._directions[others].T

    def _evaluate(self, entries: Int[Tensor, " e"]) -> None:
        self._squared[entries] = self._change.value(
            self._deltas[entries].unsqueeze(1), self._same(entries)
        )
        self.evaluations += len(entries)

    def _same(self, entries: Tensor) -> Tensor:
        return torch.full_like(entries, self._word)


def _deltas(
    change: Change, vocabulary: Vocabulary, entries: Tensor, words: Tensor
) -> Float[Tensor, "w d"]:
    """From each word's row to its own entry's."""
    # Rows are asked for word by word: an entry's row may depend on the place.
    pairs = zip(entries.split(1), words.split(1), strict=True)
    rows = [vocabulary.rows(entry, word)[0, 0] for entry, word in pairs]
    return (torch.stack(rows) - change.rows[words]).to(change.rows.dtype)
