"""The result of an advice on length."""

from dataclasses import dataclass

from wordsens.results import Look, Saved, Shown

WIDEST = 2.0
"""The largest ratio of an interval's ends at which a passage's length can be chosen by it."""


@dataclass(frozen=True)
class DecayPoint:
    """The median distance at one length and place, with its 95 % interval; None with fewer than six changes."""

    place: str
    length: int
    median: float
    low: float | None
    high: float | None


@dataclass(frozen=True, kw_only=True)
class PlaceAdvice:
    """The advice for changes at one place, as of `LengthAdvice`."""

    place: str
    length: int | None
    low: int | None
    high: int | None
    reason: str | None


@dataclass(frozen=True, kw_only=True)
class LengthAdvice(Shown, Saved):
    """The longest passage in which a change still moves the embedding by a threshold, and how fast it decays.

    Attributes:
        model: its name.
        source: where the changed sentences come from.
        kind: of the change, such as "negation".
        threshold: of the cosine distance.
        unit: "tokens", special ones included, or "words".
        changes: how many sentences were changed: each has two versions.
        length: at which the median distance, over changes and places, falls under the threshold; None where `reason`
            says why there is none.
        low, high: its 95 % interval; None: below the shortest, or beyond the longest, passage that was measured.
        reason: why there is no length.
        places: likewise for changes that stand first, in the middle and last.
        curve: the decay as it was measured; the place "any" is the mean over places.
        context: the most that the model reads; None where that is not known.
    """

    model: str
    source: str
    kind: str
    threshold: float
    unit: str
    changes: int
    length: int | None
    low: int | None
    high: int | None
    reason: str | None
    places: tuple[PlaceAdvice, ...]
    curve: tuple[DecayPoint, ...]
    context: int | None = None

    @property
    def decisive(self) -> bool:
        """True where the interval is narrow enough to act on."""
        if self.length is None or self.low is None or self.high is None:
            return False
        return self.high <= WIDEST * self.low

    @property
    def longest(self) -> int:
        """The longest passages that were measured."""
        return max(point.length for point in self.curve)

    @property
    def advice(self) -> str:
        """One sentence: the length, with its interval, or why there is none."""
        article = "an" if self.kind[0] in "aeiou" else "a"
        must = f"if {article} {self.kind} must move the embedding by {self.threshold:g}"
        if self.length is None:
            return f"no length can be given {must}: {self.reason}{self._half_known()}"
        low = "any" if self.low is None else self.low
        high = f"more than {self.longest}" if self.high is None else self.high
        told = f"at most {self.length} {self.unit} (95 %: {low} to {high}) {must}"
        return told if self.decisive else f"{told}; too uncertain to act on, give more texts or pairs"

    def _half_known(self) -> str:
        if self.low is not None:
            return f" (95 %: {self.low} or more)"
        return "" if self.high is None else f" (95 %: {self.high} or fewer)"

    def look(self) -> Look:
        """A row a length: the median at each place."""
        places = list(dict.fromkeys(point.place for point in self.curve))
        lengths = sorted({point.length for point in self.curve})
        median = {(point.place, point.length): point.median for point in self.curve}
        columns = {self.unit: lengths, **{place: [median[place, length] for length in lengths] for place in places}}
        notes = [f"{one.place}: {_told(one, self.unit)}" for one in self.places]
        source = f"{self.changes} changed sentences of {self.source}; median cosine distance"
        return Look(f"{self.model}: {self.advice}", columns, notes=(source, *notes))


def _told(one: PlaceAdvice, unit: str) -> str:
    if one.length is None:
        return str(one.reason)
    low, high = "any" if one.low is None else one.low, "no end measured" if one.high is None else one.high
    return f"{one.length} {unit} ({low} to {high})"
