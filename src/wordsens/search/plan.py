"""How much a search spends, and on what."""

from dataclasses import dataclass, replace

from wordsens.errors import InputError, require_choice, require_count

RULE_NAMES = ("quasi-newton", "momentum")

SOFT_SHARES = 0.3, 0.1, 0.03
"""How smooth the relatives are that lead starts to hills which the change itself hides behind a plateau or a kink."""

NARROWING, NARROWING_STEPS = (0.3, 0.1, 0.03), 40
"""From the explored relative to the change itself: shares of the explored share, and steps on each at most."""

FIRST_STEPS = 6
"""Steps after which candidates are compared: where they stand says little of where they lead."""

DIRECT_STEPS = 20
"""Steps on the change itself of the candidates that are best there."""


@dataclass(frozen=True)
class SearchPlan:
    """The stages of a search, per word.

    Attributes:
        starts: starting points: the map's own directions first, random points of the sphere after them.
        inner: how many of the starts, the last ones, lie at 0.3 radius, for maps whose maximum may be inside the ball.
        chosen: how many of the map's candidates are starts as well, after a few steps of each; 0: none are looked at.
        chosen_steps: steps that the chosen are given before they climb like the other starts.
        climb_steps: steps that every start, and later every child, is given.
        soft_steps: steps that every start is also given on each of a few much smoother relatives of the change, the
            smoothest first, before it climbs like the others; 0: none.
        explored_share: how smooth the relative is on which all is done but the last polishing; 0: the change itself.
        population: how many of the best points live on to the next generation.
        generations: rounds of crossing: a child is a mixture of two witnesses, the second of this or another word;
            after them as many rounds of kicks less one: a child is the best point, moved a little.
        children: children a round.
        kick_steps: steps that a kicked point is given; 0: no rounds of kicks.
        relays: how many other words' witnesses every word tries at the end.
        finalists: how many of the last population are polished.
        steps: steps of polishing at most.
        tolerance: polishing stops when a few steps in a row gain less than this, relative, in the squared change.
        rule: "quasi-newton" for smooth maps, "momentum" for maps with kinks.
    """

    starts: int = 8
    inner: int = 0
    chosen: int = 0
    chosen_steps: int = 0
    climb_steps: int = 10
    soft_steps: int = 0
    explored_share: float = 0.0
    population: int = 4
    generations: int = 0
    children: int = 4
    kick_steps: int = 0
    relays: int = 0
    finalists: int = 3
    steps: int = 150
    tolerance: float = 1e-11
    rule: str = "quasi-newton"

    def __post_init__(self) -> None:
        require_count("starts", self.starts)
        at_least_0 = ("chosen", "chosen_steps", "climb_steps", "soft_steps", "generations", "kick_steps", "relays")
        for name in (*at_least_0, "inner", "steps"):
            require_count(name, getattr(self, name), least=0)
        for name in ("population", "children", "finalists"):
            require_count(name, getattr(self, name))
        if not 0 <= self.tolerance < 1:
            raise InputError(f"`tolerance` (={self.tolerance!r}) must be at least 0 and less than 1")
        require_choice("rule", self.rule, RULE_NAMES)

    def changed(
        self,
        *,
        starts: int | None = None,
        steps: int | None = None,
        generations: int | None = None,
        tolerance: float | None = None,
    ) -> "SearchPlan":
        """This plan with the caller's wishes in place of its own; None leaves a value as it is.

        A search without generations is asked to be quick: it climbs the change itself, from the starts alone.
        """
        chosen = None if starts is None else min(starts, self.chosen)
        wishes = {
            "starts": starts,
            "chosen": chosen,
            "steps": steps,
            "generations": generations,
            "tolerance": tolerance,
        }
        if generations == 0:
            wishes |= {"chosen": 0, "soft_steps": 0, "explored_share": 0.0}
        named = {name: wish for name, wish in wishes.items() if wish is not None}
        return replace(self, **named) if named else self

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
        return soft + crossing + self.kick_steps * (self.kicks + (self.kicks > 0)) + self.steps
