"""A layer's attention, or one head of it, as a map of the rows that enter it: from a pretrained
model's own weights."""

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from wordsens.errors import InputError
from wordsens.maps.attention.given_weights import CAUSAL, AttentionBias, AttentionFeatures
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.maps.transformer.stack import Stack, weight_input_first
from wordsens.text.matrix import TextMatrix

_PROBED, _TOLERANCE = 5, 1e-4


@torch.no_grad()
def entering_attention(phi: TransformerFeatures, X: TextMatrix, layer: int) -> TextMatrix:
    """The text with the rows that enter the attention of `layer` (1 to L) when X enters the model,
    in float64.

    They are the hidden states that enter the layer, behind its norm where that stands before the
    attention.
    """
    rows = _entering(phi.stack, phi.accept(X.rows).to(phi.stack.dtype).unsqueeze(0), layer)
    return replace(X, rows=rows[0].double())


@torch.no_grad()
def trained_attention(
    phi: TransformerFeatures, layer: int, head: int | None = None
) -> AttentionFeatures:
    """A head's part of the attention output of its layer, from the rows that enter the attention;
    in float64.

    With head None the sum of all heads, without the projection's bias. The model's weights, biases
    and causal mask, as they are stored. Such a map has a certificate; `entering_attention` gives
    its rows.

    Raises:
        InputError: no such layer or head; an architecture whose scores depend on places besides
            (rotary angles, position biases), or that makes something else of its weights.

    >>> model = TransformerFeatures.from_pretrained("minilm")
    >>> phi = trained_attention(model, layer=3, head=5)
    >>> (X,) = model.embed("I love her much")
    >>> phi(entering_attention(model, X, layer=3)).shape
    torch.Size([6, 384])
    """
    stack = phi.stack
    if not 1 <= layer <= stack.layers or (head is not None and not 0 <= head < stack.heads):
        raise InputError(
            f"layer {layer}, head {head}: {stack.name} has heads 0 to {stack.heads - 1} in layers "
            "1 to "
            f"{stack.layers}"
        )
    parts = stack.projections[(layer - 1) * len(stack.projections) // stack.layers][:-1]
    split = _three(parts)
    chosen = range(stack.heads) if head is None else [head]
    size = stack.head_slice(layer, 0)[1].shape[0]
    if any(weight.shape[1] != stack.heads * size for weight, _ in split):
        raise _other_scores(stack)
    columns = [slice(head * size, (head + 1) * size) for head in chosen]

    def stacked(whole: Tensor) -> Tensor:
        taken = torch.stack([whole[..., of_head] for of_head in columns]).double()
        return taken[0] if len(columns) == 1 else taken

    output = torch.stack([stack.head_slice(layer, head)[1] for head in chosen]).double()
    query, key, value = (stacked(weight) for weight, _ in split)
    named = zip(("query", "key", "value"), (bias for _, bias in split), strict=True)
    attention = AttentionFeatures(
        query,
        key,
        value,
        output[0] if len(columns) == 1 else output,
        mask=CAUSAL if stack.causal else None,
        bias=AttentionBias(
            **{name: None if bias is None else stacked(bias) for name, bias in named}
        ),
    )
    ids = (
        torch.arange(_PROBED, device=stack.device)
        .unsqueeze(0)
        .clamp(max=stack.model.config.vocab_size - 1)
    )
    rows = stack.entering(ids)
    expected = torch.stack(stack.heads_outputs(rows, layer, chosen)).sum(dim=0).double()
    apart = (attention(_entering(stack, rows, layer)) - expected).abs().max()
    tolerance = max(_TOLERANCE, 8 * torch.finfo(stack.dtype).eps)
    if not bool(apart <= tolerance * (1 + expected.abs().max())):
        raise _other_scores(stack)
    attention.name = f"{stack.name} layer {layer} attention" + (
        "" if head is None else f" head {head}"
    )
    return attention


def _entering(stack: Stack, rows: Float[Tensor, "b n d"], layer: int) -> Float[Tensor, "b n d"]:
    return stack.reaching(rows, [parts[0] for parts in stack.projections], layer)


def _other_scores(stack: Stack) -> InputError:
    return InputError(
        f"the attention of {stack.name!r} is not softmax(Q K^T / sqrt(size)) V of its weights "
        "alone: its scores may "
        "depend on places too, so there is no map of it by itself"
    )


def _three(parts: list[nn.Module]) -> list[tuple[Tensor, Tensor | None]]:
    """Weights, input first, and biases of queries, keys and values; one layer may hold all
    three."""
    layers = [(weight_input_first(part), getattr(part, "bias", None)) for part in parts]
    if len(layers) != 1:
        return layers[:3]
    weight, bias = layers[0]
    return list(
        zip(weight.chunk(3, dim=1), (None,) * 3 if bias is None else bias.chunk(3), strict=True)
    )
