"""The parts of a study of control: which records belong to which question, and what their networks are called."""

from collections.abc import Sequence

from wordsens.experiments.control.record import ControlRecord
from wordsens.experiments.control.spec import HOLD
from wordsens.statistics.mean import Estimate

TASK_TITLES = {"one-word": "one word decides", "majority": "majority", "texts": "sentiment"}

_LAYER_TITLES = {"dense": "fully connected", "softmax": "softmax attention", "relu": "ReLU attention"}


_CONTROL_TITLES = {
    "none": "no control",
    "lower": "the penalty",
    "raise": "the reward",
    "spectral": "the spectral penalty",
    "adversarial": "adversarial words",
    "pairs": "supervision by pairs",
}


def control_title(record: ControlRecord) -> str:
    """The control in words."""
    return _CONTROL_TITLES.get(record.control, record.control.replace("-", " "))


def network_title(record: ControlRecord) -> str:
    """The network in words: "softmax attention, 6 layers, residual, LayerNorm"."""
    parts = [_LAYER_TITLES.get(record.layer, f"{record.layer} attention")]
    parts += [f"{record.layers} layers"] if record.layers > 1 else []
    options = {"residual": record.residual, "LayerNorm": record.norm, "MLP": record.mlp}
    return ", ".join([*parts, *(name for name, has in options.items() if has)])


def living(records: Sequence[ControlRecord]) -> list[ControlRecord]:
    """Networks with a sensitivity: some unit answers to a held-out text."""
    return [one for one in records if one.sensitivity is not None]


def dead(records: Sequence[ControlRecord]) -> list[ControlRecord]:
    """Networks whose units have died: phi(X) = 0 for all texts, and S is not defined."""
    return [one for one in records if one.sensitivity is None]


def uncontrolled(records: Sequence[ControlRecord]) -> list[ControlRecord]:
    """Trained single layers without control."""
    return [one for one in single(records) if one.control == "none" and one.steps]


def held(records: Sequence[ControlRecord]) -> list[ControlRecord]:
    """Those whose S was held at a target."""
    return [one for one in living(records) if one.control == HOLD]


def controlled(records: Sequence[ControlRecord]) -> list[ControlRecord]:
    """Those of the other controls, and of none at the same size."""
    own = [one for one in single(records) if one.control != HOLD]
    sizes = {(one.task, one.n, one.layer) for one in own if one.control != "none"}
    return [one for one in own if (one.task, one.n, one.layer) in sizes]


def single(records: Sequence[ControlRecord]) -> list[ControlRecord]:
    """Those measured at the end of the training alone, and behind the last layer."""
    return [one for one in living(records) if one.by_layer is None and one.along_steps is None]


def along_training(records: Sequence[ControlRecord]) -> list[ControlRecord]:
    """Those measured along their training."""
    return [one for one in living(records) if one.along_steps is not None]


def stacked(records: Sequence[ControlRecord]) -> list[ControlRecord]:
    """Those measured behind each of several layers."""
    return [one for one in living(records) if one.by_layer is not None and len(one.by_layer) > 1]


def growth(record: ControlRecord) -> float | None:
    """The factor of S from one layer to the next, geometric mean; None where S is 0 behind one of them."""
    values = record.by_layer or ()
    if len(values) < 2 or not values[0] or not values[-1]:
        return None
    return (values[-1] / values[0]) ** (1 / (len(values) - 1))


def same_draws(
    records: Sequence[ControlRecord], others: Sequence[ControlRecord]
) -> list[tuple[ControlRecord, ControlRecord]]:
    """Pairs of records of one draw: they share vocabulary, texts and, in one architecture, the first weights."""
    by_draw = {one.draw: one for one in others}
    return [(one, by_draw[one.draw]) for one in records if one.draw in by_draw]


def paired(estimate: Estimate) -> str:
    """A claim's remark on a difference or ratio taken draw by draw: its draws, and the interval that decided."""
    return f"Paired over {estimate.draws} draws, ± one standard error; its 95 % interval decides."


ALONG = {
    "accuracy": "along_accuracy",
    "S": "along_sensitivity",
    "synonyms kept": "along_kept",
    "flips told": "along_told",
    "new words": "along_probe",
}
"""What is measured along a training, and its column."""
