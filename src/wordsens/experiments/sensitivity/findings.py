"""The names of texts in tables, figures and sentences, and the fitted exponents in words."""

from collections.abc import Sequence

from wordsens.experiments.sensitivity.summary import Series
from wordsens.maps.registry import map_title
from wordsens.statistics.power_law import PowerLaw

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
    """Sentences that say what the exponents show: one for each kind of map, and ReLU against softmax attention."""
    fitted = [(one, one.fit) for one in series if one.fit is not None]
    families = dict.fromkeys(_family(one.map) for one, _ in fitted)
    sentences = [_about([pair for pair in fitted if _family(pair[0].map) == family]) for family in families]
    return sentences + _comparison(fitted)


_Fitted = tuple[Series, PowerLaw]


def _family(name: str) -> str:
    return "drf" if name.startswith("drf") else name


def _about(fitted: Sequence[_Fitted]) -> str:
    """One sentence about one map, or about the depths of DRF together."""
    names = list(dict.fromkeys(map_title(one.map) for one, _ in fitted))
    name = names[0] if len(names) == 1 else "DRF, L = " + ", ".join(title.rpartition(" ")[2] for title in names)
    by_behaviour: dict[str, dict[str, None]] = {}
    for one, fit in fitted:
        by_behaviour.setdefault(_behaviour(fit), {})[text_and_keys(one)] = None
    listed = "; ".join(f"S {how} on {' and '.join(texts)}" for how, texts in by_behaviour.items())
    last = max(one.points[-1].n for one, _ in fitted)
    means = [one.points[-1].mean for one, _ in fitted if one.points[-1].n == last]
    size = " to ".join(dict.fromkeys(f"{value:.2g}" for value in (min(means), max(means))))
    return f"{name}: {listed}. At n = {last} one word moves the features by {size} times their norm."


def _behaviour(fit: PowerLaw) -> str:
    """In words; what lies within 0.15 of -1/2 or of 0 counts as one of the theory's two rates."""
    if abs(fit.exponent + 0.5) < 0.15:
        return "falls about as 1/sqrt(n)"
    if abs(fit.exponent) < 0.15:
        return "hardly changes with n"
    return f"{'falls' if fit.exponent < 0 else 'grows'} as n^{fit.exponent:.2f}"


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
