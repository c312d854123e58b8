"""The joint Lagrangian with smooth suprema and a barrier: its value and its first two derivatives."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.certificates.attention.joint_inverse import (
    OF_FORM,
    DerivativesInM,
    DirectForm,
    InverseForm,
    VectorProducts,
)
from wordsens.certificates.attention.joint_lagrangian import (
    GLOBALS,
    LAM,
    MU,
    SHARED,
    SUM,
    JointMultipliers,
    JointPairs,
)

OPTIONS_SHARE = 0.03
"""Of the temperature: the barrier's factor at an option. There are many, and together they must not outweigh Q's."""

_NEVER = -1e60  # the term of an option that is not possible, or that another one repeats
_LEVEL_STEPS = 20


@dataclass(frozen=True)
class Smoothed:
    """The smoothed Lagrangian, and the Lagrangian itself on the options; infinite outside its domain, where Q has no
    inverse that counts."""

    value: float
    plain: float
    by: JointMultipliers
    inverse: InverseForm | DirectForm | None


@dataclass(frozen=True)
class WorstCase:
    """The dual's worst y, by the probabilities `OPTIONS_SHARE` T/(h - v) of its options: it may mix several. Only a
    guide to where a cell is split (docs/theory/certificates-attention.md, "Branch and bound").

    Attributes:
        pair: the one whose weight it mixes most.
        mixed: the covariance of `linear` and s there: what no single weight adds.
        mean: that weight's mean.
        drawn: the mean of the sum of linear s and reach weight (y . b) over the pairs with a weight.
        total: the mean of the weights' sum.
    """

    pair: int
    mixed: float
    mean: float
    drawn: float
    total: float


class SmoothedLagrangian:
    """lam + mu + w . Q^-1 w + hold . between + the suprema, each over options v smoothed as

        min over h of h - W sum log(h - v),    W = `OPTIONS_SHARE` T,

    less T (log det Q + sum log hold + sum log pin), at a temperature T. O(k³ + k options).
    """

    def __init__(self, pairs: JointPairs):
        self.pairs = pairs
        self._products = VectorProducts(pairs) if pairs.first.shape[1] > 2 * pairs.count else None
        k = pairs.count
        pair = torch.arange(k, device=pairs.t.device)
        local = [torch.full_like(pair, SHARED), torch.full_like(pair, SUM)]
        self._index = torch.stack(local + [GLOBALS + at * k + pair for at in range(5)], dim=1)
        self._options()

    def _options(self) -> None:
        """Both signs of the term in y . b as options of their own, so that each is smooth; without those that are not
        possible or repeat another."""
        pairs = self.pairs
        parts = [pairs.t, pairs.linear, pairs.constant, pairs.weight]
        same = torch.stack([part[:, 1:] == part[:, :-1] for part in parts]).all(dim=0)
        constant = pairs.constant.masked_fill(~pairs.possible, _NEVER)
        constant[:, 1:] = constant[:, 1:].masked_fill(same, _NEVER)
        sign = torch.zeros_like(constant)
        if bool(pairs.mine.any()):
            mine = pairs.mine.unsqueeze(1).expand_as(constant)
            sign = torch.cat([mine, -mine], dim=1)
            constant = torch.cat([constant, torch.where(mine > 0, constant, _NEVER)], dim=1)
            parts = [torch.cat([part, part], dim=1) for part in parts]
        self._t, self._linear, _, weight = parts
        self._constant, self._sign, self._along = constant, sign, sign * pairs.reach * weight
        self._weight = weight
        self._counted = weight if pairs.summed else torch.zeros_like(weight)

    def at(self, by: JointMultipliers, temperature: float) -> Smoothed:
        inverse = self._inverse(by)
        if inverse is None:
            return Smoothed(float("inf"), float("inf"), by, None)
        spent = inverse.push @ inverse.drawn()
        common = by.lam + by.mu + spent + (by.hold * self.pairs.between).sum()
        value, ends = self._values(by)[0], self._ends(by)
        logs = inverse.log_determinant + by.hold.log().sum() + by.pin.log().sum()
        soft = _softened(value, OPTIONS_SHARE * temperature) + _softened(ends, temperature) - temperature * logs
        plain = common + value.amax(dim=1).sum() + ends.amax()
        return Smoothed(float((common + soft).nan_to_num(torch.inf)), float(plain.nan_to_num(torch.inf)), by, inverse)

    def holds(self, by: JointMultipliers) -> bool:
        """True where the domain has them."""
        return self._inverse(by) is not None

    def _inverse(self, by: JointMultipliers) -> InverseForm | DirectForm | None:
        """By what is smaller, Q or the vectors' inner products."""
        return InverseForm.of(self._products, by) if self._products else DirectForm.of(self.pairs, by)

    def derivatives(self, here: Smoothed, temperature: float) -> tuple[Tensor, Tensor]:
        """Gradient and Hessian inside the domain."""
        by, inverse = here.by, here.inverse
        assert inverse is not None
        gradient, hessian = self._of_form(inverse, temperature)
        mean, covariance = self._of_suprema(by, OPTIONS_SHARE * temperature)
        index = self._index
        gradient.index_add_(0, index.flatten(), mean.flatten())
        flat = index.unsqueeze(2) * len(gradient) + index.unsqueeze(1)
        hessian.view(-1).index_add_(0, flat.flatten(), covariance.flatten())
        slope, curved = self._of_sum(by, temperature)
        gradient[SUM] += slope
        hessian[SUM, SUM] += curved
        return gradient, hessian

    def worst(self, here: Smoothed, temperature: float) -> WorstCase:
        """The worst y at these multipliers. O(k options)."""
        pairs, by, width = self.pairs, here.by, OPTIONS_SHARE * temperature
        value, s = self._values(by)
        share = width / (_level(value, width).unsqueeze(1) - value)

        def mean(part: Tensor) -> Tensor:
            return (share * part).sum(dim=1)

        weight, linear = mean(self._weight), mean(self._linear)
        weighted, drawn = (pairs.weight != 0).any(dim=1), mean(self._linear * s)
        mixed = (drawn - linear * mean(s)).masked_fill(~weighted, -torch.inf)
        pair = int(mixed.argmax())
        total = float(drawn[weighted].sum() + mean(self._along).sum())
        return WorstCase(pair, float(mixed[pair]), float(weight[pair]), total, float(weight.sum()))

    def _values(self, by: JointMultipliers) -> tuple[Tensor, Tensor]:
        """Each pair's term at its options, the best s taken; and that s."""
        pairs = self.pairs
        slope = self._linear - 2 * (by.gamma.unsqueeze(1) + by.cross.unsqueeze(1) * self._t)
        pin, caps = by.pin.unsqueeze(1), pairs.caps.unsqueeze(1)
        s = torch.maximum(torch.minimum(slope / (2 * pin), caps), -caps)
        value = (slope - pin * s) * s + self._constant + self._along - 2 * by.shared * self._sign
        value = value + by.total * self._counted
        return value - (2 * by.alpha.unsqueeze(1) + by.hold.unsqueeze(1) * self._t) * self._t, s

    def _ends(self, by: JointMultipliers) -> Float[Tensor, "1 2"]:
        """The term of the weights' sum at the ends of its interval."""
        return self.pairs.of_sum(by.total).unsqueeze(0)

    def _of_sum(self, by: JointMultipliers, temperature: float) -> tuple[Tensor, Tensor]:
        """The two derivatives in the sum's multiplier; without one, such that it stays."""
        pairs = self.pairs
        if not pairs.summed:
            return torch.zeros_like(by.total), torch.ones_like(by.total)
        ends = self._ends(by)
        share = (temperature / (_level(ends, temperature).unsqueeze(1) - ends)).squeeze(0)
        slopes = -by.flat.new_tensor([pairs.least, pairs.most])
        squared = share.square()
        apart = slopes - (squared * slopes).sum() / squared.sum()
        return (share * slopes).sum(), (squared * apart.square()).sum() / temperature

    def _of_suprema(self, by: JointMultipliers, width: float) -> tuple[Tensor, Tensor]:
        """Of each pair's smoothed supremum, in shared, total and its own five multipliers."""
        value, s = self._values(by)
        share = width / (_level(value, width).unsqueeze(1) - value)
        t, pin = self._t, by.pin.unsqueeze(1)
        slopes = torch.stack([-2 * self._sign, self._counted, -2 * t, -2 * s, -t * t, -s * s, -2 * t * s], dim=2)
        # How the best s answers: the supremum over s is curved by 2 pin times this, squared.
        free = (s.abs() < self.pairs.caps.unsqueeze(1)).to(s.dtype) / pin
        answer = torch.stack([free, free * s, free * t], dim=2)
        mean = (share.unsqueeze(2) * slopes).sum(dim=1)
        squared = share.square()
        # About their mean: the options that count lie close together, and differences of squares would be lost.
        middle = (squared.unsqueeze(2) * slopes).sum(dim=1) / squared.sum(dim=1, keepdim=True)
        apart = slopes - middle.unsqueeze(1)
        covariance = ((squared / width).unsqueeze(2) * apart).mT @ apart
        bent = (answer * (2 * pin * share).unsqueeze(2)).mT @ answer
        at = [3, 5, 6]
        covariance[:, [[a] for a in at], at] += bent
        return mean, covariance

    def _of_form(self, here: InverseForm | DirectForm, barrier: float) -> tuple[Tensor, Tensor]:
        """Of lam + mu + w . Q^-1 w + hold . between - barrier (log det Q + sum log hold + sum log pin)."""
        pairs, by, k = self.pairs, here.by, self.pairs.count
        t, s = here.drawn().split(k)
        seen = here.seen()
        ff, fs, ss = seen[:k, :k], seen[:k, k:], seen[k:, k:]
        size = GLOBALS + 5 * k
        alpha, gamma, hold, pin, cross = (slice(GLOBALS + at * k, GLOBALS + (at + 1) * k) for at in range(5))
        gradient, hessian = t.new_zeros(size), t.new_zeros(size, size)

        def put(one: slice, other: slice, block: Tensor) -> None:
            hessian[one, other] = block
            if one != other:
                hessian[other, one] = block.T

        # w' - Q' z in a multiplier, times its like in another, in Q^-1: twice that, and the barrier's.
        of_f, of_s = ff * s + fs * t, fs.T * s + ss * t
        ft, st = ff * t, fs.T * t
        put(alpha, alpha, 2 * ff)
        put(alpha, gamma, 2 * fs)
        put(gamma, gamma, 2 * ss)
        put(alpha, hold, 2 * ft)
        put(alpha, pin, 2 * fs * s)
        put(alpha, cross, 2 * of_f)
        put(gamma, hold, 2 * st)
        put(gamma, pin, 2 * ss * s)
        put(gamma, cross, 2 * of_s)
        down_t, down_s = t.unsqueeze(1), s.unsqueeze(1)
        put(hold, hold, 2 * down_t * ft + barrier * ff.square())
        put(hold, pin, 2 * down_t * (fs * s) + barrier * fs.square())
        put(hold, cross, 2 * down_t * of_f + (2 * barrier) * (ff * fs))
        put(pin, pin, 2 * down_s * (ss * s) + barrier * ss.square())
        put(pin, cross, 2 * down_s * of_s + (2 * barrier) * (fs.T * ss))
        put(cross, cross, 2 * (down_s * of_f + down_t * of_s) + (2 * barrier) * (ff * ss + fs * fs.T))
        gradient[alpha], gradient[gamma] = 2 * t, 2 * s
        for part, change, of_log, log in (
            (hold, t.square() + pairs.between, ff.diagonal(), by.hold),
            (pin, s.square(), ss.diagonal(), by.pin),
        ):
            gradient[part] = change + barrier * (of_log - 1 / log)
            hessian[part, part].diagonal().add_(barrier / log.square())
        gradient[cross] = 2 * t * s + (2 * barrier) * fs.diagonal()
        self._of_m(here.in_m(seen), barrier, (t, s), gradient, hessian)
        return gradient, hessian

    def _of_m(
        self, of_m: DerivativesInM, barrier: float, drawn: tuple[Tensor, Tensor], gradient: Tensor, hessian: Tensor
    ) -> None:
        """The rows of lam, mu and shared, put into the two."""
        t, s = drawn
        places = list(OF_FORM)
        for at, place in enumerate(places):
            first, second = -of_m.turned[at].view(2, -1)
            logs = barrier * of_m.spread[at]
            row = [2 * first, 2 * second, 2 * t * first - logs[0], 2 * s * second - logs[1]]
            row += [2 * (s * first + t * second) - 2 * logs[2]]
            hessian[place, GLOBALS:] = hessian[GLOBALS:, place] = torch.cat(row)
        hessian[[[place] for place in places], places] = 2 * of_m.turned_twice + barrier * of_m.traces_of_two
        gradient[places] = -of_m.spent - barrier * of_m.traces
        gradient[[LAM, MU]] += 1


def _level(values: Float[Tensor, "k options"], width: float) -> Float[Tensor, " k"]:
    """The h with sum width/(h - v) = 1: Newton's method on 1/sum 1/(h - v), which is concave and rises."""
    top = values.amax(dim=1)
    level = top + width
    for _ in range(_LEVEL_STEPS):
        near = 1 / (level.unsqueeze(1) - values)
        total = near.sum(dim=1)
        rise = (width - 1 / total) * total.square() / near.square().sum(dim=1)
        level = level + rise
        if bool((rise <= 1e-9 * width).all()):
            break
    return level


def _softened(values: Float[Tensor, "k options"], width: float) -> Tensor:
    """The sum of the rows' smoothed maxima."""
    level = _level(values, width)
    return (level - width * (level.unsqueeze(1) - values).log().sum(dim=1)).sum()
