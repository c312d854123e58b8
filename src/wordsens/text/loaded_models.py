"""Models that someone else loaded: a transformers model with its tokenizer, a pipeline, a
SentenceTransformer."""

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from wordsens.errors import InputError
from wordsens.text.pretrained import require_usable_tokenizer


@dataclass(frozen=True)
class ModelParts:
    """A transformers model, its tokenizer, and what messages and records call it; of a
    SentenceTransformer also its modules, the first of which runs that model."""

    model: Any
    tokenizer: Any
    name: str
    modules: tuple[nn.Module, ...] = ()


def model_parts(given: Any) -> ModelParts:
    """The parts of a (model, tokenizer) pair, a transformers pipeline or a SentenceTransformer.

    The model is a frozen view: the weights are shared, and the given model keeps its mode and its
    gradients.

    Raises:
        InputError: anything else, a tokenizer that knows no word, or weights without numbers.
    """
    if is_sentence_transformer(given):
        model, tokenizer = (
            getattr(given[0], "auto_model", None),
            getattr(given[0], "tokenizer", None),
        )
    elif is_instance(given, "transformers", "Pipeline"):
        model, tokenizer = given.model, given.tokenizer
    elif is_pair(given):
        model, tokenizer = given
    else:
        raise InputError(
            f"a transformer cannot be made of a {type(given).__name__}; pass a name, a folder, a "
            "pair (model, "
            "tokenizer), a transformers pipeline or a SentenceTransformer"
        )
    path = str(getattr(getattr(model, "config", None), "_name_or_path", "") or "")
    kind = type(model if hasattr(model, "config") else given).__name__
    name = Path(path).name if Path(path).is_absolute() else path or kind
    if not isinstance(model, nn.Module) or not hasattr(tokenizer, "get_vocab"):
        raise InputError(
            f"{name} does not run a transformer with a tokenizer, so that it has no rows to move"
        )
    if any(weight.is_meta for weight in model.parameters()):
        raise InputError(
            f"the weights of {name} are on the meta device, where they have no numbers; load them"
        )
    require_usable_tokenizer(tokenizer, name)
    if is_sentence_transformer(given):
        modules = _frozen_views(list(given), tokenizer, getattr(given[0], "processor", None))
        return ModelParts(modules[0].auto_model, tokenizer, name, tuple(modules))
    return ModelParts(_frozen_views([model])[0], tokenizer, name)


def is_loaded_model(given: Any) -> bool:
    """True where `model_parts` is the call for it."""
    return (
        is_pair(given)
        or is_sentence_transformer(given)
        or is_instance(given, "transformers", "Pipeline")
    )


def is_pair(given: Any) -> bool:
    """True for a model and something else, side by side."""
    return isinstance(given, tuple | list) and len(given) == 2 and hasattr(given[0], "config")


def is_sentence_transformer(given: Any) -> bool:
    """True for a SentenceTransformer."""
    return is_instance(given, "sentence_transformers", "SentenceTransformer")


TASKS = {"query": "query", "document": "document", "passage": "document", "corpus": "document"}
"""The task, that of `encode_query` or `encode_document`, to which a prompt's name belongs."""


def reading_module(model: Any, task: str | None) -> Any:
    """The module of a sentence-transformers model that reads texts of the task, of a Router that of
    its route."""
    first, routes = model[0], getattr(model[0], "sub_modules", None)
    if routes is None:
        return first
    return routes[task if task in routes else first.default_route or next(iter(routes))][0]


def most_tokens(module: Any, task: str | None) -> int | None:
    """The most tokens that the module reads of a text of the task; None where it says nothing."""
    expansion = getattr(module, "query_expansion", None) if task == "query" else None
    if expansion is not None and expansion.get("strategy") == "fixed":
        return expansion["length"]
    own = None if task is None else getattr(module, f"{task}_length", None)
    return own or getattr(module, "max_seq_length", None)


def is_instance(given: Any, package: str, name: str) -> bool:
    """True for an object of that class of the package, which is not imported for the question."""
    return any(
        kind.__name__ == name and kind.__module__.partition(".")[0] == package
        for kind in type(given).__mro__
    )


def _frozen_views(modules: list[Any], *shared: Any) -> list[Any]:
    """The modules again, with the same storage for their weights but modules, modes and gradient
    flags of their own.

    The other objects that they hold are copied, but for the shared ones.
    """
    known: dict[int, Any] = {id(each): each for each in shared}
    for module in modules:
        known |= {
            id(weight): nn.Parameter(weight.detach(), requires_grad=False)
            for weight in module.parameters()
        }
        known |= {id(buffer): buffer for buffer in module.buffers()}
    return [module.eval() for module in copy.deepcopy(modules, known)]
