"""Records of the protocols in a table and sentences: what each departure does to S, its exponent and Err."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from wordsens.experiments.departures.protocol import DEFINED, ERROR, PROTOCOLS, PUBLISHED, SENSITIVITY
from wordsens.experiments.departures.record import DepartureRecord
from wordsens.experiments.summary import Claim, Section, Summary, by_draw, ratio
from wordsens.maps.registry import map_title
from wordsens.statistics.mean import Estimate, with_error
from wordsens.statistics.power_law import PowerLaw, fit_power_law

SURE = 2.6
"""Standard errors that a difference must exceed before it is called one: 99 %, for there are several."""


@dataclass(frozen=True)
class Measured:
    """The records of one map under one protocol.

    Attributes:
        by_size: of the sensitivity, by n.
        errors: of the error on the changed text.
    """

    map: str
    protocol: str
    by_size: dict[int, list[DepartureRecord]]
    errors: list[DepartureRecord]

    @property
    def law(self) -> PowerLaw | None:
        """S against n; None for fewer than two sizes."""
        points = [(n, record.value or 0.0) for n, own in self.by_size.items() for record in own]
        if len(self.by_size) < 2 or len(points) < 3:
            return None
        return fit_power_law([n for n, _ in points], [value for _, value in points])

    def sensitivity(self, n: int) -> Estimate:
        """S at n."""
        return Estimate.of([record.value or 0.0 for record in self.by_size[n]])

    def column(self, name: str) -> Estimate | None:
        """The mean of a column of the errors; None without any."""
        return Estimate.of([getattr(record, name) for record in self.errors]) if self.errors else None


def measured(records: Sequence[DepartureRecord]) -> dict[tuple[str, str], Measured]:
    """The finished records by map and protocol; protocols in their own order."""
    found: dict[tuple[str, str], Measured] = {}
    done = [record for record in records if record.done]
    for name in dict.fromkeys(record.map for record in done):
        for protocol in PROTOCOLS:
            own = [record for record in done if (record.map, record.protocol) == (name, protocol)]
            sizes: dict[int, list[DepartureRecord]] = defaultdict(list)
            for record in own:
                if record.measures == SENSITIVITY:
                    sizes[record.n].append(record)
            errors = [record for record in own if record.measures == ERROR]
            if own:
                found[name, protocol] = Measured(name, protocol, dict(sorted(sizes.items())), errors)
    return found


def summarise_departures(records: Sequence[DepartureRecord]) -> Summary:
    """Two tables with a row a map and protocol, of S and of Err, and what the sentences of `_claims` say."""
    found = measured(records)
    pairs = [(one, found.get((one.map, PROTOCOLS[one.protocol].beside))) for one in found.values()]
    last = max((n for one in found.values() for n in one.by_size), default=0)
    of_s = ("map", "protocol", f"S, n = {last}", "S / beside", "exponent", "difference")
    of_errors = ("map", "protocol", "Err", "gamma", "Err - beside")
    sections = (
        Section("S, as defined and as published", of_s, tuple(_row(*pair) for pair in pairs if pair[0].by_size)),
        Section("Err, as defined and as published", of_errors, tuple(_errors(*p) for p in pairs if p[0].errors)),
    )
    return Summary(
        tuple(one for one in sections if one.rows),
        "Means over draws with standard errors. Beside: the row that differs in one switch: word 0 only for [CLS], "
        "the noisy ball and the raw gradient; the alignment objective for the raw alignment; as defined for the rest. "
        "Err: on the changed text, the least found with gamma below 0.5, or what the alignment objective gives.",
        tuple(claim for name in dict.fromkeys(name for name, _ in found) for claim in _claims(name, found)),
    )


def _row(one: Measured, beside: Measured | None) -> tuple[str | Estimate | None, ...]:
    last = max(one.by_size)
    law, other = one.law, None if beside is None else beside.law
    return (
        map_title(one.map),
        PROTOCOLS[one.protocol].title,
        one.sensitivity(last),
        None if beside is None else ratio(one.by_size[last], beside.by_size.get(last, ())),
        _exponent(law),
        None if law is None or other is None else with_error(*_gap(law, other)),
    )


def _errors(one: Measured, beside: Measured | None) -> tuple[str | Estimate | None, ...]:
    return (
        map_title(one.map),
        PROTOCOLS[one.protocol].title,
        one.column("value"),
        one.column("gamma"),
        None if beside is None else _error_gap(one, beside),
    )


def _exponent(law: PowerLaw | None) -> str | None:
    return None if law is None else with_error(law.exponent, law.standard_error)


def _gap(law: PowerLaw, other: PowerLaw) -> tuple[float, float]:
    return law.exponent - other.exponent, (law.standard_error**2 + other.standard_error**2) ** 0.5


def _error_gap(one: Measured, beside: Measured) -> Estimate | None:
    """The mean difference of the errors, draw by draw."""
    own, other = by_draw(one.errors), by_draw(beside.errors)
    both = [own[draw] - other[draw] for draw in own if draw in other]
    return Estimate.of(both) if both else None


def _claims(name: str, found: dict[tuple[str, str], Measured]) -> list[Claim]:
    """Of one map: the published exponent, the departure that moves S most, and the published error."""
    claims = []
    defined, published = found.get((name, DEFINED)), found.get((name, PUBLISHED))
    if defined is None or published is None:
        return []
    title = map_title(name)
    if (law := published.law) is not None and (other := defined.law) is not None:
        gap, error = _gap(law, other)
        last = max(defined.by_size)
        whole = ratio(published.by_size.get(last, ()), defined.by_size[last])
        differ = (
            f"differs by {with_error(gap, error)}"
            if abs(gap) > SURE * error
            else f"cannot be told apart ({with_error(gap, error)})"
        )
        sentence = (
            f"{title}: the exponent of S is {_exponent(law)} as published and {_exponent(other)} as defined, which "
            f"{differ}; at n = {last} the published protocol finds {whole} of S."
        )
        claims.append(Claim(f"{law.exponent:.2f}", sentence, _draws(defined.sensitivity(last))))
    if (strongest := _strongest(name, found)) is not None:
        protocol, change, last = strongest
        beside = PROTOCOLS[PROTOCOLS[protocol].beside].title
        sentence = (
            f"{title}: of the single departures “{PROTOCOLS[protocol].title}” moves S most, by the factor {change} "
            f"beside “{beside}” at n = {last}."
        )
        claims.append(Claim(f"×{change.mean:.2g}", sentence, _draws(change)))
    if (err := published.column("value")) is not None and (least := defined.column("value")) is not None:
        gamma = published.column("gamma")
        if abs(err.mean - least.mean) > SURE * (err.error**2 + least.error**2) ** 0.5:
            sentence = (
                f"{title}: Err is {err} as published (gamma {gamma}), where the definition's search finds {least} with "
                "gamma below 0.5."
            )
            claims.append(Claim(f"{err.mean:.2g}", sentence, _draws(err)))
    return claims


def _strongest(name: str, found: dict[tuple[str, str], Measured]) -> tuple[str, Estimate, int] | None:
    """The single departure whose factor is surely not 1 and farthest from it, with that factor and its n."""
    best: tuple[str, Estimate, int] | None = None
    for (other, protocol), one in found.items():
        beside = found.get((name, PROTOCOLS[protocol].beside))
        if other != name or protocol == PUBLISHED or beside is None or not one.by_size:
            continue
        last = max(one.by_size)
        change = ratio(one.by_size[last], beside.by_size.get(last, ()))
        if change is None or change.interval[0] <= 1 <= change.interval[1]:
            continue
        if best is None or abs(change.mean - 1) > abs(best[1].mean - 1):
            best = protocol, change, last
    return best


def _draws(estimate: Estimate) -> str:
    return f"Attained; {estimate.draws} draws a size, ± one standard error."
