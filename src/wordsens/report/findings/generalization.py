"""Sentences about learning: does a model that just learned a text notice one changed word?"""

from collections.abc import Iterable

from wordsens.errors import InputError
from wordsens.experiments.generalization.record import GeneralizationRecord
from wordsens.experiments.generalization.summary import LIMIT, GeneralizationSeries, summarise_generalization
from wordsens.experiments.sensitivity.findings import text_title
from wordsens.report.findings.finding import ATTAINED, INTERVAL, PREDICTED, Finding, times
from wordsens.report.findings.sensitivity import plain_name
from wordsens.statistics.operating_point import share_at_most

NOTICED = 1.0
"""Err below 1: the model's answer on the changed text has the sign of its new label."""


def generalization_findings(records: Iterable[GeneralizationRecord]) -> list[Finding]:
    """A sentence a map, text and training at the largest N, where a frontier was measured; what theory leaves."""
    try:
        series = summarise_generalization(records)
    except InputError as error:  # records that differ in more than these sentences tell
        return [Finding("", f"These records are not summarised in sentences: {error}.", "See the tables.", ())]
    largest: dict[tuple[str, str, int, str], GeneralizationSeries] = {}
    for one in series:
        if one.share_below(NOTICED) is not None:
            largest[one.text, one.map, one.n, one.training] = one
    found = [_about(one) for one in sorted(largest.values(), key=lambda one: -(one.share_below(NOTICED) or 0.0))]
    return [*found, _theory()] if found else []


def share_interval(hits: int, trials: int) -> tuple[float, float]:
    """A 95 % interval of the share of hits (Clopper and Pearson): each end misses with a chance of at most 2.5 %.

    >>> [round(end, 3) for end in share_interval(0, 20)]
    [0.0, 0.168]
    """
    level = 0.975
    return 1 - share_at_most(trials - hits, trials, level), share_at_most(hits, trials, level)


def _about(series: GeneralizationSeries) -> Finding:
    errors = series.least_errors[series.limits.index(LIMIT)]
    hits = sum(error < NOTICED for error in errors)
    low, high = share_interval(hits, len(errors))
    sentence = (
        f"For {plain_name(series.map)}, {series.training}, a word was found that flips the answer in {hits} of "
        f"{len(errors)} texts ({hits / len(errors):.0%}; {low:.0%} to {high:.0%}), though the model before hardly told "
        f"the two apart (γ below {LIMIT:g}): {text_title(series.text)} of {series.n} words, N = {series.texts:,}, "
        f"median least error {times(series.median() or 0.0)}."
    )
    known = "Attained: a wider search could find more. Shares: 95 % interval, exact binomial."
    return Finding(f"{hits / len(errors):.0%}", sentence, known, (ATTAINED, INTERVAL))


def _theory() -> Finding:
    least = (2 - LIMIT) ** 2
    sentence = (
        f"Theory leaves fully connected random features no error below (2 − {LIMIT:g})² = {least:.2f} there, in the "
        "limit of wide layers and many words: they do not notice the change."
    )
    return Finding(f"{least:.2f}", sentence, "Predicted: Theorems 4 and 5, a limit.", (PREDICTED,))
