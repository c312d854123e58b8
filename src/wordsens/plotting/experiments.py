"""The figures of each experiment's records, by the names of the files that `wordsens paper` writes."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wordsens.evaluation.audit.cell import audited
from wordsens.maps.registry import base_name, map_entry, map_title
from wordsens.plotting.attention import attention, prompts
from wordsens.plotting.generalization import frontier, generalization
from wordsens.plotting.sensitivity import along, sensitivity
from wordsens.plotting.style import (
    BARS,
    MOST_SERIES,
    Style,
    StyledFigure,
    StyleFile,
    bar_ends,
    guide,
    in_style,
    legend_below,
    log_axes,
    marks,
    panels,
    series_styles,
    styles_of,
    tell,
)
from wordsens.statistics.mean import Estimate
from wordsens.studies.control.study import (
    ALONG,
    HOLD,
    TASK_TITLES,
    along_training,
    control_title,
    held,
    network_title,
    single,
    stacked,
    uncontrolled,
)
from wordsens.studies.correlations import CORRELATED, by_cosine, texts_title
from wordsens.studies.departures import DEFINED, PROTOCOLS, measured
from wordsens.studies.sensitivity import GIVEN
from wordsens.studies.several_words import NOTICED, never_falling
from wordsens.studies.similarity import CHECK, SWAPS, features_title, learned, of_pairs
from wordsens.sweeps.experiment import Column, estimate, grouped, ratio, text_title, value_of, varying_columns
from wordsens.sweeps.store import Record, as_records
from wordsens.sweeps.sweep import finished_of_one
from wordsens.text.english import KINDS, kind_of

Figures = dict[str, Any]
"""By the name of the file."""

_FAMILIES = {"rf": "Random features", "drf": "Deep random features", "raf": "Random attention features"}
_AXES = 3
"""So many axes of a sweep besides the length have a figure each."""


def of_experiment(records: Any, *, style: StyleFile = None) -> Figures:
    """The figures of the experiment whose records these are, by the names of the files that `wordsens paper` writes.

    Args:
        records: a DataFrame of `read_records`, or records; failed ones are left out.
        style: a .mplstyle file in place of ours, or a name that matplotlib knows.

    Raises:
        InputError: no record is finished, or they are of several experiments.

    >>> of_experiment(ws.read_records("out"))["sensitivity"]  # doctest: +SKIP
    """
    experiment, done = finished_of_one(records)
    with in_style(style):
        drawn = _FIGURES.get(experiment.name, along_axes)(done)
    shown = {name: figure for name, figure in drawn.items() if figure is not None}
    for figure in shown.values():
        figure.style = style
    return shown


def save_figures(records: Sequence[Record], folder: Path, style: StyleFile) -> list[Path]:
    """Write the figures of an experiment's records as PDF, SVG and PNG, and give their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for file, figure in of_experiment(records, style=style).items():
        for suffix in ("pdf", "svg", "png"):
            paths.append(folder / f"{file}.{suffix}")
            figure.savefig(paths[-1])
    return paths


def one_axis(records: Iterable[Record], **options: Any) -> Any:
    """All maps on one axis; of too many series those of each map's largest d. None where no length varies."""
    group = [record for record in as_records(records, "sensitivity") if record.done and record.text != GIVEN]
    if len({record.n for record in group}) < 2:
        return None
    if len({(record.map, record.d, record.text) for record in group}) > MOST_SERIES:
        largest: dict[tuple[str, str], int] = {}
        for record in group:
            largest[record.map, record.text] = max(record.d, largest.get((record.map, record.text), 0))
        group = [record for record in group if record.d == largest[record.map, record.text]]
    return sensitivity(group, title="Word sensitivity", detail=False, **options)


def along_axes(records: Sequence[Record], besides: Sequence[str] = ()) -> Figures:
    """A figure for each axis of a sweep that has several values, all of them numbers; for at most three."""
    axes = [
        name
        for name, values in varying_columns(records, besides=besides).items()
        if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    ]
    return {f"along-{axis.replace('_', '-')}": along(records, axis) for axis in axes[:_AXES]}


def _sensitivity(records: Sequence[Record]) -> Figures:
    """All maps on one axis, then each family by itself, with every word's value."""
    families: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        base = base_name(record.map)
        families["raf" if map_entry(base).family == "attention" else base].append(record)
    drawn = {"sensitivity": one_axis(records)} if len(families) > 1 else {}
    for name in sorted(families, key=list(_FAMILIES).index):
        drawn[name] = sensitivity(families[name], title=_FAMILIES[name])
    return drawn


