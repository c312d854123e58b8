"""Scored pairs: which pairs count, and the similarity that every model gives them, in one table."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import normalize

from wordsens.display.numbers import plural
from wordsens.errors import InputError, argument, require_choice
from wordsens.evaluation.guard import guard as judge
from wordsens.evaluation.texts import Progress as Count
from wordsens.evaluation.texts import counting, encoded
from wordsens.models.load import load
from wordsens.models.model import COSINE, SIMILARITIES, Model
from wordsens.models.pairs import PairModel
from wordsens.results import Result
from wordsens.text.pairs import ASSUMED, ORIGIN, PACKAGE, Pair, Pairs, near_duplicates, read_pairs

# Rounding in float64 moves a cosine of two equal vectors by some 1e-16: cosines have this many
# digits, so that equal ones stay equal.
DIGITS = 12

# Pairs that are left out and named.
_NAMED = 5

# Of a pair, in the table of scored pairs.
_COLUMNS = ("kind", "first", "second", "same", "near", "length", "where")

SCORE = "score"
"""What a model of pairs gives, in the place of the name of a similarity."""

Progress = Callable[[int, int], None]
Mask = Bool[np.ndarray, " pairs"]

OneModel = Model | PairModel | tuple[Model, Model]
"""A model; or two, for the first and the second texts, such as one model with two prompts."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ScoredPairs(Result):
    """One row per pair, one column of similarities per model.

    Attributes:
        pairs: opposites, and texts that mean the same.
        models: the names of the models.
        identities: digests of their weights; "unknown" where they cannot be read.
        scores: what the similarities of each model are: "cosine", another similarity, or "score".
        similarities: one row per model, in float64 and to twelve digits.
        verdicts: of the guard on every pair; None where they were not asked for.
        changes: which pairs were left out or replaced.
    """

    pairs: tuple[Pair, ...]
    models: tuple[str, ...]
    identities: tuple[str, ...]
    scores: tuple[str, ...]
    similarities: Float[np.ndarray, "models pairs"]
    verdicts: tuple[str, ...] | None = None
    changes: tuple[str, ...] = ()

    @property
    def values(self) -> Float[np.ndarray, " pairs"]:
        """The similarities of the first model."""
        return self.similarities[0]

    @property
    def cosines(self) -> bool:
        """True where all similarities are cosines."""
        return {*self.scores} == {COSINE}

    @cached_property
    def near(self) -> Mask:
        """Which pairs are near-duplicates."""
        return np.array([pair.near for pair in self.pairs])

    @cached_property
    def far(self) -> Mask:
        """Which pairs are paraphrases that share few words."""
        return ~self.opposite & ~self.near

    @cached_property
    def opposite(self) -> Mask:
        """Which pairs are opposites, of any kind."""
        return np.array([not pair.same for pair in self.pairs])

    @cached_property
    def opposites(self) -> dict[str, Mask]:
        """For each kind of opposite, which pairs are of that kind."""
        return self._kinds(self.opposite)

    @cached_property
    def near_kinds(self) -> dict[str, Mask]:
        """For each kind of near-duplicate, which pairs are of that kind."""
        return self._kinds(self.near)

    def _kinds(self, members: Mask) -> dict[str, Mask]:
        kinds = np.array([pair.kind for pair in self.pairs])
        return {str(kind): (kinds == kind) & members for kind in dict.fromkeys(kinds[members])}

    @property
    def has_stand_ins(self) -> bool:
        """True where the near-duplicates are the package's, since the user gave none."""
        return any(map(stands_in, self.pairs))

    @cached_property
    def different(self) -> Mask:
        """Which pairs the guard calls different."""
        verdicts = self.verdicts or _verdicts(self.pairs)
        return np.array([verdict == "different" for verdict in verdicts])

    @property
    def headline(self) -> str:
        """How many pairs were scored by which models."""
        return f"{plural(len(self.pairs), 'pair')} scored by {' and '.join(self.models)}"

    def columns(self) -> dict[str, Any]:
        """One row per pair."""
        columns = {name: [getattr(pair, name) for pair in self.pairs] for name in _COLUMNS}
        columns |= zip(self.models, self.similarities.tolist(), strict=True)
        return columns if self.verdicts is None else {**columns, "guard": list(self.verdicts)}


