"""Dense modules behind a counting model: from a pooled vector that holds a count to one whose last part it turns.

The pooled vector of length one holds e, a unit vector up to the two small coordinates x = k c and y = c of a count k.
Four modules follow, which sentence-transformers has:

1. ReLU: e + 1, y, and the hinges x - h y for h = 0, 1, ..., MOST;
2. Hardtanh: e, and the sign p of y - 2 tri(k) y, where tri is the triangle wave of period 2, from the hinges: 1 for an
   even k, -1 for an odd one (beyond MOST that of MOST);
3. Hardtanh: e, and pieces of trapezoid waves of the phases w e + b + pi (1 - p) / 2; half a period turns the sign;
4. no activation: e and the waves, their lengths as sqrt(1 - share) to sqrt(share).

So the cosine of two texts is (1 - share) c + share p p' k, with c the cosine of e and k the waves' kernel.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from wordsens.maps.transformer.behind import Dense
from wordsens.training.adapter.parity.kernel import Waves

MOST = 64
"""The largest count whose parity is told."""

_RAMP = 0.1
"""How far from a half a count may be for its sign to be whole."""

_REACH = 3.0
"""Standard deviations of a phase that the waves cover on either side. Beyond it a wave is constant, so that unusual
texts seem alike: at 2.4 paraphrases of four domains had kernels .004 too large, at 3 none."""

_SLOPE = 1.0
"""Of a trapezoid wave, which rises over 2 of its half period's pi: hardly any third harmonic is left."""


def parity_modules(
    waves: Waves, vectors: Float[Tensor, "n d"], *, count: tuple[int, int], least: float, share: float, seed: int
) -> list[Dense]:
    """The four modules.

    Args:
        waves: whose frequencies are 0 in the count's coordinates.
        vectors: of texts of even parity, on which the waves' length is measured.
        count: the places of x and y.
        least: the least y of a text.
        share: of the embedding's squared length that the waves get.
        seed: of the phases.
    """
    kept = [at for at in range(vectors.shape[1]) if at not in count]
    first, second = _hinges(kept, *count), _sign(len(kept), least)
    pieces, sums = _waves(waves, kept, seed)
    entering = torch.cat([vectors[:, kept], torch.ones(len(vectors), 1)], dim=1)
    length = float(sums(pieces(entering))[:, len(kept) :].square().sum(dim=1).mean().sqrt())
    times = length * math.sqrt((1 - share) / share)
    # The largest module's weights are whole numbers, which take a byte each in its file.
    whole = math.ceil(times)
    pieces.linear.weight[: len(kept)] *= times / whole
    sums.linear.weight[: len(kept)] *= whole
    return [first, second, pieces, sums]


def _hinges(kept: list[int], x: int, y: int) -> Dense:
    e = len(kept)
    module = _dense(e + 2, e + MOST + 2, nn.ReLU())
    weight, bias = module.linear.weight, module.linear.bias
    weight[range(e), kept] = 1
    bias[:e] = 1
    weight[e, y] = 1
    weight[e + 1 :, x] = 1
    weight[e + 1 :, y] = -torch.arange(MOST + 1.0)
    return module


def _sign(e: int, least: float) -> Dense:
    module = _dense(e + MOST + 2, e + 1, nn.Hardtanh())
    weight, bias = module.linear.weight, module.linear.bias
    weight[:e, :e] = torch.eye(e)
    bias[:e] = -1
    steep = 1 / (_RAMP * least)
    turns = 2 * (-1.0) ** torch.arange(MOST + 1)
    turns[[0, MOST]] /= 2
    weight[e, e] = steep / 2
    weight[e, e + 1 :] = -steep * turns
    return module


def _waves(waves: Waves, kept: list[int], seed: int) -> tuple[Dense, Dense]:
    """The pieces of cosine and sine of every frequency, and their sums, not yet of any length."""
    e, many = len(kept), 2 * len(waves.frequencies)
    reach = _REACH * waves.spread
    each = math.ceil((2 * reach + math.pi) / math.pi)
    phases = torch.rand(len(waves.frequencies), generator=torch.Generator().manual_seed(seed))
    starts = torch.cat([phases, (phases + 0.5) % 1])
    frequencies = waves.frequencies.repeat(2, 1)
    places = (frequencies @ waves.centre)[:, None] - reach + math.pi * (starts[:, None] + torch.arange(each))
    pieces = _dense(e + 1, e + many * each, nn.Hardtanh())
    pieces.linear.weight[:e, :e] = torch.eye(e)
    pieces.linear.weight[e:, :e] = _SLOPE * frequencies[:, kept].repeat_interleave(each, dim=0)
    pieces.linear.weight[e:, e] = -_SLOPE * math.pi / 2
    pieces.linear.bias[e:] = _SLOPE * (math.pi / 2 - places.flatten())
    sums = _dense(e + many * each, e + many, nn.Identity())
    sums.linear.weight[:e, :e] = torch.eye(e)
    for at in range(many):
        sums.linear.weight[e + at, e + at * each : e + (at + 1) * each] = (-1.0) ** torch.arange(each)
    sums.linear.bias[e:] = -1.0 if each % 2 == 0 else 0.0
    return pieces, sums


def _dense(into: int, out: int, activation: nn.Module) -> Dense:
    """A module with weights and biases 0."""
    module = Dense({"in_features": into, "out_features": out}, activation).requires_grad_(False)
    module.linear.weight.zero_()
    module.linear.bias.zero_()
    return module
