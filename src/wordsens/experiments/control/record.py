"""The record of one training under control."""

from dataclasses import dataclass
from typing import ClassVar

from wordsens.experiments.store.record import TorchRecord


@dataclass(frozen=True, kw_only=True)
class ControlRecord(TorchRecord):
    """A trained network: how well it does, and how sensitive it is. `value` is the accuracy on the held-out texts.

    Attributes:
        task, n, d, layer, layers, residual, norm, mlp, control, target, strength, steps, seed, draw: of the cell.
        sensitivity: S of the features that the head reads, attained by the full search: the median over some held-out
            texts of the largest value of the searched words; None where the network's units have died:
            phi(X) = 0 for all held-out texts, or for all texts that its penalty chose, which ended the training.
        median_word: the median over those texts of the median word's value.
        left_out: held-out texts that were passed over, since phi(X) = 0.
        short: S by the training's own short search, mean over its last call; None without the penalty.
        robust: the share of held-out texts whose label stays right while a word moves by at most sqrt(d).
        loss: on the held-out texts.
        by_layer: S behind each layer, lowest first; all rows of a layer of attention are its features.
        first_upper: a certified bound of the first number of by_layer, over the same words; None where that layer has
            no certificate.
        along_steps: the steps after which the network was measured along its training; the next five have a number
            for each.
        along_accuracy: on the held-out texts.
        along_sensitivity: S, as by_layer.
        along_kept: the share of copies that mean the same whose logit has the sign of their text's.
        along_told: the AUC by which flipped copies move the features farther than those; None where nothing flips.
        along_probe: the accuracy of a linear function of the features on a one-word task of another vocabulary.
        cpu_seconds: of the training; along it, of the measurements as well.
        evaluations: of the full search.
        text_content: a digest of the texts, where they are real.
    """

    SPEC_COLUMNS: ClassVar[tuple[str, ...]] = ("text_content", "residual", "norm", "mlp")

    task: str
    n: int
    d: int
    layer: str
    layers: int
    residual: bool | None = None
    norm: bool | None = None
    mlp: bool | None = None
    control: str
    target: float | None = None
    strength: float | None = None
    steps: int
    seed: int
    draw: int
    text_content: str | None = None
    sensitivity: float | None = None
    median_word: float | None = None
    left_out: int | None = None
    short: float | None = None
    robust: float | None = None
    loss: float | None = None
    by_layer: tuple[float, ...] | None = None
    first_upper: float | None = None
    along_steps: tuple[int, ...] | None = None
    along_accuracy: tuple[float, ...] | None = None
    along_sensitivity: tuple[float, ...] | None = None
    along_kept: tuple[float, ...] | None = None
    along_told: tuple[float, ...] | None = None
    along_probe: tuple[float, ...] | None = None
    cpu_seconds: float | None = None
    evaluations: int | None = None
