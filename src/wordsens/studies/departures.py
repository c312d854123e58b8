"""The effect of each departure of the published code from the paper's definition: on S, its
exponent, and Err."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor

from wordsens.display.numbers import Estimate
from wordsens.display.view import Finding, Table
from wordsens.errors import BudgetError, InputError, require_choice
from wordsens.generalization import TRAININGS, NewText, fit_min_norm
from wordsens.generalization.loss import Loss
from wordsens.intervals import difference, ends, power_law
from wordsens.maps.arguments import radii
from wordsens.maps.base import FeatureMap
from wordsens.maps.dense import DeepRandomFeatures
from wordsens.maps.registry import map_title
from wordsens.models.embedding import load_encoder
from wordsens.search.maximize import maximize
from wordsens.search.objective import Ball, Objective, unit
from wordsens.seeds import gaussian_on, generator
from wordsens.sensitivity.one_word import relative_change
from wordsens.sweeps.experiment import (
    INTERVALS,
    Experiment,
    Grids,
    Summary,
    estimate,
    finding,
    grouped,
    over_draws,
    paired,
    ratio,
)
from wordsens.sweeps.map_cell import MapCell
from wordsens.sweeps.store import Record, as_records
from wordsens.sweeps.texts import (
    LABEL_KINDS,
    SENTIMENT,
    Embedded,
    fingerprint,
    labelled_texts,
    load_text,
    reads_labels,
    texts_at_least,
)
from wordsens.text.matrix import TextMatrix

SENSITIVITY, ERROR = "sensitivity", "error"

NOISE = 0.1
"""Standard deviation of each entry of the noise, as published: ‖Delta‖ may exceed the radius by
about a tenth."""

PADDED_BELOW = 240
"""Reviews of fewer tokens were taken, as published."""

DEFINED, PUBLISHED, FIRST_WORD, ALIGNMENT = "defined", "published", "first-word", "alignment"
PAD = "[PAD]"


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """One way to measure S and Err.

    Attributes:
        title: in tables and figures.
        beside: the protocol that it differs from in one switch; "" for the definition.
        of: what it makes a difference to.
        first_word: only word 0 is perturbed, in place of the sup over all words.
        cls: [CLS] is word 0, the same vector in every text.
        noisy: the ball is centred on a noisy copy of the word (S alone).
        padded: short texts, filled with rows of [PAD], which count as words.
        raw: fixed steps of the raw gradient: 300 of dense maps, 50 n of attention.
        alignment: Delta is chosen by the alignment, (F + 1)², in place of the least Err under a
            limit on gamma.
    """

    title: str
    beside: str = ""
    of: tuple[str, ...] = (SENSITIVITY, ERROR)
    first_word: bool = False
    cls: bool = False
    noisy: bool = False
    padded: bool = False
    raw: bool = False
    alignment: bool = False

    def source(self, text: Any) -> Any:
        """The source of the texts that are measured in place of these; InputError where [CLS] or
        [PAD] is asked of texts that are not real.
        """
        if not (self.cls or self.padded):
            return text
        if not isinstance(text, Embedded):
            raise InputError(
                f"`protocol` (={self.title!r}) needs real texts; {text.kind} texts have no [CLS] "
                "and [PAD]"
            )
        below = PADDED_BELOW if self.padded else text.padded_below
        return text.model_copy(update={"keep_special_tokens": self.cls, "padded_below": below})


PROTOCOLS = {
    DEFINED: Protocol(title="as defined"),
    FIRST_WORD: Protocol(title="word 0 only", beside=DEFINED, first_word=True),
    "cls": Protocol(title="[CLS] as word 0", beside=FIRST_WORD, first_word=True, cls=True),
    "noisy-ball": Protocol(
        title="noisy ball", beside=FIRST_WORD, of=(SENSITIVITY,), first_word=True, noisy=True
    ),
    "padding": Protocol(title="padding as words", beside=DEFINED, padded=True),
    ALIGNMENT: Protocol(title="alignment objective", beside=DEFINED, of=(ERROR,), alignment=True),
    "raw-gradient": Protocol(
        title="raw gradient", beside=FIRST_WORD, of=(SENSITIVITY,), first_word=True, raw=True
    ),
    "raw-alignment": Protocol(
        title="raw alignment",
        beside=ALIGNMENT,
        of=(ERROR,),
        first_word=True,
        alignment=True,
        raw=True,
    ),
    PUBLISHED: Protocol(
        title="as published",
        beside=DEFINED,
        first_word=True,
        cls=True,
        noisy=True,
        padded=True,
        raw=True,
        alignment=True,
    ),
}


class DepartureCell(MapCell, frozen=True):
    """One text, one map, one protocol: S, or Err of a model that has just learned the text.

    Attributes:
        measures: "sensitivity" or "error".
        protocol: one of PROTOCOLS.
        texts: of an error: N, the training texts.
        labels: of an error: "sentiment" (the texts' own), "linear" or "random".
        training: of an error: "fine-tuned" or "retrained".
        limit: of an error: on gamma, where Delta is not chosen by the alignment.
    """

    experiment: ClassVar[str] = "departures"

    measures: Literal["sensitivity", "error"] = SENSITIVITY
    protocol: str = DEFINED
    texts: Annotated[int, Field(ge=1)] = 30
    labels: str = SENTIMENT
    training: str = "fine-tuned"
    limit: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 0.5

    @model_validator(mode="after")
    def _valid(self) -> "DepartureCell":
        chosen = PROTOCOLS[require_choice("protocol", self.protocol, PROTOCOLS)]
        require_choice("labels", self.labels, LABEL_KINDS)
        require_choice("training", self.training, TRAININGS)
        if self.measures not in chosen.of:
            raise InputError(
                f"`protocol` (={self.protocol!r}) makes no difference to the {self.measures}; drop "
                "it"
            )
        if self.reads_texts_itself:
            raise InputError(
                f"`map` (={self.map!r}) makes rows itself; take a map of the paper: rf, drf, raf, "
                "relu-raf"
            )
        chosen.source(self.text)
        return self

    def of_draw(self) -> "DepartureCell":
        """The cell as defined: equal for the protocols of one map, size and draw, which share the
        weights."""
        return self.model_copy(update={"protocol": DEFINED})

    def spec(self) -> dict[str, Any]:
        of_error = ("texts", "labels", "training", "limit")
        alignment = ("limit",) if PROTOCOLS[self.protocol].alignment else ()
        left = of_error if self.measures == SENSITIVITY else alignment
        return {name: value for name, value in super().spec().items() if name not in left}

    def content_of(self, source: Embedded) -> str:
        labelled = self.measures != SENSITIVITY and reads_labels(source, self.labels)
        return fingerprint(source, labelled=labelled)


_LEADING = 12
"""Words that climb on from where the search ended, for S alone: in 12 texts the word of S led
before, and a word gained 6e-4 at most."""

_REFINING_STEPS = 40
_FIRST_STEP = 0.1
"""Of the radius; halved whenever a step does not gain."""

_Measured = tuple[TextMatrix, Any, Float[Tensor, " d"], dict[str, Any]]
"""The text, the word, its Delta, and the columns of what they give."""


def measure_departure(cell: DepartureCell) -> dict[str, Any]:
    """Measure S or Err under the cell's protocol.

    Protocols of one map, size and draw share the weights, and the text where they measure the same
    ones. `length` is ‖Delta‖ / radius of the best word's Delta, which a noisy ball lets exceed 1;
    `padding` counts rows of [PAD].
    """
    protocol, phi = PROTOCOLS[cell.protocol], _map(cell)
    function = _sensitivity if cell.measures == SENSITIVITY else _error
    text, word, perturbation, columns = function(cell, protocol, phi)
    rows = phi.accept(text.rows)
    ball = _ball(cell, phi, rows, torch.tensor([word], device=rows.device))
    return {
        "map": phi.name,
        "source": text.source,
        "label": text.label,
        "word": word,
        "token": text.word(word),
        "searched": 1 if protocol.first_word else len(text),
        "padding": sum(token == PAD for token in text.tokens or ()),
        "length": float(torch.linalg.vector_norm(perturbation.double()) / ball.radius[0]),
        "gamma": None,
        "alignment": None,
        **columns,
        "arrays": {"rows": rows, "word": torch.tensor(word), "perturbation": perturbation},
    }


def _map(cell: DepartureCell) -> FeatureMap:
    """The map of the cell's draw, which no other cell has asked anything."""
    phi = _untouched_map(cell.of_draw())
    return phi.fork() if isinstance(phi, DeepRandomFeatures) else phi


@lru_cache(maxsize=1)
def _untouched_map(cell: DepartureCell) -> FeatureMap:
    """The map that neighbouring cells, the protocols of one draw, have alike."""
    return cell.build()


def _sensitivity(cell: DepartureCell, protocol: Protocol, phi: FeatureMap) -> _Measured:
    text = load_text(protocol.source(cell.text), cell.n, cell.d, draw=cell.draw, seed=cell.seed)
    rows = phi.accept(text.rows)
    words = torch.arange(1 if protocol.first_word else cell.n, device=rows.device)
    ball, seed = _ball(cell, phi, rows, words), cell.seed_of("search")
    change = phi.change(rows, words.unsqueeze(1))
    noise = NOISE * gaussian_on(
        *(len(words), cell.d),
        generator=generator(seed, "noise"),
        dtype=rows.dtype,
        device=rows.device,
    )
    centre = noise if protocol.noisy else torch.zeros_like(noise)
    if protocol.raw:
        features = phi(rows).numel()

        def gradient(delta: Tensor) -> Tensor:
            """Of the root of the mean square over the features."""
            squared, slope = change.value_and_gradient(delta.unsqueeze(1), words)
            return slope.squeeze(1) / (2 * (squared * features).sqrt()).unsqueeze(1)

        # At Delta = 0 that root has no gradient: the ascent starts at the noisy copy.
        rate, steps = (100.0, 300) if isinstance(phi, DeepRandomFeatures) else (10.0, 50 * cell.n)
        delta = raw_ascent(gradient, noise, centre, ball, rate=rate, steps=steps)
    else:
        result = maximize(
            change, words, ball, cell.search_plan, generator=generator(seed, "starts")
        )
        words = result.squared.topk(min(_LEADING, len(words))).indices.sort().values
        ball, centre = _ball(cell, phi, rows, words), centre[words]
        delta = result.perturbations[words].squeeze(1)
        try:
            delta = refined(change, words, delta, centre, ball)
        except BudgetError:
            # A matrix that is sampled on demand forgets a word's columns after its search where
            # memory is short; what the search found stays, unless the ball is another one.
            if protocol.noisy:
                raise
    per_word = relative_change(phi, rows, words.unsqueeze(1), delta.unsqueeze(1))
    best = int(per_word.argmax())
    return text, int(words[best]), delta[best], {"value": float(per_word[best])}


def _error(cell: DepartureCell, protocol: Protocol, phi: FeatureMap) -> _Measured:
    data = labelled_texts(
        protocol.source(cell.text),
        cell.labels,
        (cell.n, cell.d),
        training=cell.texts,
        held_out=1,
        draw=cell.draw,
        seed=cell.seed,
        dtype=phi.dtype,
    )
    (text,), labels = data.test
    new = NewText(fit_min_norm(phi, *data.training), text, float(labels[0]))
    common: dict[str, Any] = {"word": 0 if protocol.first_word else None, "training": cell.training}
    common |= {"seed": cell.seed_of("search"), "radius": cell.radius, "search": cell.search_plan}
    if protocol.raw:
        at, delta = 0, _raw_alignment(cell, new)
    elif protocol.alignment:
        aligned = new.generalization(**common)
        at, delta = aligned.word, aligned.perturbation
    else:
        frontier = new.frontier(gammas=(cell.limit,), **common)
        at, delta = int(frontier.words[-1]), frontier.perturbations[-1]
    outputs = new.outputs(at, delta, cell.training)
    columns = {"value": outputs.error, "gamma": outputs.gamma, "alignment": outputs.alignment}
    return text, at, delta, columns


def _raw_alignment(cell: DepartureCell, new: NewText) -> Float[Tensor, " d"]:
    """Steps down the raw gradient of (F + 1)² from Delta = 0."""
    objective = new.objective(0, [Loss(cell.training, "alignment")])
    words = torch.zeros(1, dtype=torch.long, device=new.rows.device)
    start = torch.zeros_like(new.rows[:1])

    def gradient(delta: Tensor) -> Tensor:
        # The objective is 1 / (1 + loss).
        value, slope = objective.value_and_gradient(delta.unsqueeze(1), words)
        return slope.squeeze(1) / value.square().unsqueeze(1)

    rate, steps = (
        (100.0, 300) if isinstance(new.fit.phi, DeepRandomFeatures) else (1.0, 50 * cell.n)
    )
    ball = _ball(cell, new.fit.phi, new.rows, words)
    return raw_ascent(gradient, start, torch.zeros_like(start), ball, rate=rate, steps=steps)[0]


def _ball(
    cell: DepartureCell, phi: FeatureMap, rows: Float[Tensor, "n d"], words: Int[Tensor, " w"]
) -> Ball:
    return Ball(radii(cell.radius, phi, rows, words))


def raw_ascent(
    gradient: Callable[[Tensor], Tensor],
    start: Float[Tensor, "w d"],
    centre: Float[Tensor, "w d"],
    ball: Ball,
    *,
    rate: float,
    steps: int,
) -> Float[Tensor, "w d"]:
    """The last of the points Delta <- centre + P(Delta + rate g(Delta) - centre), P the projection
    to the ball.

    No step is refused, and the last point need not be the best: the search of the published
    experiments. A point that a step leaves where it is, bit for bit, is the last: so would all
    further steps.
    """
    delta = start
    with torch.inference_mode():
        for _ in range(steps):
            before, delta = delta, centre + ball.project(delta + rate * gradient(delta) - centre)
            if torch.equal(before, delta):
                break
    return delta.clone()


def refined(
    objective: Objective,
    words: Int[Tensor, " w"],
    start: Float[Tensor, "w d"],
    centre: Float[Tensor, "w d"],
    ball: Ball,
) -> Float[Tensor, "w d"]:
    """Points of the balls around the centre, climbed to from those nearest to the start; no step
    loses."""
    delta = centre + ball.project(start - centre)
    value, slope = objective.value_and_gradient(delta.unsqueeze(1), words)
    step = _FIRST_STEP * ball.radius.to(delta.dtype).unsqueeze(1)
    for _ in range(_REFINING_STEPS):
        ahead = delta + step * unit(slope.squeeze(1))
        tried = centre + ball.project(ahead - centre)
        attempt, turned = objective.value_and_gradient(tried.unsqueeze(1), words)
        gains = (attempt > value).unsqueeze(1)
        delta = torch.where(gains, tried, delta)
        slope = torch.where(gains.unsqueeze(2), turned, slope)
        value, step = torch.maximum(attempt, value), torch.where(gains, step, step / 2)
    return delta


# Dense maps have their matrix, and every word is searched: at n = 160, d = 48 that takes about 4 s
# in float32.
_DENSE: dict[str, Any] = {"gaussian": "dense", "dtype": "float32", "starts": 1, "steps": 10}
# Softmax: quick attains what normal does to five digits (n = 160, d = 384), in an eighth of the
# time. ReLU needs normal.
_SEARCHES: dict[str, dict[str, Any]] = {"rf": _DENSE, "raf": {"search": "quick"}, "relu-raf": {}}

PRESETS: dict[str, dict[str, Any]] = {
    "quick": {
        "d": {"rf": 16, "raf": 32},
        "n": (8, 16),
        "error": {"raf": (8, 24)},
        "texts": 12,
        "draws": 5,
    },
    "laptop": {
        "d": {"rf": 48, "raf": 96},
        "n": (20, 40, 80),
        "error": {"rf": (40, 48), "raf": (40, 64)},
        "texts": 30,
        "draws": 20,
    },
    "full": {
        "d": {"rf": 48, "raf": 192, "relu-raf": 192},
        "n": (20, 40, 80, 160),
        "error": {"rf": (40, 64), "raf": (40, 64), "relu-raf": (40, 64)},
        "texts": 30,
        "draws": 20,
    },
}
"""d of each map whose S is measured, n, the maps whose Err is measured with n and d, N at most,
draws."""


def preset(scale: str, source: Embedded, seed: int, labels: str | None) -> Grids:
    """S of every protocol against n, and Err of those that change it, on real texts: [CLS] and
    [PAD] are of those.

    Raises:
        InputError: no such encoder or data, or texts too short for any size.
    """
    size, width = PRESETS[scale], load_encoder(source.encoder).dimension
    notices = []
    sizes = [n for n in size["n"] if texts_at_least(source, n, seed=seed, most=1)]
    if len(sizes) < 2:
        raise InputError(
            f"`texts` have no text of {size['n'][1]} words, so S cannot be followed over n; give "
            "longer ones"
        )
    if lost := [str(n) for n in size["n"] if n not in sizes]:
        notices.append(f"no text has {', '.join(lost)} words: left out")
    common = {"text": source.model_dump(mode="json"), "draw": list(range(size["draws"]))}
    of_s = {"n": sizes, "protocol": _protocols_of(SENSITIVITY)}
    grids = [
        {**common, **of_s, "map": name, "d": min(d, width), **_SEARCHES[name]}
        for name, d in size["d"].items()
    ]
    try:
        reads_labels(source, labels or SENTIMENT)
    except InputError as error:
        if labels is not None:
            raise
        return grids, [*notices, f"Err is not measured: {error}"]
    padded = source.model_copy(update={"padded_below": PADDED_BELOW})
    for name, (n, d) in size["error"].items():
        # One text is held out; the others are long ones, or short ones that are padded.
        have = [
            len(texts_at_least(one, n, seed=seed, most=size["texts"] + 1)) - 1
            for one in (source, padded)
        ]
        of_error = {
            "measures": ERROR,
            "labels": labels or SENTIMENT,
            "protocol": _protocols_of(ERROR),
        }
        if min(have) >= 2:
            texts = min(size["texts"], *have)
            grids.append(
                {**common, **of_error, "map": name, "n": n, "d": min(d, width), "texts": texts}
            )
            grids[-1] |= _SEARCHES[name]
    return grids, notices


def _protocols_of(measures: str) -> list[str]:
    """The names of the protocols that make a difference to S, or to Err."""
    return [name for name, one in PROTOCOLS.items() if measures in one.of]


@dataclass(frozen=True)
class ProtocolRecords:
    """The records of one map under one protocol: of S by n, and of the error on the changed
    text."""

    map: str
    protocol: str
    by_size: dict[int, list[Record]]
    errors: list[Record]

    @property
    def exponent(self) -> Estimate | None:
        """Of S against n; None where there is no fit."""
        points = [(n, record.value) for n, group in self.by_size.items() for record in group]
        fit = power_law(*zip(*points, strict=True)) if points else None
        return fit and fit[0]

    @property
    def titles(self) -> tuple[str, str]:
        """Of the map and the protocol."""
        return map_title(self.map).removesuffix(" (softmax)"), PROTOCOLS[self.protocol].title


def measured(records: Any) -> dict[tuple[str, str], ProtocolRecords]:
    """The finished records by map and protocol; protocols in their own order."""
    groups = grouped((record for record in as_records(records) if record.done), "map", "protocol")
    maps = list(dict.fromkeys(name for name, _ in groups))
    return {
        key: ProtocolRecords(
            *key, _by_size(groups[key]), [one for one in groups[key] if one.measures == ERROR]
        )
        for key in ((name, protocol) for name in maps for protocol in PROTOCOLS)
        if key in groups
    }


def _by_size(records: Sequence[Record]) -> dict[int, list[Record]]:
    sizes = grouped((record for record in records if record.measures == SENSITIVITY), "n")
    return {n: group for (n,), group in sorted(sizes.items())}


def summarize(records: Sequence[Record]) -> Summary:
    """Two tables with a row a map and protocol, of S and of Err, and what the sentences of
    `_claims` say."""
    groups = measured(records)
    pairs = [
        (one, groups.get((one.map, PROTOCOLS[one.protocol].beside))) for one in groups.values()
    ]
    last = max((n for one in groups.values() for n in one.by_size), default=0)
    of_s = ("map", "protocol", f"S, n = {last}", "S / beside", "exponent", "difference")
    of_errors = ("map", "protocol", "Err", "gamma", "Err - beside")
    sections = (
        Table.of_rows(
            "S, as defined and as published",
            of_s,
            tuple(_row(*pair) for pair in pairs if pair[0].by_size),
        ),
        Table.of_rows(
            "Err, as defined and as published",
            of_errors,
            tuple(_errors(*p) for p in pairs if p[0].errors),
        ),
    )
    claims = [_claims(name, groups) for name in dict.fromkeys(name for name, _ in groups)]
    return Summary(
        tuple(table for table in sections if len(table)),
        f"Means over draws, {INTERVALS}; beside: the row that differs in one switch.",
        (
            *(claim for part in claims for claim in part[:1]),
            *(claim for part in claims for claim in part[1:]),
        ),
        "That row is: word 0 only, for [CLS], the noisy ball and the raw gradient; the alignment "
        "objective, for the "
        "raw alignment; as defined, for the rest. Err: on the changed text, the least attained "
        "with gamma below 0.5, "
        "or what the alignment objective gives.",
        leading=max(1, sum(bool(part) for part in claims)),
    )


def _row(one: ProtocolRecords, beside: ProtocolRecords | None) -> tuple[str | Estimate | None, ...]:
    last = max(one.by_size)
    exponent, other = one.exponent, None if beside is None else beside.exponent
    return (
        *(*one.titles, estimate(one.by_size[last])),
        None if beside is None else ratio(one.by_size[last], beside.by_size.get(last, ())),
        *(exponent, exponent and other and difference(exponent, other)),
    )


def _errors(
    one: ProtocolRecords, beside: ProtocolRecords | None
) -> tuple[str | Estimate | None, ...]:
    gap = None if beside is None else paired(one.errors, beside.errors)
    return (*one.titles, estimate(one.errors), estimate(one.errors, "gamma"), gap)


def _claims(name: str, groups: dict[tuple[str, str], ProtocolRecords]) -> list[Finding]:
    """Of one map: the published exponent, the departure that moves S most, and the published
    error."""
    claims = []
    defined, published = groups.get((name, DEFINED)), groups.get((name, PUBLISHED))
    if defined is None or published is None:
        return []
    title = map_title(name)
    if (exponent := published.exponent) is not None and (other := defined.exponent) is not None:
        gap = difference(exponent, other)
        last = max(defined.by_size)
        whole = ratio(published.by_size.get(last, ()), defined.by_size[last])
        low, high = ends(gap)
        differ = f"cannot be told apart ({gap})" if low <= 0 <= high else f"differs by {gap}"
        sentence = (
            f"{title}: the exponent of S is {exponent} as published and {other} "
            "as defined, which "
            f"{differ}; at n = {last} the published protocol attains {whole} of S."
        )
        known = _draws(over_draws([one.value for one in defined.by_size[last]]))
        records = [
            record
            for one in (defined, published)
            for group in one.by_size.values()
            for record in group
        ]
        claims.append(finding(str(exponent), sentence, known, exponent, records))
    if (strongest := _strongest(name, groups)) is not None:
        protocol, change, last = strongest
        beside = PROTOCOLS[PROTOCOLS[protocol].beside].title
        sentence = (
            f"{title}: of the single departures “{PROTOCOLS[protocol].title}” moves S most, by the "
            f"factor {change} "
            f"beside “{beside}” at n = {last}."
        )
        records = groups[name, protocol].by_size[last]
        claims.append(finding(f"factor {change}", sentence, _draws(change), change, records))
    if (err := estimate(published.errors)) is not None and (
        least := estimate(defined.errors)
    ) is not None:
        gamma = estimate(published.errors, "gamma")
        gap = paired(published.errors, defined.errors)
        if gap is not None and not ends(gap)[0] <= 0 <= ends(gap)[1]:
            sentence = (
                f"{title}: Err is {err} as published (gamma {gamma}), where the definition's "
                f"search attains {least} "
                "with gamma below 0.5."
            )
            records = [*published.errors, *defined.errors]
            claims.append(finding(f"Err is {err}", sentence, _draws(err), err, records))
    return claims


def _strongest(
    name: str, groups: dict[tuple[str, str], ProtocolRecords]
) -> tuple[str, Estimate, int] | None:
    """The single departure whose factor is surely not 1 and farthest from it, with that factor and
    its n."""
    best: tuple[str, Estimate, int] | None = None
    for (other, protocol), one in groups.items():
        beside = groups.get((name, PROTOCOLS[protocol].beside))
        if other != name or protocol == PUBLISHED or beside is None or not one.by_size:
            continue
        last = max(one.by_size)
        change = ratio(one.by_size[last], beside.by_size.get(last, ()))
        if change is None or ends(change)[0] <= 1 <= ends(change)[1]:
            continue
        if best is None or abs(change.value - 1) > abs(best[1].value - 1):
            best = protocol, change, last
    return best


def _draws(estimate: Estimate) -> str:
    return f"Attained; {estimate.n} draws a size, {INTERVALS}."


def _departures(records: Sequence[Record]) -> dict[str, Any]:
    """S of each protocol over that of the definition, against n; Err of each against its gamma,
    with (2 - gamma)²."""
    from wordsens.generalization.result import THEOREM
    from wordsens.plotting.axes import Panel, Points, grid, interval
    from wordsens.plotting.style import BARS, styles_of

    groups = measured(records)
    styles = styles_of(one.title for one in PROTOCOLS.values())
    maps = list(dict.fromkeys(name for name, _ in groups))
    of_s, of_errors = [], []
    for name in maps:
        protocols = {protocol: one for (other, protocol), one in groups.items() if other == name}
        defined = protocols.get(DEFINED)
        if defined is not None and defined.by_size:
            curves = {
                PROTOCOLS[protocol].title: [
                    (n, value)
                    for n, group in one.by_size.items()
                    if (value := ratio(group, defined.by_size.get(n, ()))) is not None
                ]
                for protocol, one in protocols.items()
                if protocol != DEFINED and one.by_size
            }
            of_s.append(Panel(map_title(name), curves, {"as defined": [(None, 1.0)]}))
        places: dict[str, Points] = {}
        for protocol, one in protocols.items():
            gamma, error = estimate(one.errors, "gamma"), estimate(one.errors)
            if gamma is not None and error is not None:
                places[PROTOCOLS[protocol].title] = [(gamma.value, error)]
        top = max(
            (1.05 * interval(value)[1] for points in places.values() for _, value in points),
            default=0.0,
        )
        of_errors.append(
            Panel(
                map_title(name),
                places,
                {"(2 − γ)², below which random features do not come": THEOREM},
                limits=(0.0, max(4.4, top)),
                scattered=frozenset(places),
            )
        )
    gammas = "γ: how well the model before told the two texts apart"
    return {
        "departures": grid(
            "What the published protocol does to S, switch by switch",
            *(of_s, styles, ("words in the text", "S / S as defined")),
            log="x",
            share_y=False,
            caption="Marks are means over draws of the ratio to S as defined of the same draw; "
            "bars are 95 % confidence intervals.",
        ),
        "departures-error": grid(
            "What the published protocol does to the error",
            *(of_errors, styles, (gammas, "error on the changed text")),
            caption=f"{BARS} As defined: the least error attained with γ below 0.5.",
        ),
    }


DEPARTURES = Experiment(
    name="departures",
    Cell=DepartureCell,
    measure=measure_departure,
    preset=preset,
    summarize=summarize,
    together=DepartureCell.of_draw,
    figures=_departures,
)