def _generalization(records: Sequence[Record]) -> Figures:
    """For each kind of text: Err against gamma, and the frontier."""
    from wordsens.studies.generalization import FRONTIER

    drawn = {}
    for (text,), group in grouped(records, "text").items():
        if any(record.objective != FRONTIER for record in group):
            title = f"Error on the changed text: {text_title(text)}"
            drawn[f"generalization-error-{text}"] = generalization(group, title=title)
        if any(record.objective == FRONTIER for record in group):
            title = rf"Least error under a limit on $\gamma$: {text_title(text)}"
            drawn[f"generalization-frontier-{text}"] = frontier(group, title=title)
    return drawn


def _attention(records: Sequence[Record]) -> Figures:
    """Figure 1; of a causal language model also the answers to two prompts."""
    from wordsens.studies.attention import attention_summary

    drawn = {}
    for at, one in enumerate(map(attention_summary, records)):
        drawn[f"attention-{at}" if at else "attention"] = attention(one.pair)
        if one.prompts is not None:
            drawn[f"prompts-{at}" if at else "prompts"] = prompts(one.prompts)
    return drawn


Points = list[tuple[Any, Estimate]]


@dataclass
class Panel:
    """One pair of axes: series of points by their name, dotted guides, shaded bands, and limits of y."""

    title: str
    curves: dict[str, Points]
    guides: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    bands: dict[str, list[tuple[float, float, float]]] = field(default_factory=dict)
    limits: tuple[float, float] | None = None
    scattered: frozenset[str] = frozenset()


def grid(
    title: str,
    drawn: Sequence[Panel],
    styles: Mapping[str, Style],
    labels: tuple[str, str],
    *,
    logarithmic: tuple[bool, bool] = (False, False),
    share_y: bool = True,
    caption: str = BARS,
) -> StyledFigure | None:
    """Panels of means with bars, one legend below; curves named in `scattered` have no line. None without panels."""
    drawn = [one for one in drawn if any(one.curves.values())]
    if not drawn:
        return None
    names = dict.fromkeys(name for one in drawn for name in (*one.curves, *one.guides))
    figure, axes = panels([one.title for one in drawn], entries=len(names), share_y=share_y)
    for panel, one in zip(axes, drawn, strict=True):
        for name, points in one.curves.items():
            joined = name not in one.scattered
            marks(panel, points, styles[name], name, joined=joined, positive=logarithmic[1])
        for name, band in one.bands.items():
            places, low, high = zip(*band, strict=True)
            panel.fill_between(places, low, high, color=styles[name][0], alpha=0.2, linewidth=0)
        for name, points in one.guides.items():
            guide(panel, points, name)
        places = [x for points in one.curves.values() for x, _ in points]
        if logarithmic[0]:
            log_axes(panel, places)
        elif all(isinstance(place, int) for place in places):
            panel.set_xticks(sorted(set(places)))
        if logarithmic[1]:
            log_axes(panel, limits=_log_limits(drawn if share_y else [one]))
        if one.limits is not None:
            panel.set_ylim(one.limits)
        panel.set_xlabel(labels[0])
    if labels[1]:
        for panel in axes:
            if not share_y or panel.get_subplotspec().is_first_col():  # pyright: ignore[reportOptionalMemberAccess]
                panel.set_ylabel(labels[1])
    legend_below(figure, axes)
    figure.suptitle(title)
    figure.caption = caption
    return figure


def _log_limits(drawn: Sequence[Panel]) -> tuple[float, float]:
    """Of y: every bar and band, above 0, with a little to spare."""
    values = [v for one in drawn for points in one.curves.values() for _, v in points]
    ends = [end for value in values for end in bar_ends(value, positive=True)]
    ends += [end for one in drawn for band in one.bands.values() for _, low, high in band for end in (low, high)]
    ends += [y for one in drawn for points in one.guides.values() for _, y in points]
    positive = [end for end in ends if end > 0] or [0.1, 1.0]
    return min(positive) / 1.1, max(positive) * 1.1


