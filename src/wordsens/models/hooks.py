"""Hooks on a transformer: its list of layers, the rows that enter the first one, a forward pass
that ends early."""

import copy
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


class _StoppedError(Exception):
    """Raised by a hook to carry a tensor out of a forward pass whose rest is not needed."""

    def __init__(self, tensor: Tensor):
        super().__init__()
        self.tensor = tensor


def call(model: Any, ids: Int[Tensor, "b n"], **options: Any) -> Any:
    """The model's output for these tokens; options that its forward pass does not know are left
    out."""
    parameters = inspect.signature(model.forward).parameters
    options = {"use_cache": False, "return_dict": True, **options}
    if not any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()):
        options = {name: value for name, value in options.items() if name in parameters}
    return model(input_ids=ids, **options)


def tensor_at(
    parts: Sequence[nn.Module], run: Callable[[], object], *, number: int = 1, output: bool = False
) -> Tensor:
    """The tensor that enters (or with `output` leaves) call number `number` of these parts during
    `run`.

    Nothing after it is run. A model may call one layer several times, as ALBERT does.

    Raises:
        LookupError: there is no such call.
    """
    calls = 0

    def stop(
        _: nn.Module, positional: tuple[Any, ...], named: dict[str, Any], *result: Any
    ) -> None:
        nonlocal calls
        calls += 1
        if calls == number:
            raise _StoppedError(first_tensor(result[0]) if output else _entering(positional, named))

    handles = [
        part.register_forward_hook(stop, with_kwargs=True)
        if output
        else part.register_forward_pre_hook(stop, with_kwargs=True)
        for part in parts
    ]
    try:
        run()
    except _StoppedError as stopped:
        return stopped.tensor
    finally:
        for handle in handles:
            handle.remove()
    raise LookupError("that part of the model is not called that often in its forward pass")


@contextmanager
def rows_entering(
    layer: nn.Module | None, embeddings: nn.Module, rows: Float[Tensor, "b n d"]
) -> Iterator[None]:
    """Inside, a forward pass has these rows in place of what enters its first layer.

    Args:
        layer: the first layer; None: the rows replace the output of `embeddings`.
        embeddings: the model's table of tokens.
        rows: the rows; a model that pads its texts itself, as Longformer does, keeps its own rows
            after them.
    """
    entered = False

    def replaced(states: Tensor) -> Tensor:
        nonlocal entered
        first, entered = not entered, True
        return torch.cat([rows, states[:, rows.shape[1] :]], dim=1) if first else states

    def enter(_: nn.Module, positional: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if positional:
            return (replaced(positional[0]), *positional[1:]), named
        return positional, {**named, "hidden_states": replaced(named["hidden_states"])}

    def embed(_: nn.Module, __: tuple[Any, ...], states: Tensor) -> Tensor:
        return replaced(states)

    if layer is not None:
        handle = layer.register_forward_pre_hook(enter, with_kwargs=True, prepend=True)
    else:
        handle = embeddings.register_forward_hook(embed)
    try:
        yield
    finally:
        handle.remove()


@torch.no_grad()
def layers_and_states(
    model: Any, ids: Int[Tensor, "b n"]
) -> tuple[list[nn.Module] | None, tuple[Float[Tensor, "b n d"], ...]]:
    """The model's list of layers, and its `hidden_states` for these tokens.

    The list is the first one whose first layer is entered by `hidden_states[0]`, to the last bit;
    None if there is no such list.
    """
    entering: list[tuple[nn.ModuleList, Tensor]] = []

    def note(layers: nn.ModuleList) -> Callable[..., None]:
        def hook(_: nn.Module, positional: tuple[Any, ...], named: dict[str, Any]) -> None:
            if positional or "hidden_states" in named:
                entering.append((layers, _entering(positional, named)))

        return hook

    lists = [part for part in model.modules() if isinstance(part, nn.ModuleList) and len(part)]
    handles = [
        layers[0].register_forward_pre_hook(note(layers), with_kwargs=True) for layers in lists
    ]
    try:
        states = call(model, ids, output_hidden_states=True).hidden_states
    finally:
        for handle in handles:
            handle.remove()
    n = ids.shape[1]
    for layers, rows in entering:
        if torch.is_tensor(rows) and rows.ndim == 3 and torch.equal(rows[:, :n], states[0]):
            return list(layers), states
    return None, states


def first_tensor(output: Any) -> Tensor:
    """A layer's hidden states: its output, or the first part of it."""
    return output if isinstance(output, Tensor) else output[0]


def _entering(positional: tuple[Any, ...], named: dict[str, Any]) -> Any:
    return positional[0] if positional else named["hidden_states"]


def frozen_views(modules: Sequence[Any], *shared: Any) -> list[Any]:
    """Copies of the modules with the same storage for their weights, but their own modes and
    gradient flags.

    The other objects that they hold are copied, except the shared ones.
    """
    known: dict[int, Any] = {id(each): each for each in shared}
    for module in modules:
        for weight in module.parameters():
            known[id(weight)] = nn.Parameter(weight.detach(), requires_grad=False)
        known |= {id(buffer): buffer for buffer in module.buffers()}
    return [module.eval() for module in copy.deepcopy(list(modules), known)]


def encoder_part(model: Any) -> Any:
    """The encoder of a model with encoder and decoder; any other model unchanged."""
    return model.get_encoder() if model.config.is_encoder_decoder else model


def embedding_rows(model: Any) -> int | None:
    """The number of rows of the model's table of tokens; None if it has no such table."""
    try:
        return getattr(model.get_input_embeddings(), "num_embeddings", None)
    except (NotImplementedError, AttributeError):
        return None
