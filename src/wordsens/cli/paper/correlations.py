"""`wordsens paper correlations`: orthogonal to nearly equal words, repeated words, real texts."""

from functools import partial

from wordsens.cli.paper.told import told_experiment
from wordsens.experiments.correlations.preset import paper_correlations
from wordsens.figures.correlation_panels import correlation_panels

EXPERIMENT = told_experiment(
    "correlations",
    paper_correlations,
    {"correlations": partial(correlation_panels, title="Word sensitivity against the words' mean cosine")},
)
