"""The pairs of a check, a model's similarity of their two texts, and the threshold that keeps what
means the same."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from wordsens.display.numbers import plural
from wordsens.errors import InputError, require_choice
from wordsens.models.model import COSINE, SIMILARITIES, Model
from wordsens.models.pairs import PairModel
from wordsens.text.pairs import (
    ASSUMED,
    ORIGIN,
    PACKAGE,
    SYNONYM,
    Pair,
    Pairs,
    near_duplicates,
    read_pairs,
)

CHUNK = 64
"""Texts, or pairs, between two reports of progress."""

SAME_VECTOR = 1e-12
"""The distance of a cosine from 1 up to which two vectors are equal: rounding in float64 moves it
by some 1e-16."""

_DIGITS = 12

_NAMED = 5
"""Pairs that are left out and named."""

Progress = Callable[[int, int], None]


def prompted(
    model: Model | PairModel, prompt_names: Sequence[str]
) -> Model | PairModel | tuple[Model, Model]:
    """The model, with its prompt of one name; or two, with the prompts of the first and of the
    second texts."""
    names = [prompt_names] if isinstance(prompt_names, str) else list(prompt_names)
    if not names:
        return model
    if isinstance(model, PairModel) or len(names) > 2:
        raise InputError(
            f"`prompt_names` (={names!r}) must be one or two names of a model of texts"
        )
    sides = [model.prompted(name) for name in names]
    return sides[0] if len(sides) == 1 else (sides[0], sides[1])


def choose_pairs(
    pairs: Pairs | None, kinds: Sequence[str] | None = None
) -> tuple[list[Pair], list[str]]:
    """The pairs of a check, each once, and what was changed: opposites of the kinds, and everything
    that means the same.

    The package's own near-duplicates are added to its own pairs; where yours hold none they stand
    in, marked by their `origin`.
    """
    read = read_pairs(pairs)
    distinct: dict[frozenset[str], Pair] = {}
    for pair in read:
        known = distinct.setdefault(pair.texts, pair)
        if _is_set_apart(known) and not _is_set_apart(pair):
            distinct[pair.texts] = pair
    chosen = list(distinct.values())
    repeated = len(read) - len(chosen)
    changes = []
    if repeated:
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
    package = near_duplicates()
    own = [pair for pair in chosen if not stands_in(pair)]
    if pairs is None:
        own += package
    elif not any(pair.near for pair in own):
        mark = {ORIGIN: PACKAGE}
        own += [replace(pair, columns={**pair.columns, **mark}) for pair in package]
        changes.append(
            "your pairs hold no near-duplicate (same = true, and not set = far): "
            f"{len(package)} English ones of the package stand in"
        )
    elif len(own) < len(chosen):
        left_out = plural(len(chosen) - len(own), "near-duplicate")
        changes.append(f"{left_out} of the package left out beside yours")
    chosen = own
    require_both_sides(chosen)
    return chosen, changes


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
    model: Model | PairModel | tuple[Model, Model],
    pairs: Sequence[Pair],
    *,
    progress: Progress = lambda done, total: None,
) -> Float[np.ndarray, " pairs"]:
    """The cosine of every pair's two vectors, in float64 and to twelve digits, or what else the
    model compares vectors by; of a model that scores pairs, its score.

    A text that several pairs share is encoded once, and texts of like length go together.

    Args:
        model: the model; or two, for the first and the second texts, such as one model with two
            prompts.
        pairs: of texts.
        progress: called with (done, total), in texts or pairs, after every chunk.

    Raises:
        InputError: the model's answer is no vector a text.
    """
    if isinstance(model, PairModel):
        return _scores(model, pairs, progress)
    first, second = [pair.first for pair in pairs], [pair.second for pair in pairs]
    if isinstance(model, tuple):
        sides = (
            vectors_of(model[0].encode, first, progress),
            vectors_of(model[1].encode, second, progress),
        )
    else:
        sides = (vectors_of(model.encode, [*first, *second], progress),) * 2
    compare = SIMILARITY_OF[similarity_of(model)]
    values = [
        float(compare(sides[0][pair.first][None], sides[1][pair.second][None])) for pair in pairs
    ]
    # Equal cosines stay equal: their rounding, some 1e-16, would decide ties.
    return np.array(values).round(_DIGITS)


SIMILARITY_OF: dict[
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
        raise InputError(
            f"`model`: {sides[0].name} compares by the {SIMILARITIES[sides[0].similarity]} and "
            f"{sides[1].name} by the "
            f"{SIMILARITIES[sides[1].similarity]}; give both models one similarity_fn_name"
        )
    return sides[0].similarity


def gives_cosines(model: Model | PairModel | tuple[Model, Model]) -> bool:
    """True where `similarities` gives cosines."""
    return not isinstance(model, PairModel) and similarity_of(model) == COSINE


def similarity_name(model: Model | PairModel | tuple[Model, Model]) -> str:
    """What `similarities` gives, in words."""
    return "score" if isinstance(model, PairModel) else SIMILARITIES[similarity_of(model)]


def unit_vectors(
    encode: Callable[[list[str]], Tensor], texts: Sequence[str], progress: Progress
) -> dict[str, Tensor]:
    """Every text's vector at length one. See `vectors_of`."""
    return {
        text: normalize(vector, dim=-1)
        for text, vector in vectors_of(encode, texts, progress).items()
    }