def points_of(records: Sequence[Record], x: Column, y: Column = "value") -> Points:
    """The mean of y over the draws at each x, sorted; places where no record has y are left out."""
    groups = {at: estimate(group, y) for (at,), group in grouped(records, lambda one: value_of(one, x)).items()}
    return sorted(((at, value) for at, value in groups.items() if value is not None), key=lambda point: point[0])


def curves_of(records: Sequence[Record], name: Column, x: Column, y: Column = "value") -> dict[str, Points]:
    """`points_of` by the name of their series."""
    curves = {
        key: points_of(group, x, y) for (key,), group in grouped(records, lambda one: value_of(one, name)).items()
    }
    return {key: points for key, points in curves.items() if points}


def _departures(records: Sequence[Record]) -> Figures:
    """S of each protocol over that of the definition, against n; Err of each against its gamma, with (2 - gamma)²."""
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
            sizes = list(defined.by_size)
            of_s.append(Panel(map_title(name), curves, {"as defined": [(sizes[0], 1.0), (sizes[-1], 1.0)]}))
        places: dict[str, Points] = {}
        for protocol, one in protocols.items():
            gamma, error = estimate(one.errors, "gamma"), estimate(one.errors)
            if gamma is not None and error is not None:
                places[PROTOCOLS[protocol].title] = [(gamma.mean, error)]
        theorem = [(2 * at / 40, (2 - 2 * at / 40) ** 2) for at in range(41)]
        top = max((1.05 * (v.mean + 2 * v.error) for points in places.values() for _, v in points), default=0.0)
        guides = {"(2 − γ)², below which random features do not come": theorem}
        of_errors.append(
            Panel(map_title(name), places, guides, limits=(0.0, max(4.4, top)), scattered=frozenset(places))
        )
    gammas = "γ: how well the model before told the two texts apart"
    return {
        "departures": grid(
            "What the published protocol does to S, switch by switch",
            *(of_s, styles, ("words in the text", "S / S as defined")),
            logarithmic=(True, False),
            share_y=False,
            caption="Marks are means over draws of the ratio to S as defined of the same draw; bars are two standard "
            "errors.",
        ),
        "departures-error": grid(
            "What the published protocol does to the error",
            *(of_errors, styles, (gammas, "error on the changed text")),
            caption=f"{BARS} As defined: the least error attained with γ below 0.5.",
        ),
    }


def _correlations(records: Sequence[Record]) -> Figures:
    """S against the words' measured mean cosine, a panel a map."""
    joined = (CORRELATED, "repeated")

    def name(record: Record) -> str:
        if record.text == CORRELATED:
            return "equally correlated words"
        return texts_title(record) if record.text not in joined else text_title(record.text)

    ordered = by_cosine(records)
    drawn = []
    for (recorded,), group in grouped(ordered, "map").items():
        curves = curves_of(group, name, "cosine")
        single_places = frozenset(name(one) for one in group if one.text not in joined)
        top = max(value.mean + 2 * value.error for points in curves.values() for _, value in points)
        title = f"{map_title(recorded)}, {group[0].n} words"
        drawn.append(Panel(title, curves, limits=(0.0, 1.15 * top), scattered=single_places))
    figure = grid(
        "Word sensitivity against the words' mean cosine",
        *(drawn, styles_of(map(name, ordered)), ("mean cosine of two words", "word sensitivity S")),
        share_y=False,
        caption=f"{BARS} Every panel has its own scale.",
    )
    return {"correlations": figure}


def _several_words(records: Sequence[Record]) -> Figures:
    """S against the number of words that move at once, a panel a kind of text and n."""
    ordered = never_falling(records)
    maps = [map_title(name) for (name,) in grouped(as_records(records), "map")]
    keys = [(map_title(name), name) for (name,) in grouped(as_records(records), "map")]
    styles = dict(zip(maps, series_styles(keys), strict=True))
    drawn = []
    for (text, n), part in grouped(ordered, "text", "n").items():
        guides: dict[str, list[tuple[float, float]]] = {
            "half the features' norm": [(1.0, NOTICED), (float(ordered[-1].count), NOTICED)]
        }
        bands = {}
        for (name,), group in grouped(part, "map").items():
            uppers = [(k, estimate(one), estimate(one, "upper")) for (k,), one in grouped(group, "count").items()]
            band = [
                (k, value.mean, upper.mean) for k, value, upper in uppers if value is not None and upper is not None
            ]
            bands |= {map_title(name): band} if band else {}
        curves = curves_of(part, lambda one: map_title(one.map), "count")
        drawn.append(Panel(f"{text_title(text).capitalize()}, {n} words", curves, guides, bands))
    figure = grid(
        "Sensitivity to several words at once",
        *(drawn, styles, ("words that move at once", "sensitivity S")),
        logarithmic=(True, True),
        caption=f"{BARS} Shaded up to the upper bound over every set of so many words, where there is one.",
    )
    return {"several-words": figure}


