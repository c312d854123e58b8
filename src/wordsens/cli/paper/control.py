"""`wordsens paper control`: what sensitivity, turned up and down, does to the task."""

from wordsens.cli.paper.told import told_experiment
from wordsens.experiments.control.preset import paper_control
from wordsens.figures.control_panels import CONTROL_FIGURES

EXPERIMENT = told_experiment("control", paper_control, CONTROL_FIGURES)
