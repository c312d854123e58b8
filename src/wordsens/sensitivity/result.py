"""The result of word sensitivity: attained values, witnesses and bounds; and the budget of a measurement."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.errors import require_count
from wordsens.maps.base import DEFAULT_MEMORY_BUDGET
from wordsens.maps.registry import base_name, map_entry, map_title
from wordsens.results import Result, ResultTable
from wordsens.search.objective import Progress
from wordsens.search.plan import Search, SearchPlan


@dataclass(frozen=True)
class Budget:
    """A limit on what a measurement spends. `search=` takes one wherever a plan alone does not say enough.

    Attributes:
        search: "quick", "normal", "thorough" or a SearchPlan.
        memory_budget: bytes for intermediate results.
        progress: called with (done, in all) as the search goes on.

    Raises:
        InputError: no such plan, or a memory that is not a positive whole number.

    >>> print(Budget("quick", memory_budget=1 << 20).plan)
    quick
    """

    search: Search = "normal"
    memory_budget: int = DEFAULT_MEMORY_BUDGET
    progress: Progress | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        require_count("memory_budget", self.memory_budget)
        SearchPlan.of(self.search)

    @property
    def plan(self) -> SearchPlan:
        """The plan of the search."""
        return SearchPlan.of(self.search)

    @classmethod
    def of(cls, search: "Search | Budget") -> "Budget":
        """The budget itself, or one with that plan and the usual memory."""
        return search if isinstance(search, Budget) else cls(search)


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity(Result):
    """The word sensitivity of one text under one map: attained values, witnesses, bounds, and what was spent.

    Attributes:
        value: the largest of `per_word`: attained, so a lower bound of S_phi(X) (paper, eq. 1).
        word: the index of its word.
        words: (w,), the words that were searched.
        per_word: (w,), ‖phi(X^i(Delta)) - phi(X)‖ / ‖phi(X)‖ at each word's witness, recomputed through phi, less
            `rounding` (0 where nothing is left).
        rounding: (w,), an estimate of the recomputation's rounding error: how phi magnifies the last digits of X and
            of the best witness, and of every witness where phi may jump. Near it, at tiny radii, the change is lost in
            the digits of phi(X).
        perturbations: (w, d), the witness Delta of each word.
        radius: (w,), the radius of each word's ball.
        upper: an upper bound of S_phi(X) over the searched words, or None where the map has no certificate.
        upper_per_word: (w,), likewise for each word, or None; in a race (`SearchPlan`) as low as can be only where it
            is the largest.
        rigor: of the upper bounds: "certified", or "with probability 1 - x over the weights, for a text chosen without
            them"; None without bounds. They speak of phi in exact arithmetic.
        tokens: w strings, what each word is called.
        search: what the search was allowed, in words, such as "normal" or "quick, starts=4"; see SearchPlan.
        evaluations: how many perturbed texts the search evaluated, the recomputation included.
        evaluations_per_word: (w,), how many of them each word had: words that lead are searched longest.
        seconds: what the call took, its certificate included; of texts searched together, an equal share.
        converged: (w,), whether the ascent that won stopped, before its steps ran out, at a point of its ball that is
            stationary in the first order: f = ‖phi(X^i(Delta)) - phi(X)‖² rises from it by less than 2 % of f a radius,
            in the map's own precision, with a rounding error below 1 % of the value. False where the gradient is zero
            altogether. It says nothing of other hills: a higher one may exist.
        seed: the seed of the random starts.
        map_name: the map's name.
        notes: what the map says of itself, e.g. that it is causal.
    """

    value: float
    word: int
    words: Int[Tensor, " w"]
    per_word: Float[Tensor, " w"]
    rounding: Float[Tensor, " w"]
    perturbations: Float[Tensor, "w d"]
    radius: Float[Tensor, " w"]
    tokens: tuple[str, ...]
    search: str
    evaluations: int
    seconds: float = field(compare=False)
    converged: Bool[Tensor, " w"]
    seed: int
    map_name: str
    upper: float | None = None
    upper_per_word: Float[Tensor, " w"] | None = None
    rigor: str | None = None
    notes: tuple[str, ...] = ()
    evaluations_per_word: Int[Tensor, " w"] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Everything but the witnesses, as plain Python values: what `--json` prints."""
        return {
            "map": self.map_name,
            "value": self.value,
            "word": self.word,
            "token": self.tokens[int((self.words == self.word).nonzero()[0])],
            "upper": self.upper,
            "rigor": self.rigor,
            "words": self.words.tolist(),
            "tokens": list(self.tokens),
            "per_word": self.per_word.tolist(),
            "rounding": self.rounding.tolist(),
            "upper_per_word": None if self.upper_per_word is None else self.upper_per_word.tolist(),
            "radius": self.radius.tolist(),
            "converged": self.converged.tolist(),
            "search": self.search,
            "evaluations": self.evaluations,
            "evaluations_per_word": None if self.evaluations_per_word is None else self.evaluations_per_word.tolist(),
            "seed": self.seed,
            "notes": list(self.notes),
        }

    def result_table(self) -> ResultTable:
        """A row a word, the words of the text coloured by what they attain."""
        upper = None if self.upper_per_word is None else self.upper_per_word.tolist()
        columns = {
            "word": self.words.tolist(),
            "token": self.tokens,
            "sensitivity": self.per_word.tolist(),
            "upper": [None] * len(self.tokens) if upper is None else upper,
            "radius": self.radius.tolist(),
            "converged": self.converged.tolist(),
        }
        bound = "" if self.upper is None else f", none of these words more than {self.upper:.3g}"
        token = self.tokens[int((self.words == self.word).nonzero()[0])]
        heading = (
            f"{map_title(self.map_name)}: word {self.word} {token!r} can move the output {self.value:.3g} times its "
            f"size{bound}"
        )
        notes = self.notes if self.rigor is None else (f"upper: {self.rigor}", *self.notes)
        return ResultTable(heading, columns, "sensitivity", "token", None if upper is None else "upper", notes)

    def __repr__(self) -> str:
        upper = "" if self.upper is None else f", upper={self.upper:.6g}"
        return (
            f"Sensitivity({self.map_name}: value={self.value:.6g}{upper} at word {self.word} "
            f"{self.tokens[int((self.words == self.word).nonzero()[0])]!r}, {len(self.words)} words)"
        )