def vectors_of(
    encode: Callable[[list[str]], Tensor], texts: Sequence[str], progress: Progress
) -> dict[str, Tensor]:
    """Every text's vector in float64, (d,), or at every layer (layers, d), where `encode` gives
    (layers, m, d)."""
    ordered = sorted(set(texts), key=lambda text: (len(text), text))
    vectors: dict[str, Tensor] = {}
    for start in range(0, len(ordered), CHUNK):
        chunk = ordered[start : start + CHUNK]
        rows = encode(chunk).to("cpu", torch.float64)
        vectors |= {text: rows[..., at, :] for at, text in enumerate(chunk)}
        progress(len(vectors), len(ordered))
    return vectors


def _scores(
    model: PairModel, pairs: Sequence[Pair], progress: Progress
) -> Float[np.ndarray, " pairs"]:
    order = sorted(
        range(len(pairs)),
        key=lambda place: (len(pairs[place].first) + len(pairs[place].second), place),
    )
    scores = np.empty(len(pairs))
    for start in range(0, len(order), CHUNK):
        chunk = order[start : start + CHUNK]
        texts = ([getattr(pairs[place], side) for place in chunk] for side in ("first", "second"))
        scores[chunk] = model.score(*texts).numpy()
        progress(start + len(chunk), len(order))
    return scores