def _similarity(records: Sequence[Record]) -> Figures:
    """AUC and S against the length, AUC against S, and the pairs of check."""
    swaps, check = of_pairs(records, SWAPS), of_pairs(records, CHECK)
    searched = [one for one in swaps if one.sensitivity is not None]
    whole = (-0.03, 1.03)

    def maps(layers: bool) -> str:
        return "layers" if layers else "random maps"

    def coin(places: Iterable[float]) -> dict[str, list[tuple[float, float]]]:
        first, last = min(places := list(places)), max(places)
        first, last = (first / 2, 2 * last) if first == last else (first, last)
        return {"a coin": [(first, 0.5), (last, 0.5)]}

    titles = {features_title(one): None if learned(one) else one.map for one in (*swaps, *check)}
    styles = dict(zip(titles, series_styles(list(titles.items())), strict=True))
    along_n, against_s, of_check = [], [], []
    for (text, layers), group in grouped(swaps, "text", learned).items():
        title = f"{maps(layers)}, {text_title(text)}"
        guides = coin(one.n for one in group)
        along_n.append(Panel(f"AUC: {title}", curves_of(group, features_title, "n"), guides, limits=whole))
        along_n.append(Panel(f"S: {title}", curves_of(group, features_title, "n", "sensitivity")))
    for (text, layers), group in grouped(searched, "text", learned).items():
        curves: dict[str, Points] = defaultdict(list)
        for (name, _), part in grouped(group, features_title, "n").items():
            s, value = estimate(part, "sensitivity"), estimate(part)
            if s is not None and value is not None:
                curves[name].append((float(f"{s.mean:.3g}"), value))
        guides = coin(x for points in curves.values() for x, _ in points)
        title = f"{maps(layers).capitalize()}, {text_title(text)}"
        against_s.append(Panel(title, dict(curves), guides, scattered=frozenset(curves)))
    for name, column in (("paraphrases", "value"), ("synonyms", "auc_synonym")):
        for (layers,), group in grouped(check, learned).items():
            title = f"{maps(layers).capitalize()}, against {name}"
            curves = curves_of(group, features_title, "n", column)
            of_check.append(Panel(title, curves, coin(one.n for one in group), limits=whole))
    return {
        "similarity": grid(
            "Is a flipped meaning less alike than a synonym?",
            *(along_n, styles, ("words of a passage", "")),
            logarithmic=(True, False),
            share_y=False,
            caption=f"{BARS} AUC: the chance that it is, by the cosine of the features. S: of one passage, attained by "
            "a short search of a few words.",
        ),
        "similarity-sensitivity": grid(
            "Does the AUC follow the sensitivity?",
            *(against_s, styles, ("word sensitivity S", "AUC")),
            logarithmic=(True, False),
            caption=f"{BARS} A mark a length, at the mean of S.",
        ),
        "similarity-check": grid(
            "Pairs of check: are opposites less alike than pairs that mean the same?",
            *(of_check, styles, ("rows of the longest text", "AUC")),
            logarithmic=(True, False),
            caption="Marks are means over draws of weights on the same pairs; bars are two standard errors.",
        ),
    }


