"""Sweeps of cells: their keys, the store of records, the loop and its workers, and the table of experiments."""

EXPERIMENTS = {
    "sensitivity": "wordsens.studies.sensitivity.study:SENSITIVITY",
    "generalization": "wordsens.studies.generalization.study:GENERALIZATION",
    "attention": "wordsens.studies.attention:ATTENTION",
    "departures": "wordsens.studies.departures:DEPARTURES",
    "correlations": "wordsens.studies.correlations:CORRELATIONS",
    "several-words": "wordsens.studies.several_words:SEVERAL_WORDS",
    "similarity": "wordsens.studies.similarity:SIMILARITY",
    "control": "wordsens.studies.control.study:CONTROL",
    "audit": "wordsens.evaluation.audit.cell:AUDIT",
}
"""The experiments of the package, each by the module:NAME where it lies. All but the audit are figures of `paper`."""
