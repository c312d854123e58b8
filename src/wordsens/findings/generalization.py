"""What results of the one-word experiment say: the headings of their tables."""

from collections.abc import Callable
from typing import Any

from wordsens.display.result_table import ResultTable
from wordsens.generalization import OneWordFrontier, OneWordGeneralization, OneWordOutcomes


def _of_one_word(result: OneWordGeneralization) -> ResultTable:
    heading = f"{result.map_name}, {result.training}, {result.objective}: error {result.error:.4f}"
    return ResultTable(heading, result.columns())


def _of_frontier(result: OneWordFrontier) -> ResultTable:
    heading = f"{result.map_name}, {result.training}: least error reached under each limit on gamma"
    return ResultTable(heading, result.columns())


def _of_outcomes(result: OneWordOutcomes) -> ResultTable:
    heading = f"{result.chosen[0].map_name}: one word changes, the label flips; every training and objective"
    return ResultTable(heading, result.columns())


TABLES: dict[type, Callable[[Any], ResultTable]] = {
    OneWordGeneralization: _of_one_word,
    OneWordFrontier: _of_frontier,
    OneWordOutcomes: _of_outcomes,
}