def _control(records: Sequence[Record]) -> Figures:
    """Trainings under control: along the length, against a target, accuracy against S, by layer, along the training."""
    plain = [one for one in uncontrolled(records) if one.task != "texts"]
    plain = plain if len({one.n for one in plain}) > 1 else []
    sizes = [one.n for one in plain]
    styles = styles_of(map(network_title, [*uncontrolled(records), *held(records), *stacked(records)]))
    accuracy, s_of_n = [], []
    for (task,), group in grouped(plain, "task").items():
        chance = {"chance": [(float(min(sizes)), 0.5), (float(max(sizes)), 0.5)]}
        curves = curves_of(group, network_title, "n")
        accuracy.append(Panel(_task_title(task), curves, chance, limits=(0.4, 1.03)))
        if task == "majority":
            robust = curves_of(group, network_title, "n", "robust")
            accuracy.append(Panel(f"{_task_title(task)}: right while a word moves", robust, limits=(-0.03, 1.03)))
        s_of_n.append(Panel(_task_title(task), curves_of(group, network_title, "n", "sensitivity")))
    targeted = held(records)
    targets = [one.target or 0.0 for one in targeted]
    on_target = [
        Panel(
            _task_title(task),
            curves_of(group, network_title, lambda one: one.target or 0.0, "sensitivity"),
            {"the target": [(at, at) for at in (min(targets), max(targets))]},
        )
        for (task,), group in grouped(targeted if len(set(targets)) > 1 else [], "task").items()
    ]
    layers = [
        Panel(f"{'Trained' if trained else 'Random'}, {n} words", _layer_curves(group))
        for (trained, n), group in sorted(grouped(stacked(records), lambda one: one.steps > 0, "n").items())
    ]
    steps = "steps of the training + 1"
    tradeoff, controls = _tradeoff(records)
    quality, along_s, training = _along_training(records)
    measured_s = f"{BARS} Attained by the full search, on held-out texts."
    return {
        "control-accuracy": grid(
            "Accuracy against the length of the text",
            *(accuracy, styles, ("words of a text n", "accuracy")),
            logarithmic=(True, False),
            share_y=False,
        ),
        "control-sensitivity": grid(
            "Sensitivity of trained networks against the length",
            *(s_of_n, styles, ("words of a text n", "word sensitivity S")),
            logarithmic=(True, True),
            caption=measured_s,
        ),
        "control-target": grid(
            "Sensitivity held at a target",
            *(on_target, styles, ("target of S", "S, measured")),
            logarithmic=(True, True),
            caption=f"{BARS} S is attained by the full search; the penalty holds what its short search attains, which "
            "is less.",
        ),
        "control-tradeoff": grid(
            "Accuracy against sensitivity, by control",
            *(tradeoff, controls, ("word sensitivity S", "accuracy")),
            logarithmic=(True, False),
            share_y=False,
            caption=f"{BARS} S is the mean over draws of what the full search attains.",
        ),
        "control-layers": grid(
            "Sensitivity after each layer",
            *(layers, styles, ("layer", "S")),
            logarithmic=(False, True),
            caption=f"{BARS} S of all rows after a layer, attained by the full search.",
        ),
        "control-along": grid(
            "Along the training",
            *(quality, styles_of(ALONG), (steps, "share, or AUC")),
            logarithmic=(True, False),
            caption=f"{BARS} Synonyms kept: copies whose label stays. Flips told: AUC of the change by a flip against "
            "that by a synonym. New words: a linear function of the features on a one-word task of another vocabulary.",
        ),
        "control-along-sensitivity": grid(
            "Sensitivity along the training",
            *(along_s, training, (steps, "word sensitivity S")),
            logarithmic=(True, True),
            caption=f"{BARS} Attained by the full search on two held-out texts.",
        ),
    }


def _task_title(task: str) -> str:
    return TASK_TITLES[task].capitalize()


def _layer_curves(records: Sequence[Record]) -> dict[str, Points]:
    curves = {}
    for (name,), group in grouped(records, network_title).items():
        values = [one.by_layer for one in group if one.by_layer is not None]
        curves[name] = [(at, Estimate.of([one[at - 1] for one in values])) for at in range(1, len(values[0]) + 1)]
    return curves


def _tradeoff(records: Sequence[Record]) -> tuple[list[Panel], dict[str, Style]]:
    """Accuracy against S: a curve through the targets, the other controls beside it."""
    at_target = "held at a target"

    def name(record: Record) -> str:
        return at_target if record.control == HOLD else control_title(record)

    sizes = {(one.task, one.n, one.layer) for one in held(records)}
    group = [one for one in single(records) if (one.task, one.n, one.layer) in sizes]
    drawn = []
    for (task, _), part in grouped(group, "task", "layer").items():
        curves: dict[str, Points] = defaultdict(list)
        for draws in grouped(part, "control", "target").values():
            s, value = estimate(draws, "sensitivity"), estimate(draws)
            if s is not None and value is not None:
                curves[name(draws[0])].append((float(f"{s.mean:.3g}"), value))
        curves = {control: sorted(points, key=lambda point: point[0]) for control, points in curves.items()}
        least = min(value.mean - 2 * value.error for points in curves.values() for _, value in points)
        limits = (min(least, 0.9) - 0.02, 1.02)
        title = f"{_task_title(task)}: {network_title(part[0])}"
        drawn.append(Panel(title, curves, limits=limits, scattered=frozenset(curves) - {at_target}))
    return drawn, styles_of(map(name, group))


