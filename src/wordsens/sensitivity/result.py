"""The results of measurements: lower bounds with their witnesses, upper bounds, and what the search
spent."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.display.view import Table, View
from wordsens.maps.registry import map_title
from wordsens.results import Result


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SensitivityResult(Result):
    """What every measurement of one text gives.

    Attributes:
        value: the largest of `per_word`.
        perturbations: of each word or group, the vectors that reach its number; () where no vector
            is moved.
        upper: a certified upper bound of the sup; None where there is none.
        search: what was searched, in words, such as "normal" or "quick, starts=4"; see SearchPlan.
        evaluations: how many perturbed texts were evaluated.
        seconds: what the call took.
        converged: (w,), whether the search ended at a local maximum: see `Sensitivity`; None where
            nothing is searched.
        seed: of the random starts.
    """

    not_in_dict: ClassVar[tuple[str, ...]] = ("perturbations", "seconds")

    value: float
    perturbations: Tensor | tuple[Tensor, ...]
    upper: float | None = None
    search: str = ""
    evaluations: int = 0
    seconds: float = field(default=0.0, compare=False)
    converged: Bool[Tensor, " w"] | None
    seed: int = 0


# The keys of the JSON object of single words, in their order.
_JSON_NAMES = (
    *("map", "value", "word", "token", "upper", "rigor", "words", "tokens", "per_word"),
    *("rounding", "upper_per_word", "radius", "converged", "search", "evaluations"),
    *("evaluations_per_word", "seed", "notes"),
)


# What two of them are called where several words move together.
_GROUP_NAMES = {"word": "group", "words": "groups"}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Sensitivity(SensitivityResult):
    """The sensitivity of one text under one map to words, or to groups of words that move together.

    Attributes:
        value: the largest of `per_word`: a lower bound of S_phi(X) (paper, eq. 1), with a witness.
        groups: w groups, the rows that move together: one for a word.
        tokens: w strings, what each group is called.
        per_word: (w,), ‖phi(X^G(Delta)) - phi(X)‖ / ‖phi(X)‖ at each witness, recomputed through
            phi, less `rounding` (0 where nothing is left).
        rounding: (w,), an estimate of the recomputation's rounding error: how phi magnifies the
            last digits of X and of the best witness, and of every witness where phi may jump. Near
            it, at tiny radii, the change is lost in the digits of phi(X).
        perturbations: the witness Delta of each row that moves, group by group: (w, d) for words.
        radius: (w,), the radius of each word's ball; of a group, the largest of its rows.
        upper: an upper bound of S_phi(X) over the searched words, or None where the map has no
            certificate, and for groups.
        upper_per_word: (w,), likewise for each word, or None.
        rigor: of the upper bounds: "certified", or "with probability 1 - x over the weights, for a
            text chosen without them"; None without bounds. They speak of phi in exact arithmetic.
        evaluations: how many perturbed texts were evaluated, the recomputation included.
        evaluations_per_word: (w,), how many of them each word had: words that lead are searched
            longest.
        seconds: the certificate included.
        converged: (w,), whether the search that won ended at a local maximum: f =
            ‖phi(X^G(Delta)) - phi(X)‖² rises from its point in the first order by less than 2 % of
            f per radius, in the map's own precision, with a rounding error below 1 % of the value.
            False where the gradient is zero altogether, and where the steps of an ascent ran out.
            It says nothing of other maxima: a higher one may exist, and often does behind several
            layers of a transformer.
        map_name: the map's name.
        notes: what the map says of itself, e.g. that it is causal.
        searched, sets: for `several_words_sensitivity`, how many sets of this many words were
            searched, at least briefly, and how many there are; None for groups that were given.
    """

    groups: tuple[tuple[int, ...], ...]
    tokens: tuple[str, ...]
    per_word: Float[Tensor, " w"]
    rounding: Float[Tensor, " w"]
    perturbations: Float[Tensor, "rows d"]
    radius: Float[Tensor, " w"]
    upper_per_word: Float[Tensor, " w"] | None = None
    rigor: str | None = None
    evaluations_per_word: Int[Tensor, " w"] | None = None
    converged: Bool[Tensor, " w"]
    map_name: str
    notes: tuple[str, ...] = ()
    searched: int | None = None
    sets: int | None = None

    ranked = "sensitivity"
    row_names = "token"

    @classmethod
    def of_groups(cls, parts: "Sequence[Sensitivity]", order: Sequence[int]) -> "Sensitivity":
        """The results of groups of several sizes as one; `order` has the place of each group."""
        places = sorted(range(len(order)), key=order.__getitem__)

        def listed(name: str) -> list[Any]:
            rows = [row for part in parts for row in getattr(part, name)]
            return [rows[place] for place in places]

        tensors = "per_word", "rounding", "radius", "converged", "evaluations_per_word"
        columns = {name: torch.stack(listed(name)) for name in tensors}
        return replace(
            parts[0],
            **columns,
            value=float(columns["per_word"].max()),
            groups=tuple(listed("groups")),
            tokens=tuple(listed("tokens")),
            perturbations=torch.cat(listed("witnesses")),
            evaluations=sum(part.evaluations for part in parts),
            seconds=sum(part.seconds for part in parts),
        )

    @property
    def witnesses(self) -> tuple[Float[Tensor, "g d"], ...]:
        """Delta of the rows of each group."""
        return self.perturbations.split(list(map(len, self.groups)))

    @property
    def words(self) -> Int[Tensor, " w"]:
        """The words that were searched; of groups, the first row of each."""
        first = [group[0] for group in self.groups]
        return torch.tensor(first, device=self.per_word.device)

    @property
    def group(self) -> tuple[int, ...]:
        """The rows of the most sensitive word or group."""
        return self.groups[int(self.per_word.argmax())]

    @property
    def word(self) -> int:
        """The most sensitive word; of groups, the first row of that group."""
        return self.group[0]

    @property
    def token(self) -> str:
        """What the most sensitive word is called."""
        return self.tokens[int(self.per_word.argmax())]

    @property
    def of_words(self) -> bool:
        """Whether every group is one word."""
        return all(len(group) == 1 for group in self.groups)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the witnesses, as plain Python values: what `--json` prints."""
        plain = super().to_dict() | {"map": self.map_name, "token": self.token}
        if self.of_words:
            plain |= {"word": self.word, "words": self.words.tolist()}
            return {name: plain[name] for name in _JSON_NAMES}
        plain |= {"word": list(self.group), "words": plain["groups"]}
        named = {_GROUP_NAMES.get(name, name): plain[name] for name in _JSON_NAMES}
        return named | {"searched": self.searched, "sets": self.sets}

    @property
    def headline(self) -> str:
        """How far the most sensitive word can move the output, and the upper bound."""
        rows = ", ".join(map(str, self.group))
        what, verb = f"word {rows} {self.token!r}", "can"
        if len(self.group) > 1:
            what, verb = f"words {rows} {self.token!r}", "together can"
        bound = "" if self.upper is None else f", none of these words more than {self.upper:.3g}"
        sets = "" if self.sets is None else f"; {self.searched} of {self.sets} sets searched"
        return (
            f"{map_title(self.map_name)}: {what} {verb} move the output {self.value:.3g} times its "
            f"size{bound}{sets}"
        )

    def columns(self) -> dict[str, Any]:
        """One row per word or group."""
        upper = self.upper_per_word
        columns = {
            "word" if self.of_words else "words": [
                group[0] if self.of_words else " ".join(map(str, group)) for group in self.groups
            ],
            "token": self.tokens,
            "sensitivity": self.per_word.tolist(),
            "upper": [None] * len(self.tokens) if upper is None else upper.tolist(),
            "radius": self.radius.tolist(),
            "converged": self.converged.tolist(),
        }
        if not self.of_words:
            del columns["upper"]
        return columns

    def view(self) -> View:
        """As of every result; words in colour only where the groups are the text in order."""
        view = super().view()
        rows = [row for group in self.groups for row in group]
        if rows == sorted(set(rows)):
            return view
        return replace(view, parts=tuple(part for part in view.parts if isinstance(part, Table)))

    def __repr__(self) -> str:
        upper = "" if self.upper is None else f", upper={self.upper:.6g}"
        rows = " ".join(map(str, self.group))
        return (
            f"Sensitivity({self.map_name}: value={self.value:.6g}{upper} at {rows} "
            f"{self.token!r}, {len(self.groups)} {'words' if self.of_words else 'groups'})"
        )