def score_pairs(
    models: Any,
    pairs: Pairs | None = None,
    kinds: Sequence[str] | None = None,
    *,
    prompt_names: Sequence[str] = (),
    guard: bool = False,
    progress: Progress = lambda done, total: None,
) -> ScoredPairs:
    """The similarity of each pair under each model: the cosine, or the model's own similarity; for
    a model that scores pairs, its score.

    Args:
        models: whatever `as_model` or `as_pair_model` takes, or a list of such models.
        pairs: the package's own, or yours: a file, or rows (kind, first, second, same); each pair
            counts once.
        kinds: only these kinds of opposites.
        prompt_names: of a SentenceTransformer: the prompt of all texts, or those of the first and
            the second ones.
        guard: whether every pair gets the verdict of `wordsens.guard`.
        progress: called with (done, total), in texts or pairs.

    Raises:
        InputError: no such model or kind, or a wrong row.

    >>> def letters(texts):
    ...     return [[text.count("o") + 1.0, text.count("n") + 1.0] for text in texts]
    >>> rows = [("state", "It is on.", "It is off.", False), ("tie", "Now on.", "It is on now.", True)]
    >>> scored = score_pairs(letters, rows)
    >>> scored.values.round(3).tolist(), scored.near.tolist()
    ([0.949, 0.981], [False, True])
    """  # noqa: E501
    chosen, changes = choose_pairs(pairs, kinds)
    listed = models if isinstance(models, list) else [models]
    loaded = [prompted(load(model), prompt_names) for model in listed]
    return scored_by(loaded, chosen, changes, guard=guard, progress=progress)


def _verdicts(pairs: Sequence[Pair]) -> tuple[str, ...]:
    return tuple(judge(pair.first, pair.second).verdict for pair in pairs)


def scored_by(
    models: Sequence[OneModel],
    pairs: Sequence[Pair],
    changes: Sequence[str] = (),
    *,
    guard: bool = False,
    progress: Progress = lambda done, total: None,
) -> ScoredPairs:
    """`score_pairs` with loaded models, of pairs that were chosen; those that a model cannot read
    are left out.

    Raises:
        InputError: no opposite or no near-duplicate is left.
    """
    kept, changes = list(pairs), list(changes)
    for model in models:
        kept, unread = readable(model, kept)
        changes += [change for change in unread if change not in changes]
    require_both_sides(kept)
    if not any(pair.near for pair in kept):
        why = f": {'; '.join(changes)}" if changes else ""
        raise InputError(f"{argument('pairs')} holds no near-duplicate that counts{why}; add some")
    total = len(models) * len({text for pair in kept for text in pair.texts})
    count = counting(progress, total)
    rows = [similarities(model, kept, count) for model in models]
    progress(total, total)
    named = [model[0] if isinstance(model, tuple) else model for model in models]
    names: list[str] = []
    for model in named:
        name, number = model.name, 2
        while name in (*names, *_COLUMNS, "guard"):
            name, number = f"{model.name} ({number})", number + 1
        names.append(name)
    return ScoredPairs(
        pairs=tuple(kept),
        models=tuple(names),
        identities=tuple(model.identity() for model in named),
        scores=tuple(map(similarity_name, models)),
        similarities=np.array(rows),
        verdicts=_verdicts(kept) if guard else None,
        changes=tuple(changes),
    )


def prompted(model: Model | PairModel, prompt_names: Sequence[str]) -> OneModel:
    """The model, with its prompt of one name; or two, with the prompts of the first and of the
    second texts."""
    names = [prompt_names] if isinstance(prompt_names, str) else list(prompt_names)
    if not names:
        return model
    if isinstance(model, PairModel) or len(names) > 2:
        raise InputError(
            f"{argument('prompt_names')} (={names!r}) must be one or two names of a model of texts"
        )
    sides = [model.prompted(name) for name in names]
    return sides[0] if len(sides) == 1 else (sides[0], sides[1])


