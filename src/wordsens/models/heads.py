"""The attention heads of a transformer: their weights, and what each adds to its layer."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from wordsens.errors import InputError, argument
from wordsens.models.hooks import tensor_at
from wordsens.models.text_model import TextModel


class Heads:
    """The attention heads of every layer.

    Attributes:
        projections: for each block the linear layers of its attention, in the order of their calls:
            the last one is the output projection, the others make queries, keys and values.

    Raises:
        InputError: no such layers, or no list of blocks.
    """

    def __init__(self, model: TextModel):
        self.model = model
        blocks = model.blocks if model.blocks and model.heads else []
        self.projections = _projections(model, blocks)
        size = getattr(model.config, "head_dim", None) or model.dimension // max(model.heads, 1)
        self.size = int(size)
        expected = {(model.heads * self.size, model.dimension)}
        last = [parts[-1] for parts in self.projections if len(parts) > 1]
        if not self.projections or {tuple(input_first(part).shape) for part in last} != expected:
            raise InputError(
                f"the attention heads of {model.name!r} are not recognised: the output projection "
                f"of its layers was not found; leave {argument('head')} out"
            )

    def parts(self, layer: int) -> list[nn.Module]:
        """The linear layers of the attention of `layer` (1 to L); a model may call one block
        several times."""
        return self.projections[(layer - 1) * len(self.projections) // self.model.layers]

    def output_weight(self, layer: int, head: int) -> Float[Tensor, "size d"]:
        """The head's part of the output projection."""
        return input_first(self.parts(layer)[-1])[self.columns(head)]

    def outputs(
        self, rows: Float[Tensor, "b n d"], layer: int, heads: Sequence[int]
    ) -> list[Float[Tensor, "b n d"]]:
        """What each head adds to the attention output of `layer` (1 to L) when these rows enter the
        first layer: its values times its part of W_O.

        With the projection's bias, the outputs of all heads sum to the layer's attention output.
        """
        inputs = self._reaching(rows, layer, -1)
        return [inputs[..., self.columns(head)] @ self.output_weight(layer, head) for head in heads]

    def entering(self, rows: Float[Tensor, "b n d"], layer: int) -> Float[Tensor, "b n d"]:
        """The rows that enter the attention of `layer`, after its norm if that comes before the
        attention."""
        return self._reaching(rows, layer, 0)

    def _reaching(self, rows: Float[Tensor, "b n d"], layer: int, place: int) -> Tensor:
        parts = [parts[place] for parts in self.projections]
        run = partial(self.model.run, rows, self.model.base)
        return tensor_at(parts, run, number=layer)[:, : rows.shape[1]]

    def columns(self, head: int) -> slice:
        """The columns of a projection's output that belong to a head."""
        return slice(head * self.size, (head + 1) * self.size)


def attention_weights(
    model: TextModel, rows: Float[Tensor, "b n d"], layer: int
) -> Float[Tensor, "b heads n n"]:
    """The attention weights of `layer` (1 to L): entry (j, i) is how much row j takes from row
    i."""
    weights = model.run(rows, model.base, output_attentions=True).attentions
    if not weights or weights[layer - 1] is None:
        raise InputError(
            f"the model {model.name!r} does not give its attention weights; load it with "
            "attention='eager', or your own model with attn_implementation='eager'"
        )
    return weights[layer - 1]


@torch.no_grad()
def _projections(model: TextModel, blocks: Sequence[nn.Module]) -> list[list[nn.Module]]:
    """The first of a block's linear layers makes queries; those that read the same rows make keys
    and values, and the first that reads something else is the output projection."""
    calls: list[tuple[nn.Module, Tensor]] = []
    linear = {
        part: number
        for number, block in enumerate(blocks)
        for part in block.modules()
        if isinstance(part, nn.Linear) or type(part).__name__ == "Conv1D"
    }
    handles = [
        part.register_forward_pre_hook(lambda part, inputs: calls.append((part, inputs[0])))
        for part in linear
    ]
    try:
        model.hidden_states(model.probe_ids, model.layers)
    finally:
        for handle in handles:
            handle.remove()
    projections = []
    for number in range(len(blocks)):
        reading = [each for each in calls if linear[each[0]] == number and each[1].ndim == 3]
        # DeBERTa also projects its table of relative positions, which has another number of rows.
        shape = reading[0][1].shape[:2]
        reading = [(part, rows) for part, rows in reading if rows.shape[1] in shape]
        queries = [part for part, rows in reading if rows is reading[0][1]]
        others = [part for part, _ in reading if part not in queries]
        projections.append(list(dict.fromkeys([*queries, *others[:1]])))
    return projections


def input_first(part: Any) -> Float[Tensor, "inputs outputs"]:
    """The weight of a linear layer, or of GPT-2's Conv1D, which keeps it input first."""
    return part.weight.T if isinstance(part, nn.Linear) else part.weight