FAMILY_NAMES = {"dense": "a fully connected layer", "attention": "attention"}


def answer(results: Sequence[Sensitivity]) -> str:
    """The first sentence about one text: how far one word can move each map, and attention beside a fully connected
    layer."""
    values = [(result.map_name, result.value) for result in results]
    if (beside := contrast(values)) is not None:
        return beside[1]
    result = results[0]
    token = result.tokens[int((result.words == result.word).nonzero()[0])]
    word = f"; most of all {token!r}" if len(results) == 1 else ""
    return f"One word can move {_listed(values)} times its length{word}."


def contrast(values: Sequence[tuple[str, float]]) -> tuple[str, str] | None:
    """Attention beside a fully connected layer, as a number and a sentence, from maps and their S on one text; None
    where one of them is missing.

    >>> contrast([("rf", 0.3), ("raf", 3.7)])[1].partition(":")[0]
    'One word can move attention 12 times as far as a fully connected layer'
    """
    best: dict[str, float] = {}
    for name, value in values:
        base = base_name(name)
        family = map_entry(base).family if base in ("rf", "drf") or base.endswith("raf") else ""
        best.setdefault(FAMILY_NAMES.get(family, ""), value)
    attention, dense = (best.get(FAMILY_NAMES[family]) for family in ("attention", "dense"))
    if attention is None or dense is None or not dense > 0:
        return None
    ratio = _short(attention / dense)
    return (
        f"{ratio}×",
        f"One word can move attention {ratio} times as far as a fully connected layer: {_listed(values)} times its "
        "length.",
    )


def _listed(values: Sequence[tuple[str, float]]) -> str:
    each = [f"{map_title(name)} {_short(value)}" for name, value in values]
    return each[0] if len(each) == 1 else f"{', '.join(each[:-1])} and {each[-1]}"


def _short(value: float) -> str:
    """
    >>> _short(2.8076), _short(0.0812), _short(12.4)
    ('2.8', '0.081', '12')
    """
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"
