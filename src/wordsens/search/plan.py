"""The effort of a search: what a caller chooses, and the stages that come of it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from wordsens.errors import require_choice, require_count

EFFORTS = ("quick", "normal", "thorough")


@dataclass(frozen=True, kw_only=True)
class Stages:
    """The stages of a search with every number filled in; an objective has those that suit it.

    (1) `starts` points of every word climb `steps`; after each of `halvings` steps the lower half
    is dropped. (2) In each of `generations`, `children` mixtures of the best `population` points
    climb `child_steps`. (3) The `leaders`, words with the largest values, are given
    `leader_generations` of `leader_children` more: S is their maximum. (4) The best `finalists` are
    finished in `finish` steps at most, until steps gain less than `tolerance`.

    Evaluations a word, of the value and its gradient, without halvings and leaders, are at most

        starts (steps + 1) + generations children (child_steps + 1) + (finalists + 2) finish,

    and one for each start that the map names where it names too many.

    A start's first step has length `first_step`, in radii.

    A search on great circles (`search.krylov`) reads `starts`, `steps`, `finalists`, `finish` and
    `tolerance`.
    """

    starts: int = 16
    steps: int = 30
    first_step: float = 0.5
    halvings: tuple[int, ...] = ()
    generations: int = 0
    population: int = 12
    children: int = 12
    child_steps: int = 24
    leaders: int = 0
    leader_generations: int = 6
    leader_children: int = 24
    finalists: int = 2
    finish: int = 100
    tolerance: float = 1e-10

    def rounds(self) -> int:
        """Steps from beginning to end, at most: what progress counts."""
        generations = self.generations + (self.leader_generations if self.leaders else 0)
        return self.steps + generations * self.child_steps + 2 * self.finish

    def quick(self) -> "Stages":
        """About a tenth to a quarter of these stages."""
        return replace(
            self,
            starts=max(min(4, self.starts), self.starts // 4),
            steps=min(60, self.steps),
            generations=min(1, self.generations),
            children=max(1, self.children // 2),
            leaders=0,
            finalists=1,
            finish=(self.finish + 2) // 3,
            tolerance=max(self.tolerance, 1e-6),
        )

    def wide(self) -> "Stages":
        """Twice the starts and generations of twice the children, for leaders too."""
        return replace(
            self,
            starts=2 * self.starts,
            generations=2 * self.generations,
            population=2 * self.population,
            children=2 * self.children,
            leader_generations=2 * self.leader_generations,
            leader_children=2 * self.leader_children,
            finalists=2 * self.finalists,
            finish=2 * self.finish,
            tolerance=self.tolerance / 100,
        )


@dataclass(frozen=True)
class SearchPlan:
    """The effort of a search and, where the map's own are not wanted, its two main numbers.

    Every map has its own numbers, which depend on the size of the text; "normal" uses them.

    Attributes:
        effort: "quick" (a tenth to a quarter of normal's evaluations), "normal", or "thorough" (a
            normal search, then a wider one; the better result of each word: never less than normal,
            about six times the evaluations).
        starts: starting points of every word: the map's own first, random points after them.
        steps: steps of every start, and the most steps of the finish and of children.

    Raises:
        InputError: an unknown effort, or a number that is not a whole number of at least 1.

    >>> print(SearchPlan("thorough", starts=64))
    thorough, starts=64
    """

    effort: str = "normal"
    starts: int | None = None
    steps: int | None = None

    def __post_init__(self) -> None:
        require_choice("effort", self.effort, EFFORTS)
        for name in ("starts", "steps"):
            if getattr(self, name) is not None:
                require_count(name, getattr(self, name))

    @classmethod
    def of(cls, search: "str | SearchPlan") -> "SearchPlan":
        """The plan that a `search` argument stands for: an effort's name, or a plan as it is.

        >>> SearchPlan.of("quick")
        SearchPlan(effort='quick', starts=None, steps=None)
        """
        if isinstance(search, SearchPlan):
            return search
        return cls(
            require_choice(
                "search", search, EFFORTS, remedy="or a SearchPlan, such as SearchPlan(starts=64)"
            )
        )

    def runs(self, stages: Stages) -> Sequence[Stages]:
        """The stages of each run, given the normal stages."""
        if self.starts is not None:
            stages = replace(stages, starts=self.starts)
        if self.steps is not None:
            few = min(stages.child_steps, self.steps)
            stages = replace(stages, steps=self.steps, child_steps=few, finish=self.steps)
        if self.effort == "quick":
            quick = stages.quick()
            return [quick if self.starts is None else replace(quick, starts=self.starts)]
        return [stages] if self.effort == "normal" else [stages, stages.wide()]

    def __str__(self) -> str:
        named = {
            name: value
            for name, value in asdict(self).items()
            if name != "effort" and value is not None
        }
        return ", ".join([self.effort, *(f"{name}={value!r}" for name, value in named.items())])


# A `search` argument: "quick", "normal", "thorough", or a plan.
Search = str | SearchPlan
