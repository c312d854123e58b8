"""Sentences about learning: does a model that just learned a text notice one changed word?"""

from collections.abc import Iterable, Sequence

from wordsens.errors import InputError
from wordsens.experiments.generalization.record import GeneralizationRecord
from wordsens.experiments.generalization.summary import LIMIT, GeneralizationSeries, summarise_generalization
from wordsens.experiments.sensitivity.findings import text_title
from wordsens.report.findings.finding import ATTAINED, INTERVAL, PREDICTED, Finding, times
from wordsens.report.findings.sensitivity import SYNTHETIC, plain_name
from wordsens.statistics.operating_point import share_interval

NOTICED = 1.0
"""Err below 1: the model's answer on the changed text has the sign of its new label."""


def generalization_findings(records: Iterable[GeneralizationRecord]) -> list[Finding]:
    """A sentence a map, text and training at the largest N, where a frontier was measured; what theory leaves."""
    try:
        series = summarise_generalization(records)
    except InputError as error:  # records that differ in more than these sentences tell
        return [Finding("", f"These records are not summarised in sentences: {error}.", "See the tables.", ())]
    largest: dict[tuple[str, str, int], dict[str, GeneralizationSeries]] = {}
    for one in series:
        if one.share_below(NOTICED) is not None:
            largest.setdefault((one.text, one.map, one.n), {})[one.training] = one
    groups = [list(own.values()) for own in largest.values()]
    groups.sort(key=lambda own: -min(one.share_below(NOTICED) or 0.0 for one in own))
    groups.sort(key=lambda own: own[0].text in SYNTHETIC)
    found = list(map(_about, groups))
    return [*found, _theory()] if found else []


def _about(series: Sequence[GeneralizationSeries]) -> Finding:
    """One map and length, with each training."""
    shares, medians = [], []
    for one in series:
        errors = one.least_errors[one.limits.index(LIMIT)]
        hits = sum(error < NOTICED for error in errors)
        low, high = share_interval(hits, len(errors))
        shares.append(f"in {hits} of {len(errors)} texts {one.training} ({low:.0%} to {high:.0%})")
        medians.append(f"{times(one.median() or 0.0)} {one.training}")
    first = series[0]
    sentence = (
        f"With {plain_name(first.map)}, one word could be changed so that a model that had just learned the text "
        f"notices, and gives the new label, {' and '.join(shares)}: {text_title(first.text)} of {first.n} words."
    )
    known = (
        f"Attained with γ below {LIMIT:g}: the model before hardly told the two texts apart. A wider search could find "
        f"more. N = {first.texts:,}; median least errors {', '.join(medians)}. In brackets: 95 % intervals, exact "
        "binomial."
    )
    least = min(one.share_below(NOTICED) or 0.0 for one in series)
    return Finding(f"{least:.0%}", sentence, known, (ATTAINED, INTERVAL))


def _theory() -> Finding:
    least = (2 - LIMIT) ** 2
    sentence = (
        f"Theory leaves fully connected random features no error below (2 − {LIMIT:g})² = {least:.2f} there, in the "
        "limit of wide layers and many words: they do not notice the change."
    )
    return Finding(f"{least:.2f}", sentence, "Predicted: Theorems 4 and 5, a limit.", (PREDICTED,))