def _along_training(records: Sequence[Record]) -> tuple[list[Panel], list[Panel], dict[str, Style]]:
    """Shares and areas between 0 and 1 along the training, without control; and S along it, with its styles."""

    def name(record: Record) -> str:
        plain = network_title(record)
        return plain if record.control == "none" else f"{plain}, {control_title(record)}"

    def in_order(key: tuple[Any, ...]) -> tuple[Any, ...]:
        return list(TASK_TITLES).index(key[0]), *key[1:]

    trained = along_training(records)
    quality, of_s = [], []
    groups = grouped([one for one in trained if one.control == "none"], "task", "layer", "n")
    for task, layer, n in sorted(groups, key=in_order):
        group = groups[task, layer, n]
        curves = {title: _steps(group, column) for title, column in ALONG.items() if title != "S"}
        title = f"{_task_title(task)}: {network_title(group[0])}, {n} words"
        quality.append(Panel(title, {key: points for key, points in curves.items() if points}, limits=(0.4, 1.03)))
    groups = grouped(trained, "task", "n")
    for task, n in sorted(groups, key=in_order):
        by_name = sorted(grouped(groups[task, n], name).items())
        curves = {key: points for (key,), part in by_name if (points := _steps(part, "along_sensitivity"))}
        of_s.append(Panel(f"{_task_title(task)}, {n} words", curves))
    return quality, of_s, styles_of(sorted(map(name, trained)))


def _steps(records: Sequence[Record], column: str) -> Points:
    """The mean over draws at each step; none where a record lacks the column."""
    results: dict[int, list[float]] = defaultdict(list)
    for one in records:
        for step, value in zip(one.along_steps or (), getattr(one, column) or (), strict=False):
            results[step].append(value)
    return [(step + 1, Estimate.of(values)) for step, values in sorted(results.items())]


_MEASURES = {
    "removal": "taken out",
    "sensitivity": "moved as far as it can be",
    "swap": "swapped for the best real word",
}


def _audit(records: Sequence[Record]) -> Figures:
    """The relative change of the output against the text's tokens, a mark a measured word."""
    words = [(text.tokens, word) for text in map(audited, records) for word in text.measured]
    measures = [name for name in _MEASURES if any(getattr(word, name) > 0 for _, word in words)]
    if not measures:
        return {}
    figure, axes = panels([f"A word is {_MEASURES[name]}" for name in measures], entries=len(KINDS), share_y=False)
    for panel, name in zip(axes, measures, strict=True):
        for kind, (colour, marker, _) in styles_of(KINDS).items():
            group = [(n, word) for n, word in words if kind_of(word.word) == kind and getattr(word, name) > 0]
            if group:
                places = [n for n, _ in group], [getattr(word, name) for _, word in group]
                drawn = panel.scatter(*places, s=9, color=colour, marker=marker, alpha=0.7, linewidths=0, label=kind)
                swapped = [f" for “{word.swapped_for}”" * (name == "swap") for _, word in group]
                tell(panel, drawn, [f"“{word.word}”{to}" for (_, word), to in zip(group, swapped, strict=True)])
        values = [getattr(word, name) for _, word in words if getattr(word, name) > 0]
        log_axes(panel, [n for n, _ in words], (min(values) / 1.2, max(values) * 1.2))
        panel.set_xlabel("tokens in the text")
    axes[0].set_ylabel("change of the output, relative")
    legend_below(figure, axes)
    figure.suptitle("What one word does to its text")
    figure.caption = "Each mark is a word: how far the output moves, relative to its size."
    return {"audit": figure}


_FIGURES: dict[str, Callable[[Sequence[Record]], Figures]] = {
    "sensitivity": _sensitivity,
    "generalization": _generalization,
    "attention": _attention,
    "audit": _audit,
    "departures": _departures,
    "correlations": _correlations,
    "several-words": _several_words,
    "similarity": _similarity,
    "control": _control,
}
