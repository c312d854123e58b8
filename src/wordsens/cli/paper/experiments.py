"""The experiments of `wordsens paper`, by name."""

from functools import partial

from wordsens.cli.paper.attention import EXPERIMENT as ATTENTION
from wordsens.cli.paper.generalization import EXPERIMENT as GENERALIZATION
from wordsens.cli.paper.run import Experiment
from wordsens.cli.paper.sensitivity import EXPERIMENT as SENSITIVITY
from wordsens.cli.paper.told import told_experiment
from wordsens.experiments.control.preset import paper_control
from wordsens.experiments.correlations.preset import paper_correlations
from wordsens.experiments.departures.preset import paper_departures
from wordsens.experiments.several_words.preset import paper_several_words
from wordsens.experiments.similarity.preset import paper_similarity
from wordsens.figures.control_panels import CONTROL_FIGURES
from wordsens.figures.correlation_panels import correlation_panels
from wordsens.figures.departure_panels import departure_error_panels, departure_panels
from wordsens.figures.several_words_panels import several_words_panels
from wordsens.figures.similarity_panels import SIMILARITY_FIGURES

_TOLD = {
    "departures": (
        paper_departures,
        {
            "departures": partial(departure_panels, title="What each departure does to S"),
            "departures-error": partial(departure_error_panels, title="What each departure does to the error"),
        },
    ),
    "correlations": (
        paper_correlations,
        {"correlations": partial(correlation_panels, title="Word sensitivity against the words' mean cosine")},
    ),
    "several-words": (
        paper_several_words,
        {"several-words": partial(several_words_panels, title="Sensitivity to several words at once")},
    ),
    "similarity": (paper_similarity, SIMILARITY_FIGURES),
    "control": (paper_control, CONTROL_FIGURES),
}

EXPERIMENTS: dict[str, Experiment] = {
    "sensitivity": SENSITIVITY,
    "generalization": GENERALIZATION,
    "attention": ATTENTION,
    **{name: told_experiment(name, preset, figures) for name, (preset, figures) in _TOLD.items()},
}
