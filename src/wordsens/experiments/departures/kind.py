"""The kind of cell that measures under the published protocol, the definition, or what lies between."""

from wordsens.experiments.departures.cell import describe_departure, measure_departure
from wordsens.experiments.departures.record import DepartureRecord
from wordsens.experiments.departures.spec import DepartureCell
from wordsens.experiments.departures.summary import summarise_departures
from wordsens.experiments.kinds import CellKind

KIND = CellKind(
    name="departures",
    folder="departures-records",
    cell_type=DepartureCell,
    record_type=DepartureRecord,
    measure=measure_departure,
    described=describe_departure,
    sharing=DepartureCell.of_draw,
    summarise=summarise_departures,
)
