"""The way a sentence-transformers model makes one vector of a text, by its files or by the loaded model."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from wordsens.errors import InputError, first_line
from wordsens.maps.transformer.behind import module_behind
from wordsens.maps.transformer.pooling import SIMPLE_POOLS

MODULES_FILE = "modules.json"
PROMPTS_FILE = "config_sentence_transformers.json"
READING_FILE = "sentence_bert_config.json"

# What sentence-transformers calls them in a Pooling module's config.json.
_THEIR_NAMES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "last",
}


@dataclass(frozen=True)
class SentenceSettings:
    """The way a sentence-transformers model reads a text and pools its rows.

    Attributes:
        parts: the simple poolings whose vectors stand side by side.
        behind: what is made of the pooled vector: dense layers, normalising.
        dimensions: how many leading coordinates are kept in the end; None for all.
        prompt: what `encode` puts before every text unless told otherwise: the default prompt, or nothing.
        pools_prompt: whether the prompt's rows count in the pooling.
        most_tokens: longer texts are cut to so many tokens, special ones included; None for the context alone.
        lowercase: whether texts are put into lower case first, whatever the tokenizer does.
    """

    parts: tuple[str, ...]
    behind: nn.Sequential = field(default_factory=nn.Sequential)
    dimensions: int | None = None
    prompt: str = ""
    pools_prompt: bool = True
    most_tokens: int | None = None
    lowercase: bool = False


@dataclass(frozen=True)
class _Module:
    """One module of a model: its class name, its configuration, and what reads its weights."""

    kind: str
    config: dict[str, Any]
    weights: Callable[[], dict[str, Tensor]]


def folder_settings(folder: Path, name: str) -> SentenceSettings:
    """The settings in a model's folder.

    Raises:
        InputError: modules that are not supported, or whose weights are missing; files of another form.
    """
    try:
        listed = _json(folder / MODULES_FILE)
        modules = [_module_of(folder / each["path"], str(each["type"]).rsplit(".", 1)[-1]) for each in listed]
        reading = next((folder / each["path"] for each in listed if str(each["type"]).endswith(".Transformer")), folder)
        return _settings(modules, _optional_json(folder / PROMPTS_FILE), _optional_json(reading / READING_FILE), name)
    except InputError:
        raise
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RuntimeError) as error:
        raise InputError(
            f"the sentence-transformers files of the model {name!r} ({MODULES_FILE} and those that it names) are not "
            f"of their form ({type(error).__name__}: {first_line(error)}); download the model again"
        ) from error


def object_settings(model: Any, name: str) -> SentenceSettings:
    """The settings of a loaded SentenceTransformer; weights behind the pooling are shared with it.

    Raises:
        InputError: modules that are not supported.
    """
    modules = [
        _Module(type(each).__name__, {} if at == 0 else _config_of(each), each.state_dict)
        for at, each in enumerate(model)
    ]
    prompts = {key: getattr(model, key, None) for key in ("prompts", "default_prompt_name", "truncate_dim")}
    limits = {"max_seq_length": model.max_seq_length, "do_lower_case": getattr(model[0], "do_lower_case", False)}
    return _settings(modules, prompts, limits, name)


def no_settings(name: str) -> InputError:
    """The error for a model whose own pooling is not known."""
    return InputError(
        f"the model {name!r} says nothing of its own pooling (modules.json is missing); use one of {_choices()}"
    )


def _settings(
    modules: Sequence[_Module], prompts: dict[str, Any], limits: dict[str, Any], name: str
) -> SentenceSettings:
    supported = [module.kind for module in modules[:2]] == ["Transformer", "Pooling"]
    parts = _parts(modules[1].config) if supported else ()
    behind = [module_behind(module.kind, module.config) for module in modules[2:]]
    if not parts or None in behind:
        raise InputError(f"the model {name!r} has a pooling of its own that is not supported; use one of {_choices()}")
    for made, module in zip(filter(None, behind), modules[2:], strict=True):
        if made.state_dict():
            _load(made, module, name)
    pooling = modules[1]
    return SentenceSettings(
        parts=parts,
        behind=nn.Sequential(*filter(None, behind)).requires_grad_(False),
        dimensions=prompts.get("truncate_dim"),
        prompt=_default_prompt(prompts, name),
        pools_prompt=bool(pooling.config.get("include_prompt", True)),
        most_tokens=limits.get("max_seq_length"),
        lowercase=bool(limits.get("do_lower_case", False)),
    )


def _module_of(folder: Path, kind: str) -> _Module:
    return _Module(
        kind, {} if kind == "Transformer" else _optional_json(folder / "config.json"), lambda: _weights(folder)
    )


def _load(made: nn.Module, module: _Module, name: str) -> None:
    try:
        made.load_state_dict(module.weights(), assign=True)
    except RuntimeError as error:
        raise InputError(
            f"the weights of the {module.kind} module of {name!r} do not fit its configuration; "
            "download the model again"
        ) from error


def _weights(folder: Path) -> dict[str, Tensor]:
    """The weights in a module's folder; the older format is read without running code from it."""
    from safetensors.torch import load_file

    safe, older = folder / "model.safetensors", folder / "pytorch_model.bin"
    if safe.is_file():
        return load_file(safe)
    if older.is_file():
        return torch.load(older, map_location="cpu", weights_only=True)
    raise InputError(f"the module {str(folder)!r} has no weights (model.safetensors); download the model again")


def _config_of(module: Any) -> dict[str, Any]:
    return module.get_config_dict() if hasattr(module, "get_config_dict") else {}


def _default_prompt(config: dict[str, Any], name: str) -> str:
    chosen = config.get("default_prompt_name")
    if chosen is None:
        return ""
    prompts = config.get("prompts") or {}
    if chosen not in prompts:
        raise InputError(
            f"the model {name!r} names a default prompt {chosen!r} that {PROMPTS_FILE} does not hold; mend it"
        )
    return prompts[chosen]


def _parts(config: dict[str, Any]) -> tuple[str, ...]:
    # Newer versions of sentence-transformers write one key, older ones a flag for each way.
    mode = config.get("pooling_mode")
    if mode is not None:
        named = [{"lasttoken": "last"}.get(each, each) for each in ([mode] if isinstance(mode, str) else mode)]
        return tuple(named) if all(each in SIMPLE_POOLS for each in named) else ()
    chosen = [key for key, value in config.items() if key.startswith("pooling_mode_") and value]
    return tuple(_THEIR_NAMES[key] for key in chosen) if all(key in _THEIR_NAMES for key in chosen) else ()


def _optional_json(path: Path) -> Any:
    return _json(path) if path.is_file() else {}


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _choices() -> str:
    return f"pool={', '.join(map(repr, SIMPLE_POOLS))}"
