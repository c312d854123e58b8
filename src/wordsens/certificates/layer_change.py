"""How far a Gaussian layer can move its output, when nothing is known of its weights but its pre-activations.

docs/theory/certificates-dense.md states and proves what is computed here.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.activations import Activation
from wordsens.certificates.slopes import steepest_secant

_GRID = 48
_TURNS = (1.5, 2.5, 4.0, 6.0)
_ROOT = math.sqrt(2 / math.pi)


@dataclass(frozen=True)
class InputChange:
    """What is known of the set T of changes of a layer's input, over all Delta in the ball.

    Attributes:
        norm: rho, at least sup ‖delta‖ over T.
        width: W with E sup <g, delta>² <= W² for a standard Gaussian g.
        along: s, at least sup |<delta, phi>| / ‖phi‖², phi the input itself.
        base: ‖phi‖.
    """

    norm: float
    width: float
    along: float
    base: float


@dataclass(frozen=True)
class GaussianLayer:
    """A layer act(V phi): what was seen of it, and the law of the rest.

    Attributes:
        activation: act.
        deviation: sigma, of V's iid entries.
        preactivation: h = V phi, (k,), float64.
        output: ‖act(h)‖.
    """

    activation: Activation
    deviation: float
    preactivation: Float[Tensor, " k"]
    output: float


def expected_change(layer: GaussianLayer, change: InputChange) -> float:
    """An upper bound of E sup ‖act(h + V delta) - act(h)‖ over delta in T, V given V phi = h.

    sqrt of the least over e of sigma² W² / e + P(e), where P bounds E sup of the sum over units of
    sup_t q_k(t) - (t - v_k)² / e, v_k = s h_k + sigma rho g_k, for convex q_k(t) >= (act(h_k + t) - act(h_k))².
    """
    steepest = layer.activation.lipschitz**2
    trials = [fraction / steepest for fraction in torch.linspace(-6, 6, _GRID, dtype=torch.float64).sigmoid().tolist()]
    edges = {e: (layer.deviation * change.width) ** 2 / e for e in trials}
    if layer.activation.name == "relu":
        relu_sum = _relu_sum(layer, change)
        return math.sqrt(min(edge + relu_sum(e) / (1 - e) for e, edge in edges.items()))
    best = math.inf
    for multiple in _TURNS:
        turn = multiple * layer.deviation * change.norm + change.along * layer.preactivation.abs()
        slope = steepest_secant(layer.activation, layer.preactivation, turn)
        sums = (edge + _general_sum(layer, change, e, turn, slope) for e, edge in edges.items() if edge < best)
        best = min(best, min(sums, default=math.inf))
    return math.sqrt(best)


def expected_width(layer: GaussianLayer, change: InputChange) -> float:
    """An upper bound of E sup <g, act(h + V delta) - act(h)> over delta in T; V given V phi = h, g Gaussian."""
    k, sigma = len(layer.preactivation), layer.deviation
    length = float(torch.linalg.vector_norm(layer.preactivation))
    plain = layer.activation.lipschitz * (change.along * _ROOT * length + sigma * math.sqrt(k) * change.width)
    return _relu_width(layer, change) if layer.activation.name == "relu" else plain


def width_steepness(layer: GaussianLayer, change: InputChange) -> float:
    """The Lipschitz constant, in the Gaussian matrix behind V, of the functional whose mean `expected_width` bounds."""
    k = len(layer.preactivation)
    free = 1 + math.sqrt(k / 2) if layer.activation.name == "relu" else math.sqrt(k)
    return free * layer.deviation * layer.activation.lipschitz * change.norm


def _relu_sum(layer: GaussianLayer, change: InputChange) -> Callable[[float], float]:
    """e -> (1 - e) P(e) for ReLU: active units move freely but cannot go below 0, inactive ones must cross 0 first."""
    h, tau = layer.preactivation, layer.deviation * change.norm
    active, shrunk = h[h > 0], max(0.0, 1 - change.along)
    count = len(active)
    crossing = float((tau**2 * _second_hinge(shrunk * h[h <= 0].abs() / tau)).sum())
    along, base = change.along, change.base
    mean, excess = layer.deviation**2 * count, (layer.output / base) ** 2
    stretched = max(0.0, excess - mean) + layer.deviation**2 * math.sqrt(count / 2)
    joint = min(along * change.norm, change.norm**2 / (2 * base))
    traded = mean * change.norm**2 + min(along * base, change.norm) ** 2 * stretched
    traded += 2 * joint * layer.deviation * _ROOT * layer.output

    def bound(e: float) -> float:
        stop = active * (1 - e) / tau
        saved = float((tau**2 * _second_hinge(stop)).sum())
        returned = float((active * tau * _first_hinge(stop)).sum())
        kept = tau**2 * count - saved + (along * layer.output) ** 2
        kept += 2 * along * (tau * _ROOT * layer.output + returned)
        return crossing + min(traded, kept)

    return bound


def _general_sum(
    layer: GaussianLayer, change: InputChange, e: float, turn: Float[Tensor, " k"], slope: Float[Tensor, " k"]
) -> float:
    """P(e) from q(t) = (c |t|)² up to a turning point, (c turn + L (|t| - turn))² past it; c the slope, L Lipschitz."""
    h, tau, lipschitz = layer.preactivation, layer.deviation * change.norm, layer.activation.lipschitz
    shift = change.along * h.abs()
    weight = slope**2 / (1 - e * slope**2)
    offset = (lipschitz - slope) * turn
    threshold = turn * (1 - e * lipschitz**2) + e * lipschitz * offset
    tail = lipschitz**2 / (1 - e * lipschitz**2) * _beyond(tau, shift - offset / lipschitz, threshold - shift)
    square = float((weight * h**2).sum())
    mean = layer.deviation**2 * float(weight.sum())
    spread = layer.deviation**2 * math.sqrt(2 * float((weight**2).sum()))
    cross = layer.deviation * _ROOT * math.sqrt(float((weight * h).square().sum()))
    stretched = max(0.0, square / change.base**2 - mean) + spread / 2
    joint = min(change.along * change.norm, change.norm**2 / (2 * change.base))
    total = mean * change.norm**2 + min(change.along * change.base, change.norm) ** 2 * stretched
    return total + 2 * joint * cross + float(torch.where(slope < lipschitz, tail, 0 * tail).sum())


def _relu_width(layer: GaussianLayer, change: InputChange) -> float:
    """The bound of `expected_width` that sees that only the active units move freely."""
    h, sigma = layer.preactivation, layer.deviation
    tau, shrunk = sigma * change.norm, max(0.0, 1 - change.along)
    count = int((h > 0).sum())
    active, inactive = shrunk * h[h > 0] / tau, shrunk * h[h <= 0].abs() / tau
    separate = change.along * _ROOT * layer.output + tau * math.sqrt(count) / 2
    joint = change.norm * math.hypot(layer.output / change.base, sigma * math.sqrt(count))
    half_normal_mean = 1 / math.sqrt(2 * math.pi)
    fixed = min(separate, joint) + half_normal_mean * tau * float(_first_hinge(active).sum())

    # y E (sigma rho g + theta y / 2 - a)_+ is convex in y, so on each cell of y = g_+ it lies below its chord.
    edges, weights, beyond = _chords()

    def bound(theta: float) -> float:
        hinges = [float(_first_hinge(inactive - 0.5 * theta * y / tau).sum()) for y in edges]
        crossing = sum(weight * y * hinge for weight, y, hinge in zip(weights, edges, hinges, strict=True))
        # Past the last edge (x + theta y / 2)_+ <= (x)_+ + theta y / 2.
        crossing += beyond[0] * hinges[0] + 0.5 * theta * beyond[1] * len(inactive) / tau
        return (sigma * change.width) ** 2 / (2 * theta) + theta * count / 2 + tau * crossing

    ideal = sigma * change.width / math.sqrt(max(count, 1))
    return fixed + min(bound(ideal * factor) for factor in (0.7, 0.85, 1.0))


def _chords() -> tuple[list[float], list[float], tuple[float, float]]:
    """Edges of cells of y = g_+, weights, and E of y and y² beyond the last edge.

    E F(y) <= sum(weights * F(edges)) for convex F with F(0) = 0, up to what is beyond the last edge.
    """
    edges = [0.5 * index for index in range(17)]
    density = [math.exp(-0.5 * y * y) / math.sqrt(2 * math.pi) for y in edges]
    above = [0.5 * math.erfc(y / math.sqrt(2)) for y in edges]
    weights = [0.0] * len(edges)
    for cell in range(len(edges) - 1):
        mass, mean = above[cell] - above[cell + 1], density[cell] - density[cell + 1]
        right = (mean - mass * edges[cell]) / (edges[cell + 1] - edges[cell])
        weights[cell] += mass - right
        weights[cell + 1] += right
    return edges, weights, (density[-1], edges[-1] * density[-1] + above[-1])


def _first_hinge(b: Float[Tensor, " units"]) -> Float[Tensor, " units"]:
    """E (g - b)_+ for a standard Gaussian g."""
    density = torch.exp(-0.5 * b**2) / math.sqrt(2 * math.pi)
    return (density - b * torch.special.ndtr(-b)).clamp(min=0)


def _second_hinge(b: Float[Tensor, " units"]) -> Float[Tensor, " units"]:
    """E (g - b)_+²."""
    density = torch.exp(-0.5 * b**2) / math.sqrt(2 * math.pi)
    return ((1 + b**2) * torch.special.ndtr(-b) - b * density).clamp(min=0)


def _beyond(tau: float, shift: Float[Tensor, " units"], threshold: Float[Tensor, " units"]) -> Float[Tensor, " units"]:
    """E of (tau |g| + shift)² where tau |g| >= threshold."""
    b = (threshold / tau).clamp(min=0)
    density = torch.exp(-0.5 * b**2) / math.sqrt(2 * math.pi)
    tail = torch.special.ndtr(-b)
    return 2 * (tau**2 * (b * density + tail) + 2 * tau * shift * density + shift**2 * tail)
