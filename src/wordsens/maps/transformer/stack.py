"""Running a transformer from the rows that enter its first layer, by hooks on its own forward pass.

The model runs on placeholder tokens; a hook puts our rows in the place of what enters the first
layer. Masks, positions, rotary angles and position biases are thus the model's own, whatever the
architecture. Where no list of layers is recognised, the rows take the place of the token
embeddings. A second hook ends the pass where the answer is known.
"""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from wordsens.errors import InputError, first_line
from wordsens.text.hooks import call, layers_and_states, rows_entering, tensor_at
from wordsens.text.transformer_encoder import embedding_rows, encoder_part

_PROBED_TOKENS, _TOLERANCE = 5, 1e-4
_STEP, _SLOPE_TOLERANCE = 1e-3, 0.2


class Stack:
    """A transformer as a function of the rows that enter its first layer.

    Args:
        model: a Hugging Face model, with or without a head for a task; it is frozen. Of an encoder
            with a decoder, the encoder gives the states.
        name: for messages.
        frame: the special tokens before and after every text: their places are given them instead
            of placeholders, for models that look for them.

    Attributes:
        base: the model without a head.
        blocks: its layers; None where no list of them is recognised.
        layers: L; layer 0 is what enters the first layer, layer L the model's last hidden state.
        heads: attention heads a layer; 0 where the configuration does not tell.
        dimension: d.
        dtype, device: where the model computes.
        causal: whether a row can move only itself and later rows.
        probe_ids: a few tokens to try things on, (1, n).

    Raises:
        InputError: a model whose numbers depend on the tokens in other ways, or that has no
            gradient.
    """

    def __init__(
        self, model: Any, name: str, frame: tuple[Sequence[int], Sequence[int]] = ((), ())
    ):
        self.model = model.eval().requires_grad_(False)
        self.name, self._frame = name, frame
        self.base: Any = encoder_part(getattr(model, "base_model", model))
        weight = next(model.parameters())
        self.dtype, self.device = weight.dtype, weight.device
        padding = getattr(model.config, "pad_token_id", None)
        # Some models count positions, or find a text's last token, by looking for padding.
        self._placeholders = [number for number in range(_PROBED_TOKENS + 1) if number != padding]
        if padding is None:
            # Classifiers on decoders refuse batches otherwise; no token has this number, so no row
            # counts as padding.
            model.config.pad_token_id = -1
        self.heads = int(getattr(model.config, "num_attention_heads", 0))
        if any(".quantized." in type(part).__module__ for part in model.modules()):
            raise InputError(
                f"the model {name!r} is quantised: its layers have no gradient, so it has no map"
            )
        try:
            with torch.inference_mode(False), torch.enable_grad():
                self._probe()
        except InputError:
            raise
        except (AttributeError, TypeError, ValueError, LookupError, RuntimeError) as error:
            raise InputError(
                f"the model {name!r} cannot be run from rows ({type(error).__name__}: "
                f"{first_line(error)}), so it has "
                "no map; pass a function from texts to vectors to as_model"
            ) from error

    def __reduce__(self) -> tuple[Callable[..., "Stack"], tuple[Any, ...]]:
        """Pickled as the model's class, settings and weights: transformers hangs local functions on
        its modules."""
        return _rebuilt, (
            type(self.model),
            self.model.config,
            self.model.state_dict(),
            self.name,
            self._frame,
        )

    def run(self, rows: Float[Tensor, "b n d"], module: Any, **options: Any) -> Any:
        """What the model, its base or a function of `input_ids` around it gives when the rows enter
        the first layer."""
        ids = torch.full(rows.shape[:2], self._placeholders[0], device=self.device)
        before, after = self._frame
        if rows.shape[1] > len(before) + len(after):
            ids[:, : len(before)] = torch.tensor(before, dtype=torch.long)
            ids[:, rows.shape[1] - len(after) :] = torch.tensor(after, dtype=torch.long)
        with rows_entering(None if self.blocks is None else self.blocks[0], self._embeddings, rows):
            return call(module, ids, **options) if isinstance(module, nn.Module) else module(ids)

    def states(self, rows: Float[Tensor, "b n d"], layer: int) -> Float[Tensor, "b n d"]:
        """`hidden_states[layer]` when the rows enter the first layer; layers above are not run."""
        if layer == self.layers:
            return self.run(rows, self.base).last_hidden_state
        if self.blocks is None:
            return self.run(rows, self.base, output_hidden_states=True).hidden_states[layer]
        if layer == 0:
            return rows
        run = partial(self.run, rows, self.base)
        return tensor_at(self.blocks, run, number=layer, output=True)[:, : rows.shape[1]]

    @torch.no_grad()
    def all_states(self, ids: Int[Tensor, "b n"]) -> list[Float[Tensor, "b n d"]]:
        """The states of every layer, 0 to L, when the model reads these tokens."""
        return list(call(self.base, ids.to(self.device), output_hidden_states=True).hidden_states)

    def heads_outputs(
        self, rows: Float[Tensor, "b n d"], layer: int, heads: Sequence[int]
    ) -> list[Float[Tensor, "b n d"]]:
        """The additions of heads to the attention output of `layer` (1 to L): their values through
        their part of W_O.

        With the projection's bias, the outputs of all heads sum to the layer's attention output.
        """
        inputs = self.reaching(rows, [projections[-1] for projections in self.projections], layer)
        parts = [self.head_slice(layer, head) for head in heads]
        return [inputs[..., columns] @ weight for columns, weight in parts]

    def reaching(
        self, rows: Float[Tensor, "b n d"], parts: Sequence[nn.Module], layer: int
    ) -> Tensor:
        """What enters such a part of `layer` when the rows enter the first layer; `parts` has one
        of every block."""
        return tensor_at(parts, partial(self.run, rows, self.base), number=layer)[
            :, : rows.shape[1]
        ]

    def head_slice(self, layer: int, head: int) -> tuple[slice, Float[Tensor, "size d"]]:
        """The columns of the output projection's input that belong to a head, and its part of the
        weight."""
        projection = self.projections[(layer - 1) * len(self.projections) // self.layers][-1]
        weight = weight_input_first(projection)
        size = weight.shape[0] // self.heads
        columns = slice(head * size, (head + 1) * size)
        return columns, weight[columns]

    @cached_property
    def projections(self) -> list[list[nn.Module]]:
        """Of every block the linear layers of its attention, in the order in which they are called:
        the last one is the output projection, the others make queries, keys and values.

        The first of a block's linear layers makes queries; those that read the same rows make keys
        and values, and the first that reads something else is the output projection.

        Raises:
            InputError: no such layers, or no list of blocks.
        """
        calls: list[tuple[nn.Module, Tensor]] = []
        blocks = self.blocks if self.blocks and self.heads else []
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
            self.all_states(self.probe_ids)
        finally:
            for handle in handles:
                handle.remove()
        projections = []
        for number in range(len(blocks)):
            reading = [
                (part, rows) for part, rows in calls if linear[part] == number and rows.ndim == 3
            ]
            # DeBERTa also projects its table of relative positions, which has another number of
            # rows.
            reading = [
                (part, rows) for part, rows in reading if rows.shape[1] in reading[0][1].shape[:2]
            ]
            queries = [part for part, rows in reading if rows is reading[0][1]]
            others = [
                part for part, rows in reading if rows is not reading[0][1] and part not in queries
            ]
            projections.append(list(dict.fromkeys([*queries, *others[:1]])))
        size = int(
            getattr(self.model.config, "head_dim", None) or self.dimension // max(self.heads, 1)
        )
        shapes = {
            tuple(weight_input_first(parts[-1]).shape) for parts in projections if len(parts) > 1
        }
        if not projections or shapes != {(self.heads * size, self.dimension)}:
            raise InputError(
                f"the attention heads of {self.name!r} are not recognised: the output projection "
                "of its layers was not "
                "found; leave `head` out"
            )
        return projections

    def logits(
        self, rows: Float[Tensor, "b n d"], *, last_only: bool = False
    ) -> Float[Tensor, "b ..."]:
        """The task head's logits: of every row for a language model, of the text for a classifier.

        With `last_only`, those of the last row alone, (b, vocabulary).
        """
        # Newer models can leave the other rows' logits out, which are large.
        logits = self.run(rows, self.model, **({"logits_to_keep": 1} if last_only else {})).logits
        return logits[:, -1] if last_only and logits.ndim == 3 else logits

    def attention(self, rows: Float[Tensor, "b n d"], layer: int) -> Float[Tensor, "b heads n n"]:
        """The attention weights of `layer` (1 to L): entry (j, i) is how much row j takes from row
        i."""
        weights = self.run(rows, self.base, output_attentions=True).attentions
        if not weights or weights[layer - 1] is None:
            raise InputError(
                f"the model {self.name!r} does not give its attention weights; load it with "
                "attention='eager', a model "
                "of your own with attn_implementation='eager'"
            )
        return weights[layer - 1]

    @torch.no_grad()
    def entering(
        self, ids: Int[Tensor, "b n"], types: Int[Tensor, "b n"] | None = None
    ) -> Float[Tensor, "b n d"]:
        """The rows that enter the first layer when the model reads these tokens, of these types if
        it knows types."""
        named = {} if types is None else {"token_type_ids": types.to(self.device)}
        run = partial(call, self.base, ids.to(self.device), **named)
        if self.blocks is None:
            return tensor_at([self._embeddings], run, output=True)
        return tensor_at(self.blocks[:1], run)[:, : ids.shape[1]]

    def _probe(self) -> None:
        """Find the layers, compare the run from rows with the model's own run of other tokens, and
        try a gradient."""
        known = embedding_rows(self.base)
        few = [number for number in self._placeholders if known is None or number < known][
            :_PROBED_TOKENS
        ]
        self.probe_ids = torch.tensor([few], device=self.device)
        self._embeddings: Any = (
            self.base.get_input_embeddings() if hasattr(self.base, "get_input_embeddings") else None
        )
        self.blocks, expected = layers_and_states(self.base, self.probe_ids)
        self.layers = len(expected) - 1
        if self.blocks is None and self._embeddings is None:
            raise LookupError("neither a list of layers nor a table of tokens")
        rows = self.entering(self.probe_ids).requires_grad_()
        self.dimension = rows.shape[-1]
        last = self.states(rows, self.layers)
        along = torch.randn(last.shape, generator=torch.Generator().manual_seed(0)).to(last)
        slope = torch.autograd.grad((last * along).sum(), rows)[0] if last.requires_grad else None
        with torch.no_grad():
            if slope is None or not self._is_gradient(slope, rows, along):
                raise InputError(
                    f"the model {self.name!r} has no gradient in {self.dtype}, or one that is not "
                    "that of its numbers "
                    "(as where it is quantised), so it has no map"
                )
            ours = [self.states(rows, layer) for layer in range(self.layers)] + [last]
            tolerance = max(_TOLERANCE, 8 * torch.finfo(self.dtype).eps)
            if not all(
                bool((state - own).abs().max() <= tolerance * (1 + own.abs().max()))
                for state, own in zip(ours, expected, strict=True)
            ):
                raise InputError(
                    f"the hidden states of the model {self.name!r} depend on the tokens in other "
                    "ways than by the rows "
                    "that enter its first layer, so it has no map; pass a function from texts to "
                    "vectors to as_model"
                )
            moved = rows.clone()
            moved[:, -1] = -moved[:, -1].flip(-1) + 1
            self.causal = torch.equal(self.states(moved, self.layers)[:, :-1], last[:, :-1])

    def _is_gradient(self, slope: Tensor, rows: Tensor, along: Tensor) -> bool:
        """Whether the last states' change along the slope is what the slope foretells, where the
        dtype can tell."""
        step = _STEP * rows.norm() / slope.norm() * slope
        if self.dtype not in (torch.float32, torch.float64):
            return bool(step.isfinite().all())
        change = sum(sign * self.states(rows + sign * step, self.layers) for sign in (1, -1))
        expected = 2 * (slope * step).sum()
        return bool(((change * along).sum() - expected).abs() <= _SLOPE_TOLERANCE * expected)


def weight_input_first(part: Any) -> Float[Tensor, "inputs outputs"]:
    """The weight of a linear layer, or of GPT-2's Conv1D, which keeps it input first."""
    return part.weight.T if isinstance(part, nn.Linear) else part.weight


def _rebuilt(kind: type, config: Any, weights: dict[str, Tensor], name: str, frame: Any) -> Stack:
    first = next(tensor for tensor in weights.values() if tensor.is_floating_point())
    model = kind(config).to(dtype=first.dtype, device=first.device)
    model.load_state_dict(weights)
    return Stack(model, name, frame)
