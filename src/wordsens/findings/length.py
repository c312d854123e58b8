"""What an advice on length says."""

from wordsens.display.view import Table, View
from wordsens.evaluation.length import LengthAdvice, PlaceAdvice


def answer(advice: LengthAdvice) -> str:
    """One sentence: the length, with its interval, or why there is none."""
    article = "an" if advice.kind[0] in "aeiou" else "a"
    must = f"if {article} {advice.kind} must bring the cosine under {advice.threshold:g}"
    if advice.length is None:
        known = ""
        if advice.low is not None:
            known = f" (95 %: {advice.low} or more)"
        elif advice.high is not None:
            known = f" (95 %: {advice.high} or fewer)"
        return f"no length can be given {must}: {advice.reason}{known}"
    low = "any" if advice.low is None else advice.low
    high = f"more than {advice.longest}" if advice.high is None else advice.high
    sentence = f"at most {advice.length} {advice.unit} (95 %: {low} to {high}) {must}"
    uncertain = "; too uncertain to act on, give more texts or pairs"
    return sentence if advice.decisive else f"{sentence}{uncertain}"


def view(advice: LengthAdvice) -> View:
    """The sentence, and one row per length: the median at each place."""
    source = f"{advice.changes} changed sentences of {advice.source}; median cosine distance"
    notes = [f"{place.place}: {_of_place(place, advice.unit)}" for place in advice.places]
    table = Table("", advice.columns())
    return View(f"{advice.model}: {advice.advice}", (table,), notes=(source, *notes))


def _of_place(place: PlaceAdvice, unit: str) -> str:
    if place.length is None:
        return str(place.reason)
    low = "any" if place.low is None else place.low
    high = "no end measured" if place.high is None else place.high
    return f"{place.length} {unit} ({low} to {high})"
