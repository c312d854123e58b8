"""From how many words on a map notices: S of k words that move at once, each in a ball of its
own."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Annotated, Any, ClassVar

import torch
from jaxtyping import Float
from pydantic import Field, model_validator
from torch import Tensor

from wordsens.certificates.base import Certificate
from wordsens.certificates.dense.bounds import FAILURE_PROBABILITY, dense_certificate
from wordsens.display.view import Finding
from wordsens.errors import InputError
from wordsens.intervals import ends, power_law
from wordsens.maps.dense import DeepRandomFeatures
from wordsens.maps.registry import map_title
from wordsens.seeds import generator
from wordsens.sensitivity.several_words import group_sensitivity, word_sets
from wordsens.sweeps.experiment import (
    INTERVALS,
    Column,
    Experiment,
    Grids,
    Summary,
    estimate,
    finding,
    grouped,
    mean_over_draws,
    over_draws,
    table,
    text_title,
)
from wordsens.sweeps.map_cell import MapCell
from wordsens.sweeps.store import Record, as_records
from wordsens.sweeps.texts import Embedded, load_text, texts_at_least
from wordsens.text import load_encoder

NOTICED = 0.5
"""Features that move by half their norm: a constant fraction, which the theory of random features
speaks of."""


class SeveralWordsCell(MapCell, frozen=True):
    """One text, one map, sets of `count` words whose balls have the radius each.

    Attributes:
        count: k, how many words move at once.
    """

    experiment: ClassVar[str] = "several-words"

    count: Annotated[int, Field(ge=1)]

    @model_validator(mode="after")
    def _words_enough(self) -> "SeveralWordsCell":
        if self.count > self.n:
            raise InputError(
                f"`count` (={self.count}) must be at most `n` (={self.n}), the words of the text"
            )
        return self


def measure_several_words(cell: SeveralWordsCell) -> dict[str, Any]:
    """Measure one cell. `value` is attained: a lower bound of the sup over all sets of k words.

    Fully connected features are the same in law for every set, and one random set is searched; of
    other maps those of `word_sets`.
    """
    phi = cell.build()
    model = phi if cell.reads_texts_itself else None
    text = load_text(cell.text, cell.n, cell.d, draw=cell.draw, seed=cell.seed, model=model)
    seed = cell.seed_of("search")
    if isinstance(phi, DeepRandomFeatures):
        stream = generator(cell.seed, "set of words", cell.n, cell.d, cell.draw)
        sets = [tuple(sorted(torch.randperm(cell.n, generator=stream)[: cell.count].tolist()))]
    else:
        sets = word_sets(phi, text, cell.count, cell.radius, seed)
    result = group_sensitivity(phi, text, sets, cell.radius, seed, search=cell.search_plan)
    best = result.perturbations[result.groups.index(result.group)]
    bound = bound_of_every_set(phi, phi.accept(text.rows), cell.count, result.radius[0][0])
    return {
        "map": phi.name,
        "source": text.source,
        "label": text.label,
        "group": result.group,
        "sets": len(result.groups),
        "value": result.value,
        "upper": None if bound is None else bound.value,
        "rigor": None if bound is None else bound.rigor,
        "evaluations": result.evaluations,
        "converged": float(result.converged.double().mean()),
        "arrays": {"rows": text.rows, "words": torch.tensor(result.group), "perturbations": best},
    }


def bound_of_every_set(
    phi: Any, rows: Float[Tensor, "n d"], count: int, radius: float
) -> Certificate | None:
    """A bound of the sensitivity to every set of `count` words at once, each in a ball of that
    radius (ours).

    The bound of one set by the law of the weights depends on the set through the length of its rows
    alone, and grows with it: that of the longest rows, with a failure probability of 1e-9 / C(n,
    k), is one of all sets with 1e-9. None for maps without a bound for groups.
    """
    if not isinstance(phi, DeepRandomFeatures):
        return None
    longest = torch.linalg.vector_norm(rows, dim=1).argsort(descending=True)[:count].unsqueeze(0)
    reach = torch.tensor([radius * math.sqrt(count)], dtype=torch.float64, device=rows.device)
    each = FAILURE_PROBABILITY / math.comb(len(rows), count)
    bound = dense_certificate(
        phi, rows, longest, reach, method="gaussian", failure_probability=each
    )
    return replace(bound, failure_probability=FAILURE_PROBABILITY)


_LAZY: dict[str, Any] = {"map": "rf", "gaussian": "lazy", "search": "quick", "dtype": "float32"}
_QUICK = {"map": "raf", "search": "quick"}
# Quick attains .97 to 1.01 of normal's for softmax, for ReLU as little as .58.
PRESETS: dict[str, tuple[int, int, int, list[dict[str, Any]]]] = {
    "quick": (16, 48, 3, [_LAZY, _QUICK, {"map": "relu-raf", "search": "quick"}]),
    "laptop": (50, 192, 10, [_LAZY, _QUICK, {"map": "relu-raf"}]),
    "full": (100, 192, 10, [_LAZY, {"map": "raf"}, {"map": "relu-raf"}]),
}
"""n, d (or the encoder's own where that is smaller), draws, and each map's search."""


def preset(scale: str, source: Embedded, seed: int, labels: str | None) -> Grids:
    """S of RF, RAF and ReLU-RAF when k = 1, 2, 4, ..., n words move at once, on Gaussian and on
    real texts."""
    n, d, draws, maps = PRESETS[scale]
    texts: list[tuple[dict[str, Any], int]] = [({"kind": "gaussian"}, d)]
    notices = []
    if texts_at_least(source, n, seed=seed, most=1):
        texts.insert(
            0, (source.model_dump(mode="json"), min(d, load_encoder(source.encoder).dimension))
        )
    else:
        notices.append(f"no text has {n} words: Gaussian texts are measured alone")
    counts = [2**power for power in range(n.bit_length()) if 2**power < n] + [n]
    common = {"n": n, "count": counts, "draw": list(range(draws))}
    return [
        {**common, **part, "text": text, "d": width} for text, width in texts for part in maps
    ], notices


def never_falling(records: Any) -> list[Record]:
    """The finished records by the number of words that move, each with the most that so many or
    fewer attain.

    Words of a set may stay where they are, so what fewer words attain in a draw more words attain
    too.
    """
    best: dict[tuple[Any, ...], float] = {}
    raised = []
    for one in sorted((one for one in as_records(records) if one.done), key=lambda one: one.count):
        key = one.map, one.text, one.n, one.d, one.draw
        best[key] = max(best.get(key, 0.0), one.value)
        raised.append(one.replace(value=best[key]))
    return raised


def summarize(records: Sequence[Record]) -> Summary:
    """A row a map, text and number of words; from how many on each map notices, and how its
    sensitivity grows."""
    ordered = [one for part in _series(records) for one in part]
    keys: dict[str, Column] = {"map": lambda one: map_title(one.map), "texts": "text"}
    keys |= {"n": "n", "d": "d", "words moved": "count", "share": lambda one: one.count / one.n}
    claims, untold = [], []
    for part in _series(records):
        counts = {count: part for (count,), part in grouped(part, "count").items()}
        subject = f"{map_title(part[0].map)} on {text_title(part[0].text)} of {part[0].n} words"
        claims.append(_claims(subject, part[0].n, counts))
        if not claims[-1]:
            fewest = min(counts)
            untold.append(
                f"{subject}, S of {fewest}: {over_draws([one.value for one in counts[fewest]])}"
            )
    first, others = (
        [claim for part in claims for claim in part[:1]],
        [claim for part in claims for claim in part[1:]],
    )
    if first and untold:
        sentence = f"Without an interval that tells when the others notice: {'; '.join(untold)}."
        known = f"Means over draws, {INTERVALS}."
        first.append(
            finding(str(len(untold)), sentence, known, len(untold), ordered, ("attained",))
        )
    return Summary(
        (table("Several words at once", ordered, keys, {"S": "value", "upper bound": "upper"}),),
        f"S: attained, mean over draws, {INTERVALS}; every word moves in a ball of its "
        "own, or stays.",
        (*first, *others),
        "The upper bounds hold for every set of so many words, each with probability 1 - 1e-9 over "
        "the weights.",
        leading=max(1, len(first)),
    )


def _series(records: Sequence[Record]) -> list[list[Record]]:
    """The records of each map, kind of text, n and d, in the order in which these were measured."""
    order = list(grouped(records, "map", "text", "n", "d"))
    groups = grouped(never_falling(records), "map", "text", "n", "d")
    return [groups[key] for key in order]


def _claims(subject: str, n: int, counts: dict[int, list[Record]]) -> list[Finding]:
    claims, records = [], [record for part in counts.values() for record in part]
    first = over_draws([record.value for record in counts[min(counts)]])
    crossings = [crossing for crossing in _crossings(counts) if crossing is not None]
    if min(counts) == 1 and ends(first)[0] >= NOTICED:
        sentence = (
            f"{subject} notices a single word: it moves the features by {first} times their norm."
        )
        claims.append(finding(f"{first} times", sentence, mean_over_draws(first), first, counts[1]))
    elif crossings and len(crossings) == first.n:
        at = over_draws(crossings)
        sentence = (
            f"{subject} notices (S reaches {NOTICED:g}) when {at} words change at once, "
            f"{at.value / n:.0%} of the text; "
            f"a single one moves it by {first}."
        )
        known = mean_over_draws(at) + " Interpolated between the numbers tried."
        claims.append(finding(f"{at} words", sentence, known, at, records))
    unseen = [
        k
        for k, part in counts.items()
        if all(one.upper is not None and one.upper < NOTICED for one in part)
    ]
    if unseen:
        number = f"{max(unseen)} words" if max(unseen) > 1 else "no single word"
        sentence = (
            f"No choice of {number}, moved however one likes, moves {subject} by {NOTICED:g}."
        )
        if max(unseen) == 1:
            sentence = f"Certainly {number} moves {subject} by {NOTICED:g}."
        known = "Upper bounds, each with probability 1 - 1e-9 over the weights."
        claims.append(finding(number, sentence, known, max(unseen), counts[max(unseen)]))
    few = [(k, record.value) for k, part in counts.items() if k <= n / 2 for record in part]
    fit = power_law(*zip(*few, strict=True)) if len({k for k, _ in few}) > 2 else None
    if fit is not None and ends(first)[1] < NOTICED:
        exponent = fit[0]
        sentence = (
            f"{subject}: up to half of the words, S grows with their number k as k^b, b = "
            f"{exponent}."
        )
        known = f"Least squares over {len(few)} values, {INTERVALS}."
        claims.append(finding(f"b = {exponent}", sentence, known, exponent, records))
    return claims


def _crossings(counts: dict[int, list[Record]]) -> list[float | None]:
    """For each draw the number of words at which S reaches NOTICED, interpolated on logarithmic
    axes."""
    draws = grouped((one for part in counts.values() for one in part), "draw")
    return [_crossing([(one.count, one.value) for one in part]) for part in draws.values()]


def _crossing(points: Sequence[tuple[int, float]]) -> float | None:
    """
    >>> _crossing([(1, 0.25), (4, 0.5), (16, 1.0)]), _crossing([(1, 0.1), (2, 0.2)])
    (4.0, None)
    """
    for (few, less), (many, more) in pairwise(points):
        if 0 < less < NOTICED <= more:
            along = math.log(NOTICED / less) / math.log(more / less)
            return round(few * (many / few) ** along, 12)
    return None


def _several_words(records: Sequence[Record]) -> dict[str, Any]:
    """S against the number of words that move at once, a panel a kind of text and n."""
    from wordsens.plotting.axes import Panel, grid
    from wordsens.plotting.records import curves_of
    from wordsens.plotting.style import BARS, styles_of

    ordered = never_falling(records)
    styles = styles_of({map_title(name): name for (name,) in grouped(as_records(records), "map")})
    drawn = []
    for (text, n), part in grouped(ordered, "text", "n").items():
        guides = {"half the features' norm": [(None, NOTICED)]}
        bands = {}
        for (name,), group in grouped(part, "map").items():
            uppers = [
                (k, estimate(one), estimate(one, "upper"))
                for (k,), one in grouped(group, "count").items()
            ]
            band = [
                (k, value.value, upper.value)
                for k, value, upper in uppers
                if value is not None and upper is not None
            ]
            bands |= {map_title(name): band} if band else {}
        curves = curves_of(part, lambda one: map_title(one.map), "count")
        drawn.append(Panel(f"{text_title(text).capitalize()}, {n} words", curves, guides, bands))
    figure = grid(
        "Sensitivity to several words at once",
        *(drawn, styles, ("words that move at once", "sensitivity S")),
        log="xy",
        caption=f"{BARS} Shaded up to the upper bound over every set of so many words, where there "
        "is one.",
    )
    return {"several-words": figure}


SEVERAL_WORDS = Experiment(
    name="several-words",
    Cell=SeveralWordsCell,
    measure=measure_several_words,
    preset=preset,
    summarize=summarize,
    figures=_several_words,
)