def readable(
    model: Model | PairModel | tuple[Model, Model], pairs: Sequence[Pair]
) -> tuple[list[Pair], list[str]]:
    """The pairs that count, and what was changed.

    A pair with a text that the model refuses, such as one emoji, is left out. A pair whose texts
    differ only past what the model reads is one text to it in service too, so that it counts; of
    the package's own pairs, which are about meaning and not about length, it is left out.
    """
    sides = model if isinstance(model, tuple) else (model, model)
    counted: list[Pair] = []
    refusals = [
        side.refusals([getattr(pair, which) for pair in pairs]) if isinstance(side, Model) else {}
        for side, which in zip(sides, ("first", "second"), strict=True)
    ]
    refused: list[tuple[str, str]] = []
    alike: list[Pair] = []
    unread = 0
    for pair in pairs:
        if reason := refusals[0].get(pair.first) or refusals[1].get(pair.second):
            refused.append((_place(pair), reason))
            continue
        if _is_one_text(sides, pair):
            if pair.where == PACKAGE:
                unread += 1
                continue
            alike.append(pair)
        counted.append(pair)
    changes = []
    if refused:
        places = [place for place, _ in refused[:_NAMED]]
        named = ", ".join(places) + ", ..." * (len(refused) > _NAMED)
        changes.append(
            f"{plural(len(refused), 'pair')} left out, with a text that the model cannot read "
            f"({named}: {refused[0][1]})"
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
    first_side, second_side = sides
    if isinstance(first_side, PairModel) or isinstance(second_side, PairModel):
        spans = first_side.read_spans(pair.first, pair.second)  # pyright: ignore[reportAttributeAccessIssue]
    else:
        spans = first_side.read_span(pair.first), second_side.read_span(pair.second)
    first, second = pair.first[slice(*spans[0])], pair.second[slice(*spans[1])]
    return (first, second) != (pair.first, pair.second) and first.strip() == second.strip()


def _place(pair: Pair) -> str:
    return f"{pair.first[:40]!r}..." if pair.where == PACKAGE else pair.where


def require_threshold(threshold: float, cosines: bool) -> None:
    """InputError for a threshold that is no finite number, or that no cosine can have."""
    is_number = isinstance(threshold, int | float) and not isinstance(threshold, bool)
    if not is_number or not math.isfinite(threshold):
        raise InputError(f"`threshold` (={threshold!r}) must be a finite number, such as 0.92")
    if cosines and abs(threshold) > 1:
        raise InputError(
            f"`threshold` (={threshold:g}) must be a cosine, from -1 to 1, such as 0.92"
        )


def require_near(pairs: Sequence[Pair], changes: Sequence[str]) -> None:
    """InputError where no near-duplicate is left."""
    if not any(pair.near for pair in pairs):
        why = f": {'; '.join(changes)}" if changes else ""
        raise InputError(f"`pairs` holds no near-duplicate that counts{why}; add some")


def require_both_sides(pairs: Sequence[Pair]) -> None:
    """InputError where there is no opposite, or nothing that means the same."""
    sides = {pair.same for pair in pairs}
    if len(sides) < 2:
        missing = (
            "opposite (same=false)" if sides == {True} else "pair that means the same (same=true)"
        )
        raise InputError(f"`pairs` holds no {missing}; a check compares the two")


@dataclass(eq=False)
class PairSimilarities:
    """Pairs with the similarities that a model gave them.

    Attributes:
        pairs: opposites, and texts that mean the same.
        values: one per pair.
        cosines: whether they are cosines, where 1 means equal vectors.
        opposites: by kind, which pairs are of it.
        opposite: which are of any kind of opposite.
        near_kinds: by kind of near-duplicate, which pairs are of it.
        near, far: which pairs are near-duplicates, and paraphrases of few common words.
        has_stand_ins: whether the near-duplicates are the package's, since the user gave none.
        paraphrases, synonyms: of the pairs that mean the same, the package's of the kind "synonym"
            and the others; where there are only synonyms, they stand for the others.
        lengths: of each pair, one of text.pairs.LENGTHS.

    Raises:
        InputError: no opposites, or none that mean the same.
    """

    pairs: tuple[Pair, ...]
    values: Float[np.ndarray, " pairs"]
    cosines: bool = True

    def __post_init__(self) -> None:
        self.pairs = pairs = tuple(self.pairs)
        require_both_sides(pairs)
        kinds = np.array([pair.kind for pair in pairs])
        same = np.array([pair.same for pair in pairs])
        self.opposite, self.near = ~same, np.array([pair.near for pair in pairs])
        self.has_stand_ins = any(map(stands_in, pairs))
        self.opposites = {
            str(kind): (kinds == kind) & ~same for kind in dict.fromkeys(kinds[~same])
        }
        self.near_kinds = {
            str(kind): (kinds == kind) & self.near for kind in dict.fromkeys(kinds[self.near])
        }
        self.far = same & ~self.near
        package = np.array([pair.where == PACKAGE for pair in pairs])
        synonyms = same & (kinds == SYNONYM) & package
        self.paraphrases = same & ~synonyms if (same & ~synonyms).any() else same
        self.synonyms = (
            synonyms if not np.array_equal(synonyms, self.paraphrases) else np.zeros_like(same)
        )
        self.lengths = np.array([pair.length for pair in pairs])

    @property
    def indistinct(self) -> dict[str, int]:
        """By kind the opposites whose two texts have the very same vector."""
        if not self.cosines:
            return {}
        equal = self.values >= 1 - SAME_VECTOR
        return {kind: int((members & equal).sum()) for kind, members in self.opposites.items()}