def choose_pairs(
    pairs: Pairs | None, kinds: Sequence[str] | None = None
) -> tuple[list[Pair], list[str]]:
    """The pairs that count, each once, and what was changed: opposites of the kinds, and everything
    that means the same.

    The package's own near-duplicates are added to its own pairs. Where yours hold none, they stand
    in, marked by their `origin`.
    """
    read = read_pairs(pairs)
    distinct: dict[frozenset[str], Pair] = {}
    for pair in read:
        known = distinct.setdefault(pair.texts, pair)
        if _is_set_apart(known) and not _is_set_apart(pair):
            distinct[pair.texts] = pair
    chosen, changes = list(distinct.values()), []
    if repeated := len(read) - len(chosen):
        changes.append(
            f"{plural(repeated, 'row')} left out, with the texts of another row in either order"
        )
    if assumed := sum(ASSUMED in pair.columns for pair in chosen):
        changes.append(f"{plural(assumed, 'row')} with an empty `same` counted as opposites")
    if kinds is not None:
        offered = list(dict.fromkeys(pair.kind for pair in chosen if not pair.same))
        for kind in [kinds] if isinstance(kinds, str) else kinds:
            require_choice("kinds", kind, offered)
        chosen = [pair for pair in chosen if pair.same or pair.kind in kinds]
    own = [pair for pair in chosen if not stands_in(pair)]
    if pairs is None:
        own += near_duplicates()
    elif not any(pair.near for pair in own):
        mark = {ORIGIN: PACKAGE}
        package = near_duplicates()
        own += [replace(pair, columns={**pair.columns, **mark}) for pair in package]
        changes.append(
            "your pairs hold no near-duplicate (same = true, and not set = far): "
            f"{len(package)} English ones of the package stand in"
        )
    elif left_out := len(chosen) - len(own):
        changes.append(f"{plural(left_out, 'near-duplicate')} of the package left out beside yours")
    require_both_sides(own)
    return own, changes


def require_both_sides(pairs: Iterable[Pair]) -> None:
    """Raises an InputError if there is no opposite, or no pair that means the same."""
    sides = {pair.same for pair in pairs}
    if len(sides) < 2:
        missing = (
            "opposite (same=false)" if sides == {True} else "pair that means the same (same=true)"
        )
        raise InputError(f"{argument('pairs')} holds no {missing}; a check compares the two")


def stands_in(pair: Pair) -> bool:
    """True of a near-duplicate of the package that stands in for one of the user's."""
    return pair.same and pair.mark(ORIGIN) == PACKAGE and pair.texts in _package_texts()


@cache
def _package_texts() -> frozenset[frozenset[str]]:
    return frozenset(pair.texts for pair in near_duplicates())


def _is_set_apart(pair: Pair) -> bool:
    """Whether a mark keeps the pair out of some numbers: its plain copy comes first."""
    return pair.drafted or (pair.same and not pair.near)


def similarities(
    model: OneModel, pairs: Sequence[Pair], progress: Count = lambda done: None
) -> Float[np.ndarray, " pairs"]:
    """The similarity of every pair's two texts, in float64 and to twelve digits. A text that
    several pairs share is encoded once."""
    first, second = [pair.first for pair in pairs], [pair.second for pair in pairs]
    if isinstance(model, PairModel):
        both = list(zip(first, second, strict=True))
        return encoded(
            lambda chunk: model.score(*map(list, zip(*chunk, strict=True))), both, progress
        ).numpy()
    if isinstance(model, tuple):
        rows = [
            encoded(side.encode, texts, progress)
            for side, texts in zip(model, (first, second), strict=True)
        ]
    else:
        rows = encoded(model.encode, [*first, *second], progress).chunk(2)
    compare = SIMILARITY_OF[similarity_of(model)]
    values = [float(compare(*both)) for both in zip(*(side.split(1) for side in rows), strict=True)]
    return np.array(values).round(DIGITS)


SIMILARITY_OF: Mapping[
    str, Callable[[Float[Tensor, "a d"], Float[Tensor, "b d"]], Float[Tensor, "a b"]]
] = {
    COSINE: lambda first, second: normalize(first, dim=1) @ normalize(second, dim=1).T,
    "dot": lambda first, second: first @ second.T,
    "euclidean": lambda first, second: (
        -torch.cdist(first, second, compute_mode="donot_use_mm_for_euclid_dist")
    ),
    "manhattan": lambda first, second: -torch.cdist(first, second, p=1),
}
"""The similarity of every vector of one set to every one of another, the higher the closer, by the
names of SIMILARITIES."""


