"""Records made up for tests of what is done with them."""

import pytest

from wordsens.experiments.record import SensitivityRecord
from wordsens.experiments.spec import hash_identity


@pytest.fixture(scope="session")
def make_record():
    """A function that gives a record; its keyword arguments take the place of the usual values."""

    def made(**changes) -> SensitivityRecord:
        values = {
            "spec": str(sorted(changes.items())),
            "status": "done",
            "map": "raf",
            "n": 10,
            "d": 8,
            "text": "gaussian",
            "source": "gaussian(seed=0)",
            "seed": 0,
            "draw": 0,
            "map_seed": 0,
            "words": changes.get("n", 10),
            "word": 0,
            "token": "#0",
            "value": 1.0,
            "evaluations": 1,
            "converged": 1.0,
            "seconds": 0.1,
            "dtype": "float64",
            "device": "cpu",
            "started": "2026-01-01T00:00:00+00:00",
            "wordsens_version": "0",
            "torch_version": "0",
            "machine": "none",
            **changes,
        }
        return SensitivityRecord(cell=hash_identity(values["spec"]), **values)

    return made
