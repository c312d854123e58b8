"""What an advice on length says."""

from wordsens.display.view import Table, View
from wordsens.evaluation.length import LengthAdvice


def answer(advice: LengthAdvice) -> str:
    """One sentence: the length, with its interval, or why there is none."""
    article = "an" if advice.kind[0] in "aeiou" else "a"
    must = f"if {article} {advice.kind} must bring the cosine under {advice.threshold:g}"
    low = "up" if advice.low is None else advice.low
    high = f"more than {advice.longest}" if advice.high is None else advice.high
    interval = f"95 %: {low} to {high}"
    if advice.length is None:
        return f"no length can be given {must}: {advice.reason} ({interval})"
    uncertain = "; too uncertain to act on, give more texts or pairs" * (not advice.decisive)
    return f"at most {advice.length} {advice.unit} ({interval}) {must}{uncertain}"


def view(advice: LengthAdvice) -> View:
    """The sentence, one row per length with the median at each place, and the advice by place."""
    note = f"{advice.changes} changed sentences of {advice.source}; median cosine distance."
    lengths = Table("", advice.columns(), note=note)
    places = Table(
        f"The longest passage in {advice.unit}, by the place of the change", advice.places
    )
    return View(f"{advice.model}: {answer(advice)}", (lengths, places))