def similarity_of(model: Model | tuple[Model, Model]) -> str:
    """What a model's vectors are compared by; InputError for two models that do it in two ways."""
    sides = model if isinstance(model, tuple) else (model, model)
    if sides[0].similarity != sides[1].similarity:
        compared = [f"{side.name} by the {SIMILARITIES[side.similarity]}" for side in sides]
        raise InputError(
            f"{argument('model')} compares {' and '.join(compared)}; give both models one "
            "similarity_fn_name"
        )
    return sides[0].similarity


def similarity_name(model: OneModel) -> str:
    """What `similarities` gives, in words."""
    return SCORE if isinstance(model, PairModel) else SIMILARITIES[similarity_of(model)]


def readable(model: OneModel, pairs: Sequence[Pair]) -> tuple[list[Pair], list[str]]:
    """The pairs that count, and what was changed.

    A pair with a text that the model refuses, such as one emoji, is left out. A pair whose texts
    differ only past what the model reads is one text to it in service too, so that it counts; of
    the package's own pairs, which are about meaning and not about length, it is left out.
    """
    sides = model if isinstance(model, tuple) else (model, model)
    refusals = [
        side.refusals([getattr(pair, which) for pair in pairs]) if isinstance(side, Model) else {}
        for side, which in zip(sides, ("first", "second"), strict=True)
    ]
    counted: list[Pair] = []
    refused: list[tuple[str, str]] = []
    alike: list[Pair] = []
    unread = 0
    for pair in pairs:
        if reason := refusals[0].get(pair.first) or refusals[1].get(pair.second):
            refused.append((_place(pair), reason))
        elif not _is_one_text(sides, pair):
            counted.append(pair)
        elif pair.where == PACKAGE:
            unread += 1
        else:
            counted.append(pair)
            alike.append(pair)
    changes = []
    if refused:
        named = ", ".join(place for place, _ in refused[:_NAMED])
        changes.append(
            f"{plural(len(refused), 'pair')} left out, with a text that the model cannot read "
            f"({named}{', ...' * (len(refused) > _NAMED)}: {refused[0][1]})"
        )
    if alike:
        opposites = sum(not pair.same for pair in alike)
        changes.append(
            f"{plural(len(alike), 'pair')} ({plural(opposites, 'opposite')}) with texts that "
            "differ only past what the model reads: they are one text to it and count as hits "
            f"(the first: {_place(alike[0])})"
        )
    if unread:
        changes.append(
            f"{plural(unread, 'pair')} of the package left out, with texts that differ only past "
            "what the model reads"
        )
    return counted, changes


def _is_one_text(sides: Sequence[Model | PairModel], pair: Pair) -> bool:
    """Whether the parts of the two texts that the model reads are equal."""
    texts = pair.first, pair.second
    if isinstance(sides[0], PairModel):
        spans = sides[0].read_spans(*texts)
    else:
        spans = [side.read_span(text) for side, text in zip(sides, texts, strict=True)]  # pyright: ignore[reportAttributeAccessIssue]
    read = tuple(text[slice(*span)] for text, span in zip(texts, spans, strict=True))
    return read != texts and read[0].strip() == read[1].strip()


def _place(pair: Pair) -> str:
    return f"{pair.first[:40]!r}..." if pair.where == PACKAGE else pair.where


def require_threshold(threshold: float, cosines: bool) -> None:
    """InputError for a threshold that is no finite number, or that no cosine can have."""
    is_number = isinstance(threshold, int | float) and not isinstance(threshold, bool)
    if not is_number or not math.isfinite(threshold):
        raise InputError(
            f"{argument('threshold')} (={threshold!r}) must be a finite number, such as 0.92"
        )
    if cosines and abs(threshold) > 1:
        raise InputError(
            f"{argument('threshold')} (={threshold:g}) must be a cosine, from -1 to 1, such as 0.92"
        )
