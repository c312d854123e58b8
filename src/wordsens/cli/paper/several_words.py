"""`wordsens paper several-words`: from how many words on a map notices."""

from functools import partial

from wordsens.cli.paper.told import told_experiment
from wordsens.experiments.several_words.preset import paper_several_words
from wordsens.figures.several_words_panels import several_words_panels

EXPERIMENT = told_experiment(
    "several-words",
    paper_several_words,
    {"several-words": partial(several_words_panels, title="Sensitivity to several words at once")},
)
