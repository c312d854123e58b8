"""`wordsens paper departures`: as published against as defined, switch by switch and all together."""

from functools import partial

from wordsens.cli.paper.told import told_experiment
from wordsens.experiments.departures.preset import paper_departures
from wordsens.figures.departure_panels import departure_error_panels, departure_panels

EXPERIMENT = told_experiment(
    "departures",
    paper_departures,
    {
        "departures": partial(departure_panels, title="What each departure does to S"),
        "departures-error": partial(departure_error_panels, title="What each departure does to the error"),
    },
)
