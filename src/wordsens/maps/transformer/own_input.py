"""A layer's attention, or one head of it, as a map of the rows that enter it: from a pretrained model's own weights."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from wordsens.errors import InputError
from wordsens.maps.attention.given_weights import CAUSAL, AttentionBias, AttentionFeatures
from wordsens.maps.transformer.stack import Stack

INPUTS = ("the model's", "its own")

_PROBED, _TOLERANCE = (0, 1, 2, 3, 4), 1e-4


@torch.no_grad()
def entering_attention(stack: Stack, rows: Float[Tensor, "b n d"], layer: int) -> Float[Tensor, "b n d"]:
    """The rows that enter the attention of `layer` (1 to L), when `rows` enter the first layer.

    They are the hidden states that enter the layer, behind its norm where that stands before the attention.
    """
    return stack.reaching(rows, _projections(stack, layer)[0])


@torch.no_grad()
def own_attention(stack: Stack, layer: int, head: int | None) -> AttentionFeatures:
    """A head's part of the attention output of its layer, from the rows that enter the attention; in float64.

    With head None the sum of all heads, without the projection's bias. The model's weights, biases and causal mask, as
    they are stored.

    Raises:
        InputError: an architecture whose scores depend on places besides (rotary angles, position biases), or that
            makes something else of its weights.
    """
    weights, biases = zip(*_split(_projections(stack, layer)), strict=True)
    heads = range(stack.heads) if head is None else [head]
    size = weights[0].shape[1] // stack.heads
    columns = [slice(at * size, (at + 1) * size) for at in heads]

    def stacked(whole: Tensor) -> Tensor:
        parts = torch.stack([whole[..., at] for at in columns]).double()
        return parts[0] if len(columns) == 1 else parts

    named = zip(("query", "key", "value"), biases, strict=True)
    output = torch.stack([stack.anatomy.head_slice(layer - 1, at)[1] for at in heads]).double()
    query, key, value = (stacked(weight) for weight in weights)
    phi = AttentionFeatures(
        query,
        key,
        value,
        output[0] if len(columns) == 1 else output,
        mask=CAUSAL if stack.causal else None,
        bias=AttentionBias(**{name: None if bias is None else stacked(bias) for name, bias in named}),
    )
    _require_the_model_s(stack, phi, layer, list(heads))
    return phi


def _require_the_model_s(stack: Stack, phi: AttentionFeatures, layer: int, heads: list[int]) -> None:
    ids: Int[Tensor, "1 n"] = torch.tensor([_PROBED], device=stack.device)
    rows = stack.entering(ids.clamp(max=stack.model.config.vocab_size - 1))
    expected = torch.stack(stack.heads_outputs(rows, layer, heads)).sum(dim=0).double()
    apart = (phi(entering_attention(stack, rows, layer)) - expected).abs().max()
    tolerance = max(_TOLERANCE, 8 * torch.finfo(stack.dtype).eps)
    if not bool(apart <= tolerance * (1 + expected.abs().max())):
        raise InputError(
            f"the attention of {stack.name!r} is not softmax(Q K^T / sqrt(size)) V of its weights, so input='its own' "
            "is not known of it; leave `input` out"
        )


def _projections(stack: Stack, layer: int) -> tuple[nn.Module, ...]:
    found = stack.anatomy.projections
    if found is None:
        raise InputError(
            f"input='its own' is not known of the architecture {stack.model.config.model_type!r} of {stack.name!r}, "
            "whose scores depend on places too; leave `input` out"
        )
    return found[layer - 1]


def _split(parts: tuple[nn.Module, ...]) -> list[tuple[Tensor, Tensor | None]]:
    """Weights, input first, and biases of queries, keys and values; one module may hold all three."""
    found = [_input_first(part) for part in parts]
    if len(found) == 3:
        return found
    weight, bias = found[0]
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    return list(zip(weight.chunk(3, dim=1), biases, strict=True))


def _input_first(part: nn.Module) -> tuple[Tensor, Tensor | None]:
    weight, bias = part.weight, part.bias
    assert isinstance(weight, Tensor)
    # GPT-2 keeps weights input first; linear layers output first.
    return (weight.T if isinstance(part, nn.Linear) else weight), bias if isinstance(bias, Tensor) else None
