"""Records made up for tests, and keys of one small cell of each experiment."""

import hashlib
import json
from types import SimpleNamespace

from wordsens.sweeps import run
from wordsens.sweeps.store import spec_columns
from wordsens.sweeps.sweep import study_named

CELLS = {
    "sensitivity": {"map": "raf", "n": 3, "d": 4, "text": "gaussian", "steps": 2},
    "generalization": {
        "map": "raf",
        "n": 3,
        "d": 4,
        "texts": 4,
        "text": "gaussian",
        "labels": "linear",
        "held_out": 2,
        "starts": 1,
        "steps": 2,
    },
    "generalization-words": {
        "map": "raf",
        "n": 3,
        "d": 4,
        "texts": 4,
        "text": "gaussian",
        "labels": "linear",
        "held_out": 2,
        "objective": "frontier",
        "gammas": [0.5],
        "count": 2,
        "starts": 1,
        "steps": 2,
    },
    "attention": {"first": "a good film", "second": "a bad film"},
    "correlations": {"map": "raf", "n": 4, "d": 6, "text": "gaussian", "search": "quick"},
    "several-words": {
        "map": "rf",
        "n": 4,
        "d": 6,
        "text": "gaussian",
        "search": "quick",
        "count": 2,
    },
    "temperature": {"map": "raf", "n": 4, "d": 4, "text": "gaussian", "steps": 2},
    "depth": {
        "map": "transformer",
        "n": 4,
        "d": 6,
        "text": "gaussian",
        "search": "quick",
        "depth": 2,
    },
    "symmetry": {
        "map": "transformer",
        "n": 4,
        "d": 4,
        "text": "gaussian",
        "search": "quick",
        "depth": 1,
    },
    "similarity": {"map": "raf", "n": 8, "d": 6, "text": "reviews", "search": "quick", "count": 2},
    "control": {
        "task": "one-word",
        "n": 5,
        "d": 6,
        "steps": 3,
        "training": 16,
        "texts": 1,
        "words": 1,
        "control": "hold",
        "target": 0.5,
    },
}

_RESULTS = {
    "sensitivity": "source label tokens whole_words words searched per_word upper_per_word swap "
    "swapped_for word "
    "token average cosine median_word upper rigor predicted predicted_of predicted_in_range radius "
    "evaluations "
    "converged content map_seed encoder layer mean_cosine",
    "generalization": "source label word token features gamma alignment bound output_before "
    "output_after "
    "error_unchanged accuracy condition converged fit_seconds limits least_errors least_gammas "
    "least_alignments "
    "conditions_hold evaluations",
    "attention": "tokens_first tokens_second weights_first weights_second changed probabilities",
    "similarity": "sensitivity auc_low auc_high auc_synonym opposites moved_flip moved_synonym",
}
_MADE = {
    "status": "done",
    "error": None,
    "value": None,
    "seconds": 0.1,
    "started": "2026-01-01T00:00:00+00:00",
    "wordsens_version": "0",
    "commit": None,
    "code": "0",
    "libraries": '{"python": "3"}',
    "machine": "none",
    "threads": 1,
    "device": "cpu",
}


def made_record(experiment, spec, **columns):
    """A record with that spec, and None in the columns that are not given."""
    fields = dict.fromkeys(
        [*study_named(experiment).Cell.model_fields, *_RESULTS.get(experiment, "").split()]
    )
    key = hashlib.sha256(json.dumps([experiment, spec], sort_keys=True).encode()).hexdigest()[:32]
    known = {**fields, **_MADE, **spec_columns(spec), **columns}
    return {**known, "cell": key, "experiment": experiment, "spec": json.dumps(spec)}


def measured(cell):
    """The record of a cell that is measured here; an error is raised."""
    ((record, _),) = run.measured(study_named(cell.experiment), [cell])
    return SimpleNamespace(**record)


def attempted(cell):
    """The record of a cell; an error is its own."""
    ((record, _),) = run._measured(study_named(cell.experiment), [cell], None, False)
    return SimpleNamespace(**record)
