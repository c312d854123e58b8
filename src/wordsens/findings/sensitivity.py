"""What results of sensitivity say: sentences, and the headings of their tables."""

from collections.abc import Callable, Sequence
from typing import Any

from wordsens.certificates.base import Certificate
from wordsens.display.content import Finding
from wordsens.display.result_table import ResultTable
from wordsens.maps.attention_pair import AttentionPair
from wordsens.maps.registry import MAPS, base_name, map_title
from wordsens.maps.transformer.prompt_pair import PromptPair
from wordsens.sensitivity.jacobian import JacobianSensitivity
from wordsens.sensitivity.removals import Removals
from wordsens.sensitivity.result import Sensitivity
from wordsens.sensitivity.several_words import GroupSensitivity, WholeWordSensitivity
from wordsens.sensitivity.substitution import SubstitutionSensitivity
from wordsens.sensitivity.swaps import Swaps
from wordsens.sensitivity.theorem_witness import TheoremWitness


def answer(results: Sequence[Sensitivity]) -> str:
    """The first sentence about one text: how far one word can move each map, and attention beside a fully connected
    layer."""
    values = [(result.map_name, result.value) for result in results]
    if (finding := contrast(values)) is not None:
        return finding.sentence
    word = f"; most of all {results[0].token!r}" if len(results) == 1 else ""
    return f"One word can move {_listed(values)} times its length{word}."


def contrast(values: Sequence[tuple[str, float]]) -> Finding | None:
    """Attention beside a fully connected layer, from maps and their S on one text; None where one of them is missing.

    >>> finding = contrast([("rf", 0.3), ("raf", 3.6)])
    >>> round(finding.value, 6), finding.sentence.partition(":")[0]
    (12.0, 'One word can move attention 12 times as far as a fully connected layer')
    """
    best: dict[str, float] = {}
    for name, value in values:
        if (base := base_name(name)) in MAPS:
            best.setdefault(MAPS[base].family, value)
    attention, dense = best.get("attention"), best.get("dense")
    if attention is None or dense is None or not dense > 0:
        return None
    ratio = _short(attention / dense)
    sentence = (
        f"One word can move attention {ratio} times as far as a fully connected layer: {_listed(values)} times its "
        "length."
    )
    return Finding(f"{ratio}×", sentence, "Lower bounds, on one text.", value=attention / dense)


def _listed(values: Sequence[tuple[str, float]]) -> str:
    each = [f"{map_title(name)} {_short(value)}" for name, value in values]
    return each[0] if len(each) == 1 else f"{', '.join(each[:-1])} and {each[-1]}"


def _short(value: float) -> str:
    """
    >>> _short(2.8076), _short(0.0812), _short(12.4)
    ('2.8', '0.081', '12')
    """
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def _of_words(result: Sensitivity) -> ResultTable:
    bound = "" if result.upper is None else f", none of these words more than {result.upper:.3g}"
    heading = (
        f"{map_title(result.map_name)}: word {result.word} {result.token!r} can move the output {result.value:.3g} "
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
    heading = f"A small step at one word moves the output at most {result.value:.3g} times its size a unit of length"
    return ResultTable(heading, result.columns(), "sensitivity per radius")


def _of_swaps(result: Swaps) -> ResultTable:
    place = int((result.words == result.word).nonzero()[0])
    heading = (
        f"{result.swapped_for[place]!r} in the place of {result.tokens[place]!r} (word {result.word}) moves the output "
        f"{result.value:.3g} times its size, {'the most of all' if result.exact else 'the most that was tried'}"
    )
    return ResultTable(heading, result.columns(), "change", "token")


def _of_removals(result: Removals) -> ResultTable:
    removed = {"delete": "deleted", "mask": "masked"}[result.way]
    word = result.whole[int(result.per_word.argmax())].text
    heading = f"{word!r} {removed} moves the output most: {result.value:.3g} times its size"
    return ResultTable(heading, result.columns(), "change", "text")


def _of_substitutions(result: SubstitutionSensitivity) -> ResultTable:
    heading = f"Words exchanged at random: average sensitivity {result.average}, block sensitivity {result.block}"
    return ResultTable(heading, result.columns())


def _of_theorem_witness(result: TheoremWitness) -> ResultTable:
    heading = f"The theorem's change of word {result.word} moves the output {result.value:.3g} times its size"
    return ResultTable(heading, result.columns())


def _of_certificate(bounds: Certificate) -> ResultTable:
    heading = f"None of these words can move the output more than {bounds.value:.4g} times its size ({bounds.rigor})"
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
    Swaps: _of_swaps,
    Removals: _of_removals,
    SubstitutionSensitivity: _of_substitutions,
    TheoremWitness: _of_theorem_witness,
    Certificate: _of_certificate,
    AttentionPair: _of_attention_pair,
    PromptPair: _of_prompt_pair,
}
