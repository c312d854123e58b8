"""Running a Hugging Face model from the rows that enter its first block, and stopping where the answer is known.

The model's own forward pass is run on placeholder tokens; a hook puts our rows in the place of what would enter the
first block. Masks, positions, rotary angles and position biases are thus the model's own, for every architecture, and
are the same whatever the rows are. A second hook ends the pass as soon as what was asked for is there.
"""

import copy
import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from wordsens.errors import InputError
from wordsens.maps.transformer.families import Anatomy, anatomy_of
from wordsens.text.transformer_encoder import tensor_at

_PROBED_TOKENS = 5
_PROBE_TOLERANCE = 1e-4


class Stack:
    """The blocks of a transformer as a function of the rows that enter them.

    Args:
        model: a Hugging Face model, with or without a head for a task; it is frozen.
        name: for messages.

    Attributes:
        layers: L; layer 0 is what enters the first block, layer L the model's last hidden state.
        heads: attention heads a layer.
        dimension: d.
        dtype: in which the model computes.
        causal: whether a row can move only itself and later rows.
        resumes: whether the pass can go on from a prefix whose keys and values are kept.

    Raises:
        InputError: an architecture that is not known, or whose hidden states are not what its own
            `output_hidden_states` gives.
    """

    def __init__(self, model: Any, name: str):
        self.model = model.eval().requires_grad_(False)
        self.name = name
        self.anatomy: Anatomy = anatomy_of(model, name)
        self.layers, self.heads = len(self.anatomy.blocks), self.anatomy.heads
        self.dimension = int(model.config.hidden_size)
        self.dtype: torch.dtype = next(model.parameters()).dtype
        self.device: torch.device = next(model.parameters()).device
        padding = model.config.pad_token_id
        # A token that is not padding: some models count positions, or find the last token, by looking for padding.
        self._placeholder = 1 if padding in (None, 0) else 0
        if padding is None:
            # Classifiers on decoders refuse batches otherwise; no token has this number, so no row counts as padding.
            model.config.pad_token_id = -1
        self.causal = self.resumes = False
        self._twin: Stack | None = None
        self._probe()

    def __reduce__(self) -> tuple[Callable[..., "Stack"], tuple[Any, ...]]:
        """Pickled as the model's class, settings and weights: transformers hangs local functions on its modules."""
        return _rebuilt, (type(self.model), self.model.config, self.model.state_dict(), self.name)

    def states(self, rows: Float[Tensor, "b n d"], layer: int) -> Float[Tensor, "b n d"]:
        """`hidden_states[layer]` when the rows enter the first block; blocks above are not run."""
        if layer == 0:
            return rows
        if layer == self.layers:
            return self._pass(rows, self.anatomy.base).last_hidden_state
        return tensor_at(self.anatomy.blocks[layer - 1], lambda: self._pass(rows, self.anatomy.base), output=True)

    def padded_states(self, rows: Float[Tensor, "b n d"], mask: Int[Tensor, "b n"]) -> Float[Tensor, "b n d"]:
        """The last hidden states of texts of several lengths; rows where the mask is 0 stand behind a text's own."""
        return self._pass(rows, self.anatomy.base, attention_mask=mask).last_hidden_state

    @torch.no_grad()
    def all_states(self, ids: Int[Tensor, "b n"]) -> list[Float[Tensor, "b n d"]]:
        """The states of every layer, 0 to L, when the model reads these tokens."""
        found = self.anatomy.base(input_ids=ids.to(self.device), output_hidden_states=True, use_cache=False)
        return list(found.hidden_states)

    def head_outputs(self, rows: Float[Tensor, "b n d"], layer: int, head: int) -> Float[Tensor, "b n d"]:
        """The addition of one head to the attention output of `layer` (1 to L): its values through its part of W_O.

        The heads' outputs and the projection's bias sum to the layer's attention output.
        """
        return self.heads_outputs(rows, layer, [head])[0]

    def heads_outputs(
        self, rows: Float[Tensor, "b n d"], layer: int, heads: Iterable[int]
    ) -> list[Float[Tensor, "b n d"]]:
        """`head_outputs` of several heads, from one pass."""
        inputs = self.reaching(rows, self.anatomy.outputs[layer - 1])
        slices = [self.anatomy.head_slice(layer - 1, head) for head in heads]
        return [inputs[..., columns] @ weight for columns, weight in slices]

    def reaching(self, rows: Float[Tensor, "b n d"], part: nn.Module) -> Tensor:
        """The input of a part of the model when the rows enter the first block."""
        return tensor_at(part, lambda: self._pass(rows, self.anatomy.base))

    def logits(self, rows: Float[Tensor, "b n d"], *, last_only: bool = False) -> Float[Tensor, "b ..."]:
        """The task head's logits: of every row for a language model, of the text for a classifier.

        With `last_only`, those of the last row alone, (b, vocabulary).
        """
        if not last_only:
            return self._pass(rows, self.model).logits
        # Newer models can leave the other rows' logits out, which are large.
        parameters = inspect.signature(self.model.forward).parameters
        options = {"logits_to_keep": 1} if "logits_to_keep" in parameters else {}
        logits = self._pass(rows, self.model, **options).logits
        return logits[:, -1] if logits.ndim == 3 else logits

    def require_task_head(self, output: str, layer: int, head: int | None, pool: str | None) -> None:
        """Refuse an output of the task's head where the model has none, or that of another layer, head or pool."""
        if self.model is self.anatomy.base:
            raise InputError(
                f"`output` (={output!r}) needs a model with a head for its task, and {self.name} has none; "
                "use output='states', or a classifier or language model"
            )
        if head is not None or layer != self.layers:
            raise InputError(f"`output` (={output!r}) is made from the last layer; leave layer and head out")
        if pool not in (None, "last"):
            raise InputError(
                f"`pool` (={pool!r}) is of hidden states; with output={output!r} pass None, or 'last' for the last "
                "token's logits"
            )

    def bfloat16_twin(self) -> "Stack":
        """The same model in bfloat16, made once: half as much memory again."""
        if self._twin is None:
            self._twin = Stack(copy.deepcopy(self.model).to(torch.bfloat16), self.name)
        return self._twin

    def attention(self, rows: Float[Tensor, "b n d"], layer: int) -> Float[Tensor, "b heads n n"]:
        """The attention weights of `layer` (1 to L): entry (j, i) is how much row j takes from row i."""
        if self.model.config._attn_implementation != "eager":
            raise InputError(
                f"the model {self.name!r} does not give its attention weights; load it with attention='eager', a model "
                "of your own with attn_implementation='eager'"
            )
        return self._pass(rows, self.anatomy.base, output_attentions=True).attentions[layer - 1]

    def entering(self, ids: Int[Tensor, "b n"], types: Int[Tensor, "b n"] | None = None) -> Float[Tensor, "b n d"]:
        """The rows that enter the first block when the model reads these tokens, of these types if it knows types."""
        named = {} if types is None else {"token_type_ids": types.to(self.device)}
        run = partial(self.anatomy.base, input_ids=ids.to(self.device), use_cache=False, **named)
        with torch.no_grad():
            return tensor_at(self.anatomy.blocks[0], run)

    def prefix(self, rows: Float[Tensor, "n d"]) -> list[tuple[Tensor, Tensor]]:
        """Keys and values of every layer, (1, heads, n, head size). Only for models that resume."""
        with torch.no_grad():
            cache = self._pass(rows.unsqueeze(0), self.anatomy.base, use_cache=True).past_key_values
        return [(layer.keys, layer.values) for layer in cache.layers]

    @contextmanager
    def resumed(self, prefix: list[tuple[Tensor, Tensor]], start: int, batch: int) -> Iterator[None]:
        """Inside, rows are taken for those from `start` on, after the first `start` rows of the prefix."""
        from transformers import DynamicCache

        cache = DynamicCache()
        for index, (keys, values) in enumerate(prefix):
            first = [part[:, :, :start].expand(batch, -1, -1, -1) for part in (keys, values)]
            cache.update(first[0], first[1], index)
        self._resume: dict[str, Any] = {"past_key_values": cache, "use_cache": True} if start else {}
        try:
            yield
        finally:
            self._resume = {}

    _resume: dict[str, Any] = {}  # noqa: RUF012 - replaced, never changed

    def _pass(self, rows: Tensor, module: nn.Module, **options: Any) -> Any:
        ids = torch.full(rows.shape[:2], self._placeholder, device=self.device)

        def enter(_: nn.Module, positional: tuple[Any, ...], named: dict[str, Any]) -> Any:
            if positional:
                return (rows, *positional[1:]), named
            return positional, {**named, "hidden_states": rows}

        handle = self.anatomy.blocks[0].register_forward_pre_hook(enter, with_kwargs=True, prepend=True)
        try:
            return module(input_ids=ids, **{"use_cache": False, **self._resume, **options})
        finally:
            handle.remove()

    @torch.no_grad()
    def _probe(self) -> None:
        """Check this class's way of running against the model's own, and find out whether the model is causal."""
        count = min(_PROBED_TOKENS, self.model.config.vocab_size)
        ids = torch.full((1, count), self._placeholder, device=self.device)
        expected = self.all_states(ids)
        rows = self.entering(ids)
        ours = [self.states(rows, layer) for layer in range(self.layers + 1)]
        if len(expected) != len(ours) or not all(map(self._close, ours, expected)):
            raise InputError(
                f"the hidden states of the model {self.name!r} are not those of the architecture "
                f"{self.model.config.model_type!r} that its configuration names; wrap the model in FunctionFeatures"
            )
        moved = rows.clone()
        moved[:, -1] = -moved[:, -1].flip(-1) + 1
        after = self.states(moved, self.layers)
        self.causal = torch.equal(after[:, :-1], ours[-1][:, :-1])
        self.resumes = self.causal and self._can_resume(moved, after)

    def _can_resume(self, rows: Tensor, expected: Tensor) -> bool:
        try:
            with self.resumed(self.prefix(rows[0]), 2, 1):
                return self._close(self.states(rows[:, 2:], self.layers), expected[:, 2:])
        except (AttributeError, TypeError, ValueError, RuntimeError):
            return False

    def _close(self, ours: Tensor, expected: Tensor) -> bool:
        tolerance = max(_PROBE_TOLERANCE, 8 * torch.finfo(self.dtype).eps)
        return bool((ours - expected).abs().max() <= tolerance * (1 + expected.abs().max()))


def _rebuilt(kind: type, config: Any, weights: dict[str, Tensor], name: str) -> Stack:
    first = next(tensor for tensor in weights.values() if tensor.is_floating_point())
    model = kind(config).to(dtype=first.dtype, device=first.device)
    model.load_state_dict(weights)
    return Stack(model, name)


def fast_bfloat16(device: torch.device) -> bool:
    """True where this processor multiplies bfloat16 faster than float32."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device)[0] >= 8
    # Elsewhere bfloat16 products are emulated, and slower than float32.
    # Torch has no public name for these: a release without them is a release that cannot tell.
    tests = (getattr(torch.cpu, name, None) for name in ("_is_amx_tile_supported", "_is_avx512_bf16_supported"))
    return device.type == "cpu" and any(test is not None and test() for test in tests)
