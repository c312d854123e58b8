"""Setting some columns of a conditioned Gaussian matrix apart, so that they can be asked on their own."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.gaussian.conditioned import AnsweredQueries, ConditionedGaussian
from wordsens.gaussian.vectors import SPAN_TOLERANCE, VectorStack

_SMALL_OUTSIDE = 0.5


def split_columns(whole: ConditionedGaussian, start: int, stop: int) -> tuple[ConditionedGaussian, ConditionedGaussian]:
    """The columns [start, stop) and all the others, as two matrices that are independent given what is known of each.

    A known answer z = V q ties the two: z = V b s + V o c for a query q = s b + c o with unit vectors b inside the
    columns and o outside, s² + c² = 1. Of the part that the transposed answers leave open, (V b, V o) has iid Gaussian
    entries, so with a fresh g of the same law

        V b = s z + c g,    V o = c z - s g,

    exactly in law, after which nothing ties the two. Several queries are first rotated so that their inner parts, and
    so their outer parts, are orthogonal (ours; docs/theory/on-demand-gaussians.md). `whole` must not be used again.
    """
    turned = _rotate(whole.forward, start, stop)
    left, fixed = whole.backward.queries, whole.backward.answers
    inner_fixed = VectorStack.of(fixed.stacked()[:, start:stop])

    def open_part(answers: Tensor) -> Tensor:
        return answers - left.combine(left.inner_products(answers))

    fresh = open_part(whole.source.draw(whole.forward.answers, len(turned.inside)))
    answered = open_part(turned.answers)
    inside = turned.sine * answered + turned.cosine * fresh + left.combine(inner_fixed.inner_products(turned.inside))
    outside = turned.cosine * answered - turned.sine * fresh + left.combine(fixed.inner_products(turned.outside))
    outer = (turned.cosine > 0).squeeze(1)

    part = ConditionedGaussian(
        AnsweredQueries(VectorStack.of(turned.inside), VectorStack.of(inside)),
        AnsweredQueries(left.fork(), inner_fixed),
        whole.source,
    )
    support = (
        turned.inside.new_ones(whole.backward.answers.dimension) if whole.support is None else whole.support.clone()
    )
    support[start:stop] = 0
    rest = ConditionedGaussian(
        AnsweredQueries(
            VectorStack.of(torch.cat([turned.outside[outer], turned.untouched])),
            VectorStack.of(torch.cat([outside[outer], turned.untouched_answers])),
        ),
        AnsweredQueries(left, VectorStack.of(fixed.stacked() * support)),
        whole.source,
        support,
    )
    whole.source.budget.give_back(whole.bytes)
    whole.source.budget.take(part.bytes + rest.bytes)
    return part, rest


@dataclass(frozen=True)
class _Rotated:
    """Queries, rotated: query a is sine_a inside_a + cosine_a outside_a; the untouched ones have no inner part."""

    inside: Float[Tensor, "touching block"]
    outside: Float[Tensor, "touching columns"]
    sine: Float[Tensor, "touching 1"]
    cosine: Float[Tensor, "touching 1"]
    answers: Float[Tensor, "touching rows"]
    untouched: Float[Tensor, "others columns"]
    untouched_answers: Float[Tensor, "others rows"]


def _rotate(side: AnsweredQueries, start: int, stop: int) -> _Rotated:
    queries, answers = side.queries.stacked(), side.answers.stacked()
    tolerance = SPAN_TOLERANCE * torch.finfo(queries.dtype).eps
    left, sine, _ = torch.linalg.svd(queries[:, start:stop], full_matrices=False)
    count = int((sine > tolerance).sum())
    rotation = left
    if len(queries) > left.shape[1]:
        rotation = torch.cat([left, torch.linalg.qr(left, mode="complete").Q[:, left.shape[1] :]], dim=1)
    queries, answers = rotation.T @ queries, rotation.T @ answers
    inner, outer = queries[:, start:stop].clone(), queries
    outer[:, start:stop] = 0
    touching, answering = outer[:count], answers[:count]
    cosine = torch.linalg.vector_norm(touching, dim=1)

    # Where little is outside, the outer parts are orthogonal only to rounding over cosine²: rotate by them instead.
    few = int((cosine < _SMALL_OUTSIDE).sum())
    if few:
        turn = torch.linalg.svd(touching[:few], full_matrices=False).U
        touching[:few], answering[:few] = turn.T @ touching[:few], turn.T @ answering[:few]
        inner[:few] = turn.T @ inner[:few]
        cosine = torch.linalg.vector_norm(touching, dim=1)
    sine = torch.linalg.vector_norm(inner[:count], dim=1)
    cosine = torch.where(cosine > tolerance, cosine, torch.zeros_like(cosine))
    both = torch.hypot(sine, cosine)
    sine, cosine = (sine / both).unsqueeze(1), (cosine / both).unsqueeze(1)
    return _Rotated(
        inside=_orthonormal(inner[:count], sine.squeeze(1) > 0),
        outside=_orthonormal(touching, cosine.squeeze(1) > 0),
        sine=sine,
        cosine=cosine,
        answers=answering,
        untouched=outer[count:],
        untouched_answers=answers[count:],
    )


def _orthonormal(rows: Float[Tensor, "count dimension"], wanted: Tensor) -> Float[Tensor, "count dimension"]:
    """Nearly orthogonal rows made orthonormal, the longest first; rows that are not wanted become zero."""
    frame = torch.zeros_like(rows)
    order = torch.linalg.vector_norm(rows, dim=1).argsort(descending=True)
    order = order[wanted[order]]
    if len(order):
        factor = torch.linalg.qr(rows[order].T)
        frame[order] = (factor.Q * factor.R.diagonal().sign()).T
    return frame
