"""What an advice on length says."""

from wordsens.evaluation.length import LengthAdvice, PlaceAdvice
from wordsens.results import ResultTable


def answer(advice: LengthAdvice) -> tuple[str, ...]:
    """One sentence: the length, with its interval, or why there is none."""
    article = "an" if advice.kind[0] in "aeiou" else "a"
    must = f"if {article} {advice.kind} must bring the cosine under {advice.threshold:g}"
    if advice.length is None:
        known = ""
        if advice.low is not None:
            known = f" (95 %: {advice.low} or more)"
        elif advice.high is not None:
            known = f" (95 %: {advice.high} or fewer)"
        return (f"no length can be given {must}: {advice.reason}{known}",)
    low = "any" if advice.low is None else advice.low
    high = f"more than {advice.longest}" if advice.high is None else advice.high
    sentence = f"at most {advice.length} {advice.unit} (95 %: {low} to {high}) {must}"
    return (
        sentence
        if advice.decisive
        else f"{sentence}; too uncertain to act on, give more texts or pairs",
    )


def table(advice: LengthAdvice) -> ResultTable:
    """A row a length: the median at each place."""
    source = f"{advice.changes} changed sentences of {advice.source}; median cosine distance"
    notes = [f"{place.place}: {_of_place(place, advice.unit)}" for place in advice.places]
    return ResultTable(f"{advice.model}: {advice.advice}", advice.columns(), notes=(source, *notes))


def _of_place(place: PlaceAdvice, unit: str) -> str:
    if place.length is None:
        return str(place.reason)
    low = "any" if place.low is None else place.low
    high = "no end measured" if place.high is None else place.high
    return f"{place.length} {unit} ({low} to {high})"
