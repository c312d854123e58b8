"""`wordsens paper similarity`: is a flipped meaning less alike than the same one in another word?"""

from wordsens.cli.paper.told import told_experiment
from wordsens.experiments.similarity.preset import paper_similarity
from wordsens.figures.similarity_panels import SIMILARITY_FIGURES

EXPERIMENT = told_experiment("similarity", paper_similarity, SIMILARITY_FIGURES)
