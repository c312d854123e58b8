"""What results of sensitivity say: sentences, and the headings of their tables."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import zip_longest
from statistics import median
from typing import Any

from wordsens.certificates.base import CERTIFIED, Certificate
from wordsens.display.content import (
    Display,
    Finding,
    Section,
    Shade,
    Strong,
    Table,
    colour_share,
    level,
    table_of,
)
from wordsens.display.result_table import ResultTable
from wordsens.maps.attention_pair import AttentionPair
from wordsens.maps.registry import MAPS, base_name, map_title
from wordsens.maps.transformer.prompt_pair import PromptPair
from wordsens.sensitivity.jacobian import JacobianSensitivity
from wordsens.sensitivity.removals import Removals
from wordsens.sensitivity.result import MeasuredMap, Sensitivity, SensitivityProfile
from wordsens.sensitivity.several_words import GroupSensitivity, WholeWordSensitivity
from wordsens.sensitivity.substitution import SubstitutionSensitivity
from wordsens.sensitivity.swaps import Swaps
from wordsens.sensitivity.theorem_witness import TheoremWitness


def answer(results: Sequence[Sensitivity]) -> str:
    """The first sentence about one text: how far one word can move each map, and attention beside a
    fully connected layer."""
    values = [(result.map_name, result.value) for result in results]
    if (finding := contrast([values])) is not None:
        return finding.sentence
    word = f"; most of all {results[0].token!r}" if len(results) == 1 else ""
    return f"One word can move {_listed(values)} times its size{word}."


def contrast(texts: Sequence[Sequence[tuple[str, float]]]) -> Finding | None:
    """Attention beside a fully connected layer, from maps and their S on each text; None where a
    text lacks one.

    >>> finding = contrast([[("rf", 0.3), ("raf", 3.6)]])
    >>> round(finding.value, 6), finding.sentence.partition(":")[0]
    (12.0, 'With random weights one word can move attention 12 times as far as a fully connected layer')
    """  # noqa: E501
    ratios = []
    for values in texts:
        families = {
            MAPS[base].family: value
            for name, value in reversed(values)
            if (base := base_name(name)) in MAPS
        }
        if "attention" not in families or not families.get("dense", 0.0) > 0:
            return None
        ratios.append(families["attention"] / families["dense"])
    where = f": {_listed(texts[0])} times its size."
    if len(texts) > 1:
        where = (
            f" in the median of {len(texts)} texts; {_short(min(ratios))} to "
            f"{_short(max(ratios))} times in each."
        )
    number = f"{_short(median(ratios))} times"
    sentence = (
        f"With random weights one word can move attention {number} as far as a fully "
        f"connected layer{where}"
    )
    return Finding(number, sentence, "Lower bounds.", value=median(ratios))


def _listed(values: Sequence[tuple[str, float]]) -> str:
    each = [f"{map_title(name)} {_short(value)}" for name, value in values]
    return each[0] if len(each) == 1 else f"{', '.join(each[:-1])} and {each[-1]}"


def _short(value: float) -> str:
    """
    >>> _short(2.8076), _short(0.0812), _short(12.4)
    ('2.8', '0.081', '12')
    """
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


SHOWN_WORDS = 40
"""Longer texts show this many words, the most sensitive ones, unless all are wanted."""

_DETAILS = {
    "small_radius": "S/radius at 0 is its limit as the radius shrinks; left out where matrices are "
    "not built.",
    "swaps": "Real word: the farthest of the vocabulary in its place; left out where matrices are "
    "not built.",
}


def _title(measured: MeasuredMap) -> str:
    return map_title(measured.result.map_name)


def text_display(
    measured: Sequence[MeasuredMap],
    *,
    all_words: bool = False,
    verbose: bool = False,
    conditions: bool = False,
) -> Display:
    """One text: the answer, a table of words and maps, notes; all measures and the theorems'
    conditions, if wanted."""
    results = [each.result for each in measured]
    parts: list[Any] = [_word_table(measured, all_words=all_words, verbose=verbose)]
    parts += [profile_table(each.profile) for each in measured if each.profile is not None]
    if conditions:
        parts += [
            Section(
                f"Conditions of the theorem about {_title(each)}", tuple(map(str, each.conditions))
            )
            for each in measured
        ]
    return Display((answer(results),), tuple(parts), notes=_notes([measured], verbose=verbose))


def texts_display(texts: Sequence[Sequence[MeasuredMap]], *, verbose: bool = False) -> Display:
    """Several texts: one row a text and map."""
    rows = [
        (
            *((each.text.source, str(len(each.text))) if place == 0 else ("", "")),
            _title(each),
            _number(each.result.value),
            f"{each.result.word} {each.result.token}",
            _number(each.result.upper),
        )
        for measured in texts
        for place, each in enumerate(measured)
    ]
    width = 6 if any(row[-1] for row in rows) else 5
    headings = ("text", "n", "map", "S", "word", "at most")[:width]
    table = Table("", headings, tuple(row[:width] for row in rows), _meaning(texts), most=len(rows))
    sentence = f"The most that one word can move {len(texts)} texts"
    return Display((sentence,), (table,), notes=_notes(texts, verbose=verbose))


def _word_table(measured: Sequence[MeasuredMap], *, all_words: bool, verbose: bool) -> Table:
    """The searched words in reading order, and below them each map's S, its bound, its prediction
    and its cost."""
    results = [each.result for each in measured]
    words = searched = sorted({word for result in results for word in result.words.tolist()})
    if (
        not all_words and len(searched) > SHOWN_WORDS
    ):  # the first of each map's ranking, then the second of each, ...
        rankings = [
            result.words[result.per_word.argsort(descending=True)].tolist() for result in results
        ]
        by_rank = [word for rank in zip_longest(*rankings) for word in rank if word is not None]
        words = sorted(list(dict.fromkeys(by_rank))[:SHOWN_WORDS])
    columns: list[tuple[str, list[Any]]] = [
        ("", [str(word) for word in words]),
        ("word", [measured[0].text.word(word) for word in words]),
    ]
    summaries: list[list[str]] = [
        ["S", "S at most", "predicted", "S/radius at 0", "evaluations", "seconds"]
    ]
    summaries.insert(0, [""] * len(summaries[0]))
    for each in measured:
        result = each.result
        places = [
            place[0] if (place := (result.words == word).nonzero().flatten().tolist()) else None
            for word in words
        ]
        shades = [None if place is None else _shade(result, place) for place in places]
        predicted = _number(each.predicted and each.predicted.value)
        summary = [
            _number(result.value),
            _number(result.upper),
            predicted if each.predicted is None or each.predicted.in_range else f"~{predicted}",
            _number(max(each.small_radius or (), default=None)),
            str(result.evaluations) if verbose else "",
            f"{each.seconds:.2f}" if verbose else "",
        ]
        columns.append((_title(each), shades))
        summaries.append(summary)
        if verbose and (bounds := result.upper_per_word) is not None:
            columns.append(
                (
                    "at most",
                    [None if place is None else _number(float(bounds[place])) for place in places],
                )
            )
        if each.swaps is not None:
            changes, names = each.swaps
            real = [
                None if place is None else f"{_number(changes[place])} {names[place]}"
                for place in places
            ]
            columns.append(("real word", real))
        summaries += [[""] * len(summary)] * (len(columns) - len(summaries))
    rows = [*zip(*(column for _, column in columns), strict=True)]
    rows += [
        tuple(Strong(cell) if row[1] == "S" else cell for cell in row)
        for row in zip(*summaries, strict=True)
        if any(row[2:])
    ]
    left_out = len(searched) - len(words)
    note = f"... and {left_out} less sensitive words; --all-words shows them. " if left_out else ""
    return Table(
        "",
        tuple(name for name, _ in columns),
        tuple(rows),
        note + _meaning([measured]),
        most=len(rows),
    )


def profile_table(profile: SensitivityProfile) -> Table:
    """All measures of one text under one map."""
    columns = profile.columns()
    for name in ("value", "standard error"):
        columns[name] = [_number(number) for number in columns[name]]
    columns["radius"] = ["" if radius is None else f"{radius:.3g}" for radius in columns["radius"]]
    notes = " ".join(_of_profile(profile).notes)
    return table_of(f"All measures of {map_title(profile.map_name)}", columns, note=notes)


def profile_display(profile: SensitivityProfile) -> Display:
    """The table of a profile, in a notebook."""
    return Display((_of_profile(profile).heading,), (replace(profile_table(profile), title=""),))


def _of_profile(profile: SensitivityProfile) -> ResultTable:
    heading = f"{map_title(profile.map_name)}: {len(profile.measures)} measures of one text"
    notes = [
        "Radius 0: the limit of small radii, times the radius. Average and block sensitivity are "
        "variances; block sensitivity is on average too small where it is an estimate."
    ]
    radii: dict[str, list[str]] = {}
    for bound in profile.lowest:
        radii.setdefault(bound.name, []).append(f"{bound.radius:.2g}")
    if radii:
        listed = "; ".join(
            f"{name} (at radius {', '.join(listed)})" for name, listed in radii.items()
        )
        notes.insert(0, f"Lowest upper bound of S: {listed}.")
    return ResultTable(heading, profile.columns(), notes=tuple(notes))


def _shade(result: Sensitivity, place: int) -> Shade:
    """The S of one word, coloured on one scale from 0."""
    value = float(result.per_word[place])
    return Shade(
        _number(value), level(colour_share(value)), decides=int(result.words[place]) == result.word
    )


def _meaning(texts: Sequence[Sequence[MeasuredMap]]) -> str:
    """What S is, and how the numbers are known."""
    results = [each.result for measured in texts for each in measured]
    radii = [float(radius) for result in results for radius in result.radius]
    low, high = min(radii), max(radii)
    size = f"{high:.3g}" if high - low <= 1e-9 * high else f"{low:.3g} to {high:.3g}"
    bounded = any(result.upper is not None for result in results)
    is_certified = bounded and all(result.rigor in (None, CERTIFIED) for result in results)
    certified = " 'At most' is certified." if is_certified else ""
    is_predicted = any(each.predicted is not None for measured in texts for each in measured)
    predicted = " 'Predicted' is theory for large d, and no bound." * is_predicted
    return (
        "S is how far the features move, over their size, when a word's vector moves by at most "
        f"{size}. It is "
        f"attained: a lower bound.{certified}{predicted}"
    )


def _notes(texts: Sequence[Sequence[MeasuredMap]], *, verbose: bool) -> tuple[str, ...]:
    """What a reader of the numbers has to know, the most important first: one line, or with
    `verbose` all."""
    measured = [each for text in texts for each in text]
    results = [each.result for each in measured]
    notes = [
        f"{_title(each)}: {len(each.result.words)} of {len(each.text)} words were searched."
        for each in measured
        if len(each.result.words) < len(each.text)
    ]
    weaker = {
        _title(each): each.result.rigor
        for each in measured
        if each.result.rigor not in (None, CERTIFIED)
    }
    if weaker:
        notes.append(
            "'At most' holds "
            + "; ".join(f"for {name} {rigor}" for name, rigor in weaker.items())
            + "."
        )
    notes += dict.fromkeys(note for result in results for note in result.notes)
    if running := sum(int((~result.converged).sum()) for result in results):
        total = sum(len(result.words) for result in results)
        notes.append(f"{searches_running(running, total)}{_remedy(results[0].search)}.")
    if not verbose:
        return (
            (f"{notes[0]} (--verbose: {len(notes) - 1} more)",) if len(notes) > 1 else tuple(notes)
        )
    predicted = {_title(each): each.predicted for each in measured if each.predicted is not None}
    if predicted and len(texts) == 1:
        listed = ", ".join(f"{prediction.of} for {name}" for name, prediction in predicted.items())
        notes.append(f"Predicted is {listed}.")
        outside = {
            name: ", ".join(prediction.outside)
            for name, prediction in predicted.items()
            if prediction.outside
        }
        if outside:
            listed = "; ".join(f"{name} at {sizes}" for name, sizes in outside.items())
            notes.append(
                f"~ marks predictions at sizes that were not compared with measurements: {listed}."
            )
    notes += [
        line
        for name, line in _DETAILS.items()
        if any(getattr(each, name) is not None for each in measured)
    ]
    return tuple(notes)


def searches_running(count: int, total: int) -> str:
    """How many searches had not converged."""
    return f"{count} of {total} searches (one per word and map) had not converged"


def _remedy(search: str) -> str:
    """What finds larger values where a search has not converged; nothing is known to after a
    thorough one."""
    if "steps=" in search:
        return "; more --steps may find larger values"
    return "" if search.startswith("thorough") else "; a wider --search may find larger values"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if value == 0 or abs(value) >= 0.01 else f"{value:.2e}"


def _of_words(result: Sensitivity) -> ResultTable:
    bound = "" if result.upper is None else f", none of these words more than {result.upper:.3g}"
    heading = (
        f"{map_title(result.map_name)}: word {result.word} {result.token!r} can move the output "
        f"{result.value:.3g} "
        f"times its size{bound}"
    )
    notes = result.notes if result.rigor is None else (f"upper: {result.rigor}", *result.notes)
    upper = None if result.upper_per_word is None else "upper"
    return ResultTable(heading, result.columns(), "sensitivity", "token", upper, notes)


def _of_groups(result: GroupSensitivity) -> ResultTable:
    words = ", ".join(map(str, result.group))
    heading = f"The words {words} together can move the output {result.value:.3g} times its size"
    if result.sets is not None:
        heading += f"; {result.searched} of {result.sets} sets searched"
    return ResultTable(heading, result.columns(), "sensitivity")


def _of_whole_words(result: WholeWordSensitivity) -> ResultTable:
    text = result.whole[result.words.index(result.word)].text
    heading = f"Word {result.word} {text!r} can move the output {result.value:.3g} times its size"
    return ResultTable(heading, result.columns(), "sensitivity", "text", notes=result.notes)


def _of_jacobian(result: JacobianSensitivity) -> ResultTable:
    heading = (
        f"A small step at one word moves the output at most {result.value:.3g} times its "
        "size a unit of length"
    )
    return ResultTable(heading, result.columns(), "sensitivity per radius")


def _of_swaps(result: Swaps) -> ResultTable:
    place = int((result.words == result.word).nonzero()[0])
    heading = (
        f"{result.swapped_for[place]!r} in the place of {result.tokens[place]!r} (word "
        f"{result.word}) moves the output "
        f"{result.value:.3g} times its size, "
        f"{'the most of all' if result.exact else 'the most that was tried'}"
    )
    return ResultTable(heading, result.columns(), "change", "token")


def _of_removals(result: Removals) -> ResultTable:
    removed = {"delete": "deleted", "mask": "masked"}[result.way]
    word = result.whole[int(result.per_word.argmax())].text
    heading = f"{word!r} {removed} moves the output most: {result.value:.3g} times its size"
    return ResultTable(heading, result.columns(), "change", "text")


def _of_substitutions(result: SubstitutionSensitivity) -> ResultTable:
    heading = (
        f"Words exchanged at random: average sensitivity {result.average}, block "
        "sensitivity "
        f"{result.block}"
    )
    return ResultTable(heading, result.columns())


def _of_theorem_witness(result: TheoremWitness) -> ResultTable:
    heading = (
        f"The theorem's change of word {result.word} moves the output {result.value:.3g} "
        "times its size"
    )
    return ResultTable(heading, result.columns())


def _of_certificate(bounds: Certificate) -> ResultTable:
    heading = (
        f"None of these words can move the output more than {bounds.value:.4g} times its "
        f"size ({bounds.rigor})"
    )
    return ResultTable(heading, bounds.columns(), "upper", notes=(bounds.method,))


def _of_attention_pair(pair: AttentionPair) -> ResultTable:
    head = "mean over the heads" if pair.head is None else f"head {pair.head}"
    return ResultTable(f"{pair.model}: attention of layer {pair.layer}, {head}", pair.columns())


def _of_prompt_pair(pair: PromptPair) -> ResultTable:
    return ResultTable(f"{pair.model}: probabilities of the answers", pair.columns())


TABLES: dict[type, Callable[[Any], ResultTable]] = {
    Sensitivity: _of_words,
    GroupSensitivity: _of_groups,
    WholeWordSensitivity: _of_whole_words,
    JacobianSensitivity: _of_jacobian,
    SensitivityProfile: _of_profile,
    Swaps: _of_swaps,
    Removals: _of_removals,
    SubstitutionSensitivity: _of_substitutions,
    TheoremWitness: _of_theorem_witness,
    Certificate: _of_certificate,
    AttentionPair: _of_attention_pair,
    PromptPair: _of_prompt_pair,
}
