"""The names of texts in tables, figures and sentences, and the fitted exponents in words."""

from collections.abc import Sequence

from wordsens.experiments.sensitivity.summary import Series
from wordsens.maps.registry import map_title
from wordsens.statistics.power_law import PowerLaw
from wordsens.statistics.trend import Trend

_TEXTS = {
    "reviews": "movie reviews",
    "dataset": "the dataset",
    "given": "the text",
    "gaussian": "Gaussian texts",
    "orthogonal": "orthogonal texts",
    "correlated": "correlated texts",
    "repeated": "texts of repeated words",
}


NOT_COMPARED = "predicted at sizes at which that was not compared with measurements, or by a version that did not say"


def text_title(kind: str) -> str:
    """The name of a record's kind of text."""
    return _TEXTS.get(kind, kind)


def text_and_keys(series: Series) -> str:
    """The name of a series' texts, with the keys that tell it from others of its map.

    >>> text_and_keys(Series("raf", "gaussian", 8, (), None, 1, 4, True, 1.0, varied=("temperature = 0.5",)))
    'Gaussian texts at temperature = 0.5'
    """
    return text_title(series.text) + (f" at {', '.join(series.varied)}" if series.varied else "")


def exponent_text(fit: PowerLaw | None) -> str:
    """The exponent with its standard error.

    >>> exponent_text(PowerLaw(exponent=-0.512, standard_error=0.013, constant=1.0))
    '-0.512 ± 0.013'
    """
    return "too few points" if fit is None else f"{fit.exponent:.3f} ± {fit.standard_error:.3f}"


def findings(series: Sequence[Series]) -> list[str]:
    """Sentences about the exponents, no surer than their intervals allow; ReLU against softmax attention; and
    how far the upper bounds lie above what is attained."""
    fitted = [(one, one.fit) for one in series if one.fit is not None]
    maps = dict.fromkeys(one.map for one, _ in fitted)
    sentences = [_about([one for one, _ in fitted if one.map == name]) for name in maps]
    return sentences + _comparison(fitted) + _brackets(series)


_Fitted = tuple[Series, PowerLaw]


def _about(series: Sequence[Series]) -> str:
    """One sentence about one map: what S does with n, each exponent with its interval."""
    by_behaviour: dict[str, list[str]] = {}
    for one in series:
        if (law := Trend.of(one.fit, one.interval)) is not None:
            place = f"{law.told} on {text_and_keys(one)}, d = {one.d}"
            by_behaviour.setdefault(law.behaviour, []).append(place)
    listed = "; ".join(f"S {how}: {' and '.join(places)}" for how, places in by_behaviour.items())
    last = max(one.points[-1].n for one in series)
    means = [one.points[-1].mean for one in series if one.points[-1].n == last]
    size = " to ".join(dict.fromkeys(f"{value:.2g}" for value in (min(means), max(means))))
    return (
        f"{map_title(series[0].map)}: {listed}. At n = {last} one word moves the features by {size} times their norm."
    )


def _brackets(series: Sequence[Series]) -> list[str]:
    """The upper bounds over the attained values, map by map: medians over n, from series to series."""
    ratios: dict[str, list[float]] = {}
    for one in series:
        if one.bracket_ratio is not None:
            ratios.setdefault(map_title(one.map), []).append(one.bracket_ratio)
    told = [
        f"{name} {' to '.join(dict.fromkeys(f'{value:.2f}' for value in (min(own), max(own))))}"
        for name, own in ratios.items()
    ]
    return (
        [f"No perturbation goes beyond the upper bounds, which are so many times S: {'; '.join(told)}."] if told else []
    )


def _comparison(fitted: Sequence[_Fitted]) -> list[str]:
    """ReLU attention against softmax attention: the difference of the exponents on like texts."""
    softmax = {(one.text, one.d, one.varied): fit for one, fit in fitted if one.map == "raf"}
    gaps = []
    for one, relu in fitted:
        if one.map == "relu-raf" and (other := softmax.get((one.text, one.d, one.varied))) is not None:
            gap = other.exponent - relu.exponent
            error = (other.standard_error**2 + relu.standard_error**2) ** 0.5
            how = "no faster" if gap <= 2 * error else f"faster by {gap:.2f} ± {error:.2f} in the exponent"
            gaps.append(f"{how} on {text_and_keys(one)} (d = {one.d})")
    return [f"Against softmax attention, ReLU attention falls {'; '.join(gaps)}."] if gaps else []
