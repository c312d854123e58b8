"""The perturbation of Theorem 3, built and not searched: all rows are drawn to one word."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError, argument, require_kind, require_positive
from wordsens.maps.attention.features import RandomAttentionFeatures
from wordsens.maps.attention.scores import Softmax
from wordsens.maps.mapping import feature_norm, perturbed_texts
from wordsens.results import Result
from wordsens.seeds import Seed, gaussian_on, generator
from wordsens.sensitivity.one_word import relative_change
from wordsens.text.matrix import TextMatrix, as_text_matrix


@dataclass(frozen=True, eq=False, repr=False)
class TheoremWitness(Result):
    """The perturbation that Theorem 3 builds, and what it does.

    Attributes:
        word: i.
        perturbation: (d,), the better of the two opposite Delta.
        opposite: (d,), the other one.
        value: ‖phi(X^i(Delta)) - phi(X)‖ / ‖phi(X)‖ at `perturbation`: a lower bound of S.
        opposite_value: the same at `opposite`.
        guarantee: a lower bound of `value` from the attention reached alone, by the triangle
            inequality.
        attention_before, attention_after: (n,), what each row gives word i, before and at
            `perturbation`.
        mass: the mean of `attention_after` over the other rows.
    """

    word: int
    perturbation: Float[Tensor, " d"]
    opposite: Float[Tensor, " d"]
    value: float
    opposite_value: float
    guarantee: float
    attention_before: Float[Tensor, " n"]
    attention_after: Float[Tensor, " n"]
    mass: float

    @property
    def headline(self) -> str:
        """How far the change moves the output."""
        return (
            f"The theorem's change of word {self.word} moves the output {self.value:.3g} times its "
            "size"
        )

    def columns(self) -> dict[str, Any]:
        """One row per feature row: the attention it pays to the word before and after the
        change."""
        return {
            "row": list(range(len(self.attention_before))),
            "attention before": self.attention_before.tolist(),
            "attention after": self.attention_after.tolist(),
        }


def theorem_witness(
    phi: RandomAttentionFeatures,
    X: TextMatrix | Tensor | np.ndarray,
    word: int = 0,
    radius: float | None = None,
    seed: Seed = 0,
) -> TheoremWitness:
    """The constructive Delta of Theorem 3 for softmax attention: u_j . Delta is large for most rows
    j at once.

    With u the unit vector along sum_j u_j, u_j = W^T x_j / scale, and v a unit vector orthogonal to
    every u_j,

        Delta± = radius (cos(theta) u ± sin(theta) v)

    move every row's score by the same amount, so both reach the same attention p_j, and the outputs
    of row j differ by exactly 2 p_j radius sin(theta) v. One of the two is therefore at least

        guarantee = radius sin(theta) sqrt(sum over j != i of p_j²) / ‖phi(X)‖

    away from phi(X). theta is chosen to make the guarantee largest. (Construction after Theorem 3's
    proof idea; the guarantee is ours: docs/proofs.md#the-witness-of-theorem-3.)

    Args:
        phi: one head of softmax attention.
        X: the text, (n, d), n < d so that v exists.
        word: i.
        radius: None for sqrt(d).
        seed: draws v in the orthogonal complement.

    Raises:
        InputError: another score, several heads, n >= d, a word out of range, a bad radius.
    """
    require_kind(
        "phi", phi, RandomAttentionFeatures, remedy="build one with RandomAttentionFeatures(d)"
    )
    if type(phi.score) is not Softmax or phi.heads != 1:
        raise InputError(
            f"`phi` ({phi.name}, {phi.heads} heads) must be one head of softmax attention"
        )
    rows = phi.accept(as_text_matrix(X).rows)
    n, d = rows.shape
    if not -n <= word < n:
        raise InputError(
            f"{argument('word')} (={word}) is out of range; the text has {n} words, indices run "
            f"from 0 to {n - 1}"
        )
    if n >= d:
        raise InputError(
            f"{argument('X')} has {n} words of {d} coordinates; the construction needs fewer words "
            "than coordinates"
        )
    word %= n
    radius = math.sqrt(d) if radius is None else require_positive("radius", radius)
    queries = rows @ phi.weight / (phi.temperature * math.sqrt(d))
    along = torch.nn.functional.normalize(queries.sum(dim=0), dim=0)
    stream = generator(seed, "orthogonal")
    drawn = gaussian_on(d, generator=stream, dtype=rows.dtype, device=rows.device)
    # The last column is the drawn vector's part that is orthogonal to all queries.
    across = torch.linalg.qr(torch.cat([queries, drawn.unsqueeze(0)]).T).Q[:, -1]

    elsewhere = torch.arange(n, device=rows.device) != word
    scores = phi.scores(rows)
    logit = scores[:, word] - torch.logsumexp(scores[:, elsewhere], dim=1)
    angles = torch.linspace(0, math.pi / 2, 181, dtype=torch.float64, device=rows.device)[1:]
    pulls = radius * angles.cos().to(rows.dtype).unsqueeze(1) * (queries @ along)
    reached = torch.sigmoid(logit + pulls)[:, elsewhere].double()
    lengths = radius * angles.sin() * torch.linalg.vector_norm(reached, dim=1)
    theta = float(angles[lengths.argmax()])

    aside = math.sin(theta) * across
    inside = radius * (1 - 4 * torch.finfo(rows.dtype).eps)
    pair = inside * (math.cos(theta) * along + torch.stack([aside, -aside]))
    groups = torch.full((2, 1), word, device=rows.device)
    values = relative_change(phi, rows, groups, pair.unsqueeze(1))
    best = int(values.argmax())
    changed = perturbed_texts(rows, groups[:1], pair[best].view(1, 1, d))[0]
    after = phi.attention(changed)[:, word]
    return TheoremWitness(
        word=word,
        perturbation=pair[best],
        opposite=pair[1 - best],
        value=float(values[best]),
        opposite_value=float(values[1 - best]),
        guarantee=float(lengths.max()) / feature_norm(phi(rows), phi.name),
        attention_before=phi.attention(rows)[:, word],
        attention_after=after,
        mass=float(after[elsewhere].mean()),
    )
