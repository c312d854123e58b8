"""The smallest radius at which a word's rows, moved as vectors, flip a label: attained, so an upper bound."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from wordsens.evaluation.explain.explain import rows_of
from wordsens.evaluation.explain.scores import gradient
from wordsens.maps.mapping import perturbed_texts
from wordsens.maps.transformer.features import TransformerFeatures

_GRID = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4, 1.0)
"""Radii that are tried along a direction before the first that flips is narrowed down."""

_HALVINGS = 5
"""Of the last interval of the grid: the radius is then known to 1/128 along its direction."""

_ROUNDS = 3
"""Directions: the slope at the text, then at the farthest or flipped text of the round before."""


def flip_radii(phi: TransformerFeatures, text: str, words: Sequence[str]) -> list[float | None]:
    """For every word the smallest radius found at which its rows flip the label.

    Every row j of the word moves by up to radius ‖x_j‖ along the slope of log p_label - max over others of log p. The
    text at the radius that is given has another label; a smaller one may too. None where none up to 1 was found, or
    the model did not read the word.

    Args:
        phi: with output "probabilities".
        text: the text.
        words: its words, in their order.
    """
    X = phi.embed([text])[0]
    rows = X.rows
    label = int(phi.features(rows.unsqueeze(0)).argmax())
    members = rows_of(X, words)
    return [None if member is None else _smallest(phi, rows, label, member) for member in members]


def _smallest(
    phi: TransformerFeatures, rows: Float[Tensor, "n d"], label: int, member: tuple[int, ...]
) -> float | None:
    def margin(texts: Tensor) -> Tensor:
        logs = phi.features(texts).double().clamp_min(torch.finfo(torch.float64).tiny).log()
        others = torch.cat([logs[..., :label], logs[..., label + 1 :]], dim=-1)
        return logs[..., label] - others.amax(dim=-1)

    own = list(member)
    lengths = torch.linalg.vector_norm(rows[own], dim=1, keepdim=True)
    at, best = rows, None
    for _ in range(_ROUNDS):
        step = -lengths * normalize(gradient(margin, at)[own], dim=1)
        found = _along(margin, rows, member, step, best or 1.0)
        best = found if found is not None else best
        at = _moved(rows, member, step, [best or 1.0])[0]
    return best


def _along(
    margin: Callable[[Tensor], Tensor], rows: Float[Tensor, "n d"], member: tuple[int, ...], step: Tensor, most: float
) -> float | None:
    """The smallest radius up to `most` that was found to flip along the step; None where none does."""

    def flips(radii: list[float]) -> list[bool]:
        with torch.no_grad():
            return (margin(_moved(rows, member, step, radii)) < 0).tolist()

    radii = [share * most for share in _GRID]
    first = next((at for at, flipped in enumerate(flips(radii)) if flipped), None)
    if first is None:
        return None
    low, high = (radii[first - 1] if first else 0.0), radii[first]
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if flips([middle])[0] else (middle, high)
    return high


def _moved(
    rows: Float[Tensor, "n d"], member: tuple[int, ...], step: Float[Tensor, "g d"], radii: list[float]
) -> Float[Tensor, "b n d"]:
    places = torch.tensor([member] * len(radii))
    return perturbed_texts(rows, places, torch.stack([radius * step for radius in radii]))
