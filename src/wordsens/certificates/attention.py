"""Upper bounds of word sensitivity for attention: all rows jointly, through one Lagrangian (docs/theory)."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.certificates.attention_text import AttentionText, attention_text, pairs_of
from wordsens.certificates.contract import Certificate
from wordsens.certificates.curves import NODES
from wordsens.certificates.multipliers import MultiplierSearch, State
from wordsens.certificates.own_row import OwnRow, own_row
from wordsens.certificates.relaxation import Pairs, least_square, upper_bound
from wordsens.certificates.rounding import RoundingErrors, rounding_errors, row_errors
from wordsens.certificates.verified import rounding
from wordsens.errors import ZeroFeaturesError
from wordsens.maps.attention import RandomAttentionFeatures

# Intervals of z = Delta . (x_i - centre)/(‖x_i - centre‖ radius). The sup lies near .45 as a rule: narrow there.
_EDGES = (-1.0, 0.0, 0.2, 0.3, 0.38, 0.46, 0.54, 0.62, 0.72, 0.85, 1.0)
_FIRST = 4
_CHUNK_NUMBERS = 1 << 18
_FIRST_TEMPERATURES = [0.5 * 0.72**step for step in range(10)]
_NEXT_TEMPERATURES = [0.04, 0.025]
# z passes its interval's ends by this much, and ‖direction‖ may differ from 1 by rounding.
_BEYOND = 1e-9


def attention_certificate(
    phi: RandomAttentionFeatures, rows: Float[Tensor, "n d"], words: Int[Tensor, " w"], radius: Float[Tensor, " w"]
) -> Certificate:
    """The certificate of attention with any score, temperature and number of heads, for the words of one text.

    Computed in float64, whatever phi's dtype. O(heads (n d² + n² d) + N³ + w N²), N = heads n; memory O(N²).

    Raises:
        ZeroFeaturesError: phi(X) = 0, or so small that rounding hides it.
    """
    matrices = phi.matrices.double() / (phi.temperature * math.sqrt(rows.shape[1]))
    text = attention_text(rows.double(), matrices, phi.score)
    errors = rounding_errors(text)
    if not errors.norm > 0:
        raise ZeroFeaturesError(
            f"{phi.name} maps this text to features that rounding cannot tell from zero, so no relative bound is known; "
            "use another text, seed or map"
        )
    search = MultiplierSearch(text.geometry)
    numbers = text.scores.shape[0] * NODES
    plain, upper = [], []
    for chunk in torch.arange(len(words), device=words.device).split(max(1, _CHUNK_NUMBERS // numbers)):
        bounds = _bounds(text, search, errors, words[chunk], radius[chunk].double())
        plain.append(bounds[0])
        upper.append(bounds[1])
    return Certificate(
        words=words,
        upper=torch.cat(upper),
        slack=float((torch.cat(upper) / torch.cat(plain) - 1).amax()),
        method=f"{phi.score.name} attention: joint Lagrangian over all rows",
    )


def _bounds(
    text: AttentionText,
    search: MultiplierSearch,
    errors: RoundingErrors,
    words: Int[Tensor, " w"],
    radius: Float[Tensor, " w"],
) -> tuple[Float[Tensor, " w"], Float[Tensor, " w"]]:
    """The bounds of some words, before and after rounding outward."""
    pairs, direction = pairs_of(text, words, radius)
    own = own_row(text, words, radius, direction, errors)
    sweep = _Sweep(text, search, pairs, own)
    first = search.improve(pairs, search.start(pairs), sweep.aim(_FIRST), _FIRST_TEMPERATURES)
    sweep.cover(_FIRST, first)
    for path in (range(_FIRST + 1, len(_EDGES) - 1), range(_FIRST - 1, -1, -1)):
        state = first
        for interval in path:
            state = sweep.cover_from(interval, state)
    scale = radius / errors.norm * (1 + 1e-14)
    row_error = row_errors(text, errors, pairs, radius)
    return sweep.plain.sqrt() * scale, (sweep.rounded.sqrt() + row_error) * scale * (1 + 1e-12)


class _Sweep:
    """The largest bound over the intervals of z that are covered so far, in units of the squared radius."""

    def __init__(self, text: AttentionText, search: MultiplierSearch, pairs: Pairs, own: OwnRow):
        self._text, self._search, self._pairs, self._own = text, search, pairs, own
        self._roundings = rounding(4 * sum(text.geometry.queries.shape) + 200)
        self.plain = torch.zeros_like(pairs.reach[:, 0])
        self.rounded = self.plain.clone()

    def aim(self, interval: int) -> Float[Tensor, " w"]:
        """The z that the multipliers of an interval are tuned for."""
        low, high = _EDGES[interval], _EDGES[interval + 1]
        return torch.full_like(self.plain, max(low, high - 0.15) * 0.45 + high * 0.55)

    def cover(self, interval: int, state: State) -> None:
        self._take(*self._evaluate(interval, state))

    def cover_from(self, interval: int, state: State) -> State:
        """Cover an interval with a neighbour's multipliers, and with better ones where those are not good enough."""
        plain, rounded = self._evaluate(interval, state)
        if bool((rounded > self.rounded).any()):
            state = self._search.improve(self._pairs, state, self.aim(interval), _NEXT_TEMPERATURES)
            other_plain, other = self._evaluate(interval, state)
            plain = torch.where(other < rounded, other_plain, plain)
            rounded = torch.minimum(rounded, other)
        self._take(plain, rounded)
        return state

    def _take(self, plain: Tensor, rounded: Tensor) -> None:
        self.plain, self.rounded = torch.maximum(self.plain, plain), torch.maximum(self.rounded, rounded)

    def _evaluate(self, interval: int, state: State) -> tuple[Float[Tensor, " w"], Float[Tensor, " w"]]:
        by = self._search.multipliers(self._pairs, state, self.aim(interval))
        low = torch.full_like(self.plain, _EDGES[interval] - _BEYOND)
        high = torch.full_like(self.plain, _EDGES[interval + 1] + _BEYOND)
        at_low, at_high, size = upper_bound(self._text.geometry, self._pairs, by, low, high)
        plain = torch.maximum(at_low, at_high) + self._own.fixed
        across = (1 - least_square(low, high)).clamp(min=0).sqrt()
        own_low, own_high = self._own.at(low, across), self._own.at(high, across)
        if own_low is not None and own_high is not None:
            plain = torch.minimum(plain, torch.maximum(at_low + own_low, at_high + own_high))
        # Multipliers that went astray give no bound, and the caller keeps the others'.
        plain = torch.where(plain.isfinite() & (state.lam > 0), plain.clamp(min=0), torch.full_like(plain, torch.inf))
        rounded = plain * (1 + 1e-12) + self._roundings * (size + self._own.fixed)
        return plain, torch.where(rounded.isfinite(), rounded, torch.full_like(rounded, torch.inf))
