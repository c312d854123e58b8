"""What maps and texts are called in tables, figures and sentences, and what the fitted exponents say."""

from collections.abc import Iterable, Sequence

from wordsens.experiments.map_choice import map_title
from wordsens.experiments.summary import PowerLaw, Series

_TEXTS = {
    "reviews": "movie reviews",
    "dataset": "the dataset",
    "gaussian": "Gaussian texts",
    "orthogonal": "orthogonal texts",
    "correlated": "correlated texts",
}


def text_title(kind: str) -> str:
    """What a record's kind of text is called."""
    return _TEXTS.get(kind, kind)


def exponent_text(fit: PowerLaw | None) -> str:
    """The exponent with its standard error.

    >>> exponent_text(PowerLaw(exponent=-0.512, standard_error=0.013, constant=1.0))
    '-0.512 ± 0.013'
    """
    return "too few points" if fit is None else f"{fit.exponent:.3f} ± {fit.standard_error:.3f}"


def findings(series: Sequence[Series]) -> list[str]:
    """Sentences that say what the exponents show: one for each map, and a comparison of ReLU with softmax attention."""
    fitted = [one for one in series if one.fit is not None]
    sentences = [
        _about(name, [one for one in fitted if one.map == name]) for name in dict.fromkeys(one.map for one in fitted)
    ]
    return sentences + _comparisons(fitted)


def _about(name: str, series: Iterable[Series]) -> str:
    parts = []
    for one in series:
        assert one.fit is not None
        last = one.points[-1]
        parts.append(
            f"on {text_title(one.text)} (d = {one.d}) S {_behaviour(one.fit)} (exponent {exponent_text(one.fit)}) "
            f"and is {last.mean:.2g} at n = {last.n}"
        )
    return f"{map_title(name)}: {'; '.join(parts)}."


def _behaviour(fit: PowerLaw) -> str:
    """In words; a band of 0.1 around -1/2 and of 0.15 around 0 count as the theory's two rates."""
    if abs(fit.exponent + 0.5) <= 0.1:
        return "falls about as 1/sqrt(n)"
    if abs(fit.exponent) < 0.15:
        return "hardly changes with n"
    return f"{'falls' if fit.exponent < 0 else 'grows'} as n^{fit.exponent:.2f}"


def _comparisons(fitted: Sequence[Series]) -> list[str]:
    sentences = []
    for softmax in (one for one in fitted if one.map == "raf"):
        for relu in (one for one in fitted if one.map == "relu-raf"):
            if (softmax.text, softmax.d) != (relu.text, relu.d) or softmax.fit is None or relu.fit is None:
                continue
            gap = softmax.fit.exponent - relu.fit.exponent
            error = (softmax.fit.standard_error**2 + relu.fit.standard_error**2) ** 0.5
            how = "faster than" if gap > 2 * error else "slower than" if gap < -2 * error else "about as fast as"
            sentences.append(
                f"On {text_title(softmax.text)} (d = {softmax.d}) ReLU attention falls {how} softmax attention: "
                f"its exponent is {abs(gap):.2f} ± {error:.2f} {'lower' if gap >= 0 else 'higher'}."
            )
    return sentences
