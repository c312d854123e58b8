"""A layer's attention, or one head of it, as a map of the rows that enter it, with a pretrained
model's weights."""

from dataclasses import replace

import torch
from torch import Tensor, nn

from wordsens.errors import InputError
from wordsens.maps.attention.given_weights import CAUSAL, AttentionBias, AttentionFeatures
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.models.heads import input_first
from wordsens.text.matrix import TextMatrix

_PROBED, _TOLERANCE = 5, 1e-4


@torch.no_grad()
def entering_attention(phi: TransformerFeatures, X: TextMatrix, layer: int) -> TextMatrix:
    """The text with the rows that enter the attention of `layer` (1 to L) when X enters the model,
    in float64.

    They are the hidden states that enter the layer, after its norm if that comes before the
    attention.
    """
    rows = phi.accept(X.rows).to(phi.model.dtype).unsqueeze(0)
    return replace(X, rows=phi.heads.entering(rows, layer)[0].double())


@torch.no_grad()
def trained_attention(
    phi: TransformerFeatures, layer: int, head: int | None = None
) -> AttentionFeatures:
    """A head's part of the attention output of its layer, from the rows that enter the attention;
    in float64.

    With head None it is the sum of all heads, without the projection's bias. Weights, biases and
    causal mask are the model's. Such a map has a certificate; `entering_attention` gives its rows.

    Raises:
        InputError: no such layer or head; an architecture whose scores also depend on positions
            (rotary angles, position biases), or that uses its weights in another way.

    >>> model = TransformerFeatures.from_pretrained("minilm")
    >>> phi = trained_attention(model, layer=3, head=5)
    >>> (X,) = model.embed("I love her much")
    >>> phi(entering_attention(model, X, layer=3)).shape
    torch.Size([6, 384])
    """
    model, heads = phi.model, phi.heads
    if not 1 <= layer <= model.layers or (head is not None and not 0 <= head < model.heads):
        raise InputError(
            f"layer {layer}, head {head}: {model.name} has heads 0 to {model.heads - 1} in layers "
            f"1 to {model.layers}"
        )
    split = _three(heads.parts(layer)[:-1])
    if any(weight.shape[1] != model.heads * heads.size for weight, _ in split):
        raise _other_scores(model.name)
    chosen = range(model.heads) if head is None else [head]

    def stacked(whole: Tensor) -> Tensor:
        taken = torch.stack([whole[..., heads.columns(each)] for each in chosen]).double()
        return taken[0] if len(chosen) == 1 else taken

    query, key, value = (stacked(weight) for weight, _ in split)
    output = torch.stack([heads.output_weight(layer, each) for each in chosen]).double()
    named = zip(("query", "key", "value"), (bias for _, bias in split), strict=True)
    biases = {name: None if bias is None else stacked(bias) for name, bias in named}
    attention = AttentionFeatures(
        query,
        key,
        value,
        output[0] if len(chosen) == 1 else output,
        mask=CAUSAL if model.causal else None,
        bias=AttentionBias(**biases),
    )
    ids = torch.arange(_PROBED).unsqueeze(0).clamp(max=model.config.vocab_size - 1)
    rows = model.entering(ids)
    expected = torch.stack(heads.outputs(rows, layer, chosen)).sum(dim=0).double()
    apart = (attention(heads.entering(rows, layer)) - expected).abs().max()
    tolerance = max(_TOLERANCE, 8 * torch.finfo(model.dtype).eps)
    if not bool(apart <= tolerance * (1 + expected.abs().max())):
        raise _other_scores(model.name)
    attention.name = f"{model.name} layer {layer} attention"
    attention.name += "" if head is None else f" head {head}"
    return attention


def _other_scores(name: str) -> InputError:
    return InputError(
        f"the attention of {name!r} is not softmax(Q K^T / sqrt(size)) V of its weights alone: its "
        "scores may also depend on positions; use TransformerFeatures with this layer and head"
    )


def _three(parts: list[nn.Module]) -> list[tuple[Tensor, Tensor | None]]:
    """Weights, input first, and biases of queries, keys and values; one linear layer may hold all
    three."""
    layers = [(input_first(part), getattr(part, "bias", None)) for part in parts]
    if len(layers) != 1:
        return layers[:3]
    weight, bias = layers[0]
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    return list(zip(weight.chunk(3, dim=1), biases, strict=True))
