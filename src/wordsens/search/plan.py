"""The effort of a search: what a caller asks for, and the stages that come of it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from wordsens.errors import InputError, require_choice, require_count, require_kind

RULE_NAMES = ("quasi-newton", "momentum")

EFFORTS = ("quick", "normal", "thorough")

SOFT_SHARES = 0.3, 0.1, 0.03
"""The smoothness of the relatives that lead starts to hills which the objective hides behind a plateau or a kink."""

NARROWING, NARROWING_STEPS = (0.3, 0.1, 0.03), 40
"""From the explored relative to the objective itself: shares of the explored share, and steps on each at most."""

ROUNDED, ROUNDED_STEPS = (0.1, 0.03, 0.01, 0.003, 0.001), 30
"""Shares over which kinks are rounded off in the end, and steps on each: a maximum has many scores at zero, where an
ascent jams. At n = 120, d = 92 words rose by .7 % in the mean, at n = 100, d = 768 by .03 %."""

FIRST_STEPS = 6
"""Steps after which candidates are compared: where they stand says little of where they lead."""

DIRECT_STEPS = 20
"""Steps on the change itself of the candidates that are best there."""

NOISY_GENERATIONS = {"momentum": 6, "quasi-newton": 2}
"""Rounds of crossing whose children climb noisily; at kinks other climbs find less."""


@dataclass(frozen=True, kw_only=True)
class Stages:
    """The stages of a search with every number filled in; `SearchPlan` says what each of them is."""

    starts: int = 8
    kept: int = 0
    inner: int = 0
    chosen: int = 0
    chosen_steps: int = 0
    climb_steps: int = 10
    soft_steps: int = 0
    explored_share: float = 0.0
    noisy: int = 0
    population: int = 4
    generations: int = 0
    children: int = 4
    kick_steps: int = 0
    relays: int = 0
    finalists: int = 3
    steps: int = 150
    again: int = 0
    leaders: int = 0
    contenders: int = 0
    sampled: int = 0
    whole: bool = False
    tolerance: float = 1e-11
    rule: str = "quasi-newton"

    def __post_init__(self) -> None:
        _require_in_range(asdict(self))

    @property
    def kicks(self) -> int:
        """Rounds of kicks: where a search is to be cheap, crossing finds more."""
        return max(0, self.generations - 1) if self.kick_steps else 0

    def rounds(self) -> int:
        """Steps from beginning to end, at most: what progress counts."""
        crossing = self.climb_steps * (2 + self.generations + (self.relays > 0))
        soft = (self.chosen > 0) * (FIRST_STEPS + self.chosen_steps)
        soft += (self.soft_steps > 0) * (len(SOFT_SHARES) * self.soft_steps + self.climb_steps)
        soft += (self.explored_share > 0) * len(NARROWING) * NARROWING_STEPS
        soft += (self.explored_share > 0 < self.chosen) * (FIRST_STEPS + DIRECT_STEPS)
        soft += (self.noisy > 0) * (2 + NOISY_GENERATIONS[self.rule]) * self.climb_steps
        return soft + crossing + self.kick_steps * (self.kicks + (self.kicks > 0)) + self.steps

    def all_rounds(self, groups: int, words: int) -> int:
        """Steps of so many groups, of so many words of each text, and of the runs after them, at most."""
        if self.race(words):
            return self.heat().rounds() * groups + replace(self, contenders=0).all_rounds(1, words)
        return self.rounds() * (groups + (self.again > 0)) + (self.leaders > 0 and self.of_leaders().rounds())

    def race(self, words: int) -> bool:
        """Whether so many words race."""
        return _is_race(words, self.contenders, self.sampled)

    def heat(self) -> "Stages":
        """The stages of a race's first search, of every word: quick ones without polishing."""
        return replace(self.quick(), steps=0)

    def of_leaders(self) -> "Stages":
        """The stages of the words that lead: many times the children, and crossing alone, in which few words differ."""
        return replace(
            self,
            population=3 * self.population,
            generations=2 * self.generations,
            children=6 * self.children,
            kick_steps=0,
            whole=False,
        )

    def quick(self) -> "Stages":
        """A fraction of these stages: fewer starts, one generation without kicks, no noise, one finalist."""
        return replace(
            self,
            starts=max(1, self.starts // 4),
            inner=self.inner // 4,
            chosen=self.chosen // 4,
            soft_steps=0,
            explored_share=0.0,
            noisy=0,
            population=max(1, self.population // 2),
            generations=min(1, self.generations),
            children=max(1, self.children // 4),
            kick_steps=0,
            relays=self.relays // 4,
            finalists=1,
            steps=(self.steps + 2) // 3,
            again=0,
            leaders=0,
            contenders=0,
            sampled=0,
            tolerance=max(self.tolerance, 1e-6),
        )

    def thorough(self) -> "Stages":
        """Several times these stages: more starts, generations, children and relays, polished farther."""
        return replace(
            self,
            starts=3 * self.starts,
            inner=3 * self.inner,
            chosen=2 * self.chosen,
            noisy=2 * self.noisy,
            population=2 * self.population,
            generations=2 * self.generations,
            children=2 * self.children,
            relays=2 * self.relays,
            finalists=2 * self.finalists,
            steps=2 * self.steps,
            again=2 * self.again,
            leaders=2 * self.leaders,
            whole=True,
            tolerance=self.tolerance / 100,
        )


@dataclass(frozen=True)
class SearchPlan:
    """The spending of a search: an effort, and any of its stages by number. A value left at None is what suits the map.

    Every map has stages of its own, chosen by measurement for the kind and size of the text; "normal" are these. A plan
    varies them, and one that names every value replaces them.

    A search takes these stages for every word, all words at once. (1) `starts` points climb `climb_steps`; (2) in each
    of `generations` rounds `children` mixtures of the best `population` points climb too; (3) where `kick_steps` is not
    0, in as many rounds less one, the best point is moved a little, `children` times, and climbs `kick_steps`; (4)
    `relays` other words' witnesses are tried; (5) `noisy` points climb with noise; (6) the best `finalists` are
    polished, for `steps` at most, and the others' witnesses tried once more. About

        starts * climb_steps + generations * children * (climb_steps + kick_steps) + 2 relays + finalists * steps

    and, where `noisy` is not 0, 110 noisy + 3,000 ("quasi-newton") or 7,000 ("momentum")

    evaluations a word, of the map and its gradient. One fully connected layer is searched otherwise: 24 products of the
    matrix and its transpose to find a space, `starts` free climbs of `climb_steps` in it, and `finalists` climbs of
    `steps` products each. What was really spent is in the result: `evaluations`, `seconds`, and `search`, this plan.

    Attributes:
        effort: "quick" (a fraction of the map's own stages), "normal" (these), or "thorough" (several times as much).
            Evaluations, of normal's: quick .15 to .35 with S within .3 % (.02 to .1 on the smallest texts, which normal
            searches widely; .01 where one narrow or saturating layer also has a wide search, which quick leaves out),
            thorough 1.7 to 3.6; measured on Gaussian texts of 5 to 100 words, one to three dense layers and softmax
            attention.
        starts: starting points: the map's own directions first, random points of the sphere after them.
        kept: how many of a word's starts climb, those that are highest as they stand; 0: all.
        inner: how many of the starts, the last ones, lie at 0.3 radius, for maps whose maximum may be inside the ball.
        chosen: how many of the map's candidates are starts as well, after a few steps of each; 0: none are looked at.
            Left at None, at most `starts`.
        chosen_steps: steps that the chosen are given before they climb like the other starts.
        climb_steps: steps that every start, and later every child, is given.
        soft_steps: steps that every start is also given on each of a few much smoother relatives of the map, the
            smoothest first, before it climbs like the others; 0: none.
        explored_share: how smooth the relative is on which all is done but the last polishing; 0: the map itself.
        noisy: how many points, half of them the highest of many, climb with noise first, on the map itself.
        population: how many of the best points live on to the next generation.
        generations: rounds of crossing: a child is a mixture of two witnesses, the second of this or another word;
            after them as many rounds of kicks less one: a child is the best point, moved a little. A plan that names 0
            also has no `chosen`, `soft_steps`, `explored_share`, `noisy` and `leaders`, unless it names them.
        children: children a round.
        kick_steps: steps that a kicked point is given; 0: no rounds of kicks.
        relays: how many other words' witnesses every word tries at the end.
        finalists: how many of the last population are polished.
        steps: steps of polishing at most.
        again: how many of a text's words, those with the largest values, are searched once more from other random
            points; the better result stands.
        leaders: how many of a text's words, those with the largest values, are searched once more, with three times the
            population, twice the generations and six times the children, so that S, the largest of all, is searched
            longest; the better result stands.
        contenders: how many of a text's words, those with the largest values after a quick search of all without
            polishing, are searched with these stages: for S alone, whose word is nearly always among the first five of
            that search. The others keep what it attains, a few per cent less than these stages would; none of them is
            `converged`. 0, and texts of fewer than twice as many words: all words are. One fully connected layer, and
            quick plans that do not name it, take no notice. See measurements.md.
        sampled: how many more words, evenly spaced over the text, are searched like the contenders: their median is a
            typical word's.
        whole: whether all coordinates are explored where the map has an exact relative with fewer.
        tolerance: polishing stops when a few steps in a row gain less than this, relative, in the squared change.
        rule: "quasi-newton" for smooth maps, "momentum" for maps with kinks.

    Raises:
        InputError: an unknown effort or rule, or a number out of range.

    >>> print(SearchPlan("thorough", starts=64))
    thorough, starts=64
    >>> SearchPlan(starts=64).stages(Stages(generations=3)).generations
    3
    """

    effort: str = "normal"
    starts: int | None = None
    kept: int | None = None
    inner: int | None = None
    chosen: int | None = None
    chosen_steps: int | None = None
    climb_steps: int | None = None
    soft_steps: int | None = None
    explored_share: float | None = None
    noisy: int | None = None
    population: int | None = None
    generations: int | None = None
    children: int | None = None
    kick_steps: int | None = None
    relays: int | None = None
    finalists: int | None = None
    steps: int | None = None
    again: int | None = None
    leaders: int | None = None
    contenders: int | None = None
    sampled: int | None = None
    whole: bool | None = None
    tolerance: float | None = None
    rule: str | None = None

    def __post_init__(self) -> None:
        require_choice("effort", self.effort, EFFORTS)
        _require_in_range(self.named)

    @classmethod
    def of(cls, search: "str | SearchPlan") -> "SearchPlan":
        """The plan that a `search` argument stands for: an effort's name, or a plan as it is.

        >>> SearchPlan.of("quick")
        SearchPlan(effort='quick')
        """
        if isinstance(search, SearchPlan):
            return search
        return cls(require_choice("search", search, EFFORTS, remedy="or a SearchPlan, such as SearchPlan(starts=64)"))

    @property
    def named(self) -> dict[str, Any]:
        """The stages that this plan names, by their names."""
        return {name: value for name, value in asdict(self).items() if name != "effort" and value is not None}

    def stages(self, own: Stages) -> Stages:
        """The stages of a search of a map whose own are `own`."""
        scaled = {"quick": own.quick, "normal": lambda: own, "thorough": own.thorough}[self.effort]()
        named = self.named
        if self.starts is not None:
            named.setdefault("chosen", min(self.starts, scaled.chosen))
        if self.generations == 0:
            named = {"chosen": 0, "soft_steps": 0, "explored_share": 0.0, "noisy": 0, "leaders": 0, **self.named}
        return replace(scaled, **named) if named else scaled

    def searched_to_the_end(self, words: int) -> int:
        """How many of so many words are."""
        contenders, sampled = self.contenders or 0, self.sampled or 0
        return contenders + sampled if _is_race(words, contenders, sampled) else words

    def representative(self, words: int) -> list[int]:
        """The places of the words that are searched to the end whatever they attain: all, or a race's sampled ones."""
        if self.searched_to_the_end(words) == words:
            return list(range(words))
        return evenly_spaced(words, self.sampled or 0)

    def __str__(self) -> str:
        return ", ".join([self.effort, *(f"{name}={value!r}" for name, value in self.named.items())])

    def __repr__(self) -> str:
        given = {"effort": self.effort} if self.effort != "normal" or not self.named else {}
        return f"SearchPlan({', '.join(f'{name}={value!r}' for name, value in {**given, **self.named}.items())})"


Search = str | SearchPlan
"""A `search` argument: "quick", "normal", "thorough", or a plan."""


def evenly_spaced(words: int, count: int) -> list[int]:
    """The middles of so many equal stretches of a text.

    >>> evenly_spaced(10, 3)
    [1, 5, 8]
    """
    return [(2 * stretch + 1) * words // (2 * count) for stretch in range(count)]


def _is_race(words: int, contenders: int, sampled: int) -> bool:
    """Where half of the words or more would be searched to the end, all are."""
    return contenders > 0 and 2 * (contenders + sampled) < words


def _require_in_range(values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        if name == "rule":
            require_choice("rule", value, RULE_NAMES)
        elif name == "whole":
            require_kind(name, value, bool)
        elif name not in ("tolerance", "explored_share"):
            require_count(name, value, least=int(name in ("starts", "population", "children", "finalists")))
        elif isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1:
            raise InputError(f"`{name}` (={value!r}) must be at least 0 and less than 1")
