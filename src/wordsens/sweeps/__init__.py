"""Sweeps of cells: their keys, the store of records, the loop and its workers, and the table of
studies."""

# Of an experiment's presets.
SCALES = ("quick", "laptop", "full")

# The studies of the package: the module:NAME where each lies, and its help as a figure of `paper`;
# "" for none.
STUDIES = {
    "sensitivity": (
        "wordsens.studies.sensitivity:STUDY",
        "S against the number of words n, for random, deep random and attention features "
        "(the default)",
    ),
    "generalization": (
        "wordsens.studies.generalization:STUDY",
        "does a model that just learned a text notice one changed word?",
    ),
    "generalization-words": ("wordsens.studies.generalization_words:STUDY", ""),
    "attention": (
        "wordsens.studies.attention:STUDY",
        "the attention in two texts that differ in one word; your own two follow the name: "
        "paper attention TEXT TEXT",
    ),
    "correlations": (
        "wordsens.studies.correlations:STUDY",
        "S against the words' mean cosine",
    ),
    "several-words": (
        "wordsens.studies.several_words:STUDY",
        "how many words must change before a map notices",
    ),
    "symmetry": (
        "wordsens.studies.symmetry:STUDY",
        "is it the asymmetry of queries and keys that lets attention notice a word?",
    ),
    "depth": (
        "wordsens.studies.depth:STUDY",
        "S after each layer of random transformers and of a trained model",
    ),
    "temperature": (
        "wordsens.studies.temperature:STUDY",
        "S of softmax attention against n at fixed temperatures in units of 1 / √(2 log n)",
    ),
    "similarity": (
        "wordsens.studies.similarity:STUDY",
        "is a flipped meaning less similar than a synonym?",
    ),
    "control": (
        "wordsens.studies.control.study:STUDY",
        "small networks trained to a high or low sensitivity ('all' leaves it out)",
    ),
}
