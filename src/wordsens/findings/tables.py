"""What shows a result: its table, everything that it says, and its sentences, by its class."""

from collections.abc import Callable
from typing import Any

from wordsens.display.content import Display
from wordsens.evaluation.calibrate import Calibration
from wordsens.evaluation.check import Check
from wordsens.evaluation.compare import Comparison
from wordsens.evaluation.explain import Explanation
from wordsens.evaluation.flips import LabelFlips
from wordsens.evaluation.length import LengthAdvice
from wordsens.findings import calibrate, check, compare, explain, flips, length, sensitivity, tune
from wordsens.generalization import OneWordFrontier, OneWordGeneralization, OneWordOutcomes
from wordsens.results import ResultTable
from wordsens.sensitivity.result import SensitivityProfile
from wordsens.training.held_out import Tuned


def _of_one_word(result: OneWordGeneralization) -> ResultTable:
    heading = f"{result.map_name}, {result.training}, {result.objective}: error {result.error:.4f}"
    return ResultTable(heading, result.columns())


def _of_frontier(result: OneWordFrontier) -> ResultTable:
    heading = f"{result.map_name}, {result.training}: least error reached under each limit on gamma"
    return ResultTable(heading, result.columns())


def _of_outcomes(result: OneWordOutcomes) -> ResultTable:
    heading = (
        f"{result.chosen[0].map_name}: one word changes, the label flips; every training "
        "and "
        "objective"
    )
    return ResultTable(heading, result.columns())


TABLES: dict[type, Callable[[Any], ResultTable]] = {
    **sensitivity.TABLES,
    OneWordGeneralization: _of_one_word,
    OneWordFrontier: _of_frontier,
    OneWordOutcomes: _of_outcomes,
    Calibration: calibrate.table,
    Check: check.table,
    Comparison: compare.table,
    LabelFlips: flips.table,
    LengthAdvice: length.table,
}
DISPLAYS: dict[type, Callable[..., Display]] = {
    Calibration: calibrate.display,
    Check: check.display,
    Comparison: compare.display,
    Explanation: explain.display,
    LabelFlips: flips.display,
    SensitivityProfile: sensitivity.profile_display,
    Tuned: tune.display,
}
ANSWERS: dict[type, Callable[[Any], tuple[str, ...]]] = {
    Calibration: calibrate.answer,
    Check: check.answer,
    Comparison: compare.answer,
    Explanation: explain.answer,
    LabelFlips: flips.answer,
    LengthAdvice: length.answer,
    Tuned: tune.answer,
}


def table(result: Any) -> ResultTable:
    """The columns of the result under a heading; a class without findings is headed by its name."""
    make = TABLES.get(type(result))
    return ResultTable(type(result).__name__, result.columns()) if make is None else make(result)


def display(result: Any, **options: Any) -> Display:
    """Everything that the result says."""
    return DISPLAYS[type(result)](result, **options)


def answer(result: Any) -> tuple[str, ...]:
    """The result in sentences."""
    return ANSWERS[type(result)](result)
