"""What a model's sentence-transformers files say of how it makes one vector of a text."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wordsens.errors import InputError
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
    """How a sentence-transformers model reads a text and pools its rows.

    Attributes:
        parts: the simple poolings whose vectors stand side by side.
        unit: whether the vector is divided by its length.
        prompt: what `encode` puts before every text unless told otherwise: the default prompt, or nothing.
        pools_prompt: whether the prompt's rows count in the pooling.
        most_tokens: longer texts are cut to so many tokens, special ones included; None for the context alone.
        lowercase: whether texts are put into lower case first, whatever the tokenizer does.
    """

    parts: tuple[str, ...]
    unit: bool = False
    prompt: str = ""
    pools_prompt: bool = True
    most_tokens: int | None = None
    lowercase: bool = False


def sentence_settings(folder: Path | None, name: str) -> SentenceSettings:
    """The settings in a model's folder.

    Raises:
        InputError: the folder has no such files, or modules that are not supported.
    """
    if folder is None or not (folder / MODULES_FILE).is_file():
        raise InputError(
            f"the model {name!r} says nothing of its own pooling (modules.json is missing); use one of {_choices()}"
        )
    parts: tuple[str, ...] = ()
    unit, pools_prompt, reading = False, True, folder
    for module in _json(folder / MODULES_FILE):
        kind = str(module["type"]).rsplit(".", 1)[-1]
        if kind == "Transformer":
            reading = folder / module["path"]
        elif kind == "Pooling":
            config = _json(folder / module["path"] / "config.json")
            parts, pools_prompt = _parts(config), bool(config.get("include_prompt", True))
        elif kind == "Normalize":
            unit = True
        else:
            parts = ()
            break
    if not parts:
        raise InputError(f"the model {name!r} has a pooling of its own that is not supported; use one of {_choices()}")
    prompts, limits = (
        _json(path) if path.is_file() else {} for path in (folder / PROMPTS_FILE, reading / READING_FILE)
    )
    return SentenceSettings(
        parts=parts,
        unit=unit,
        prompt=_default_prompt(prompts, name),
        pools_prompt=pools_prompt,
        most_tokens=limits.get("max_seq_length"),
        lowercase=bool(limits.get("do_lower_case", False)),
    )


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


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _choices() -> str:
    return f"pool={', '.join(map(repr, SIMPLE_POOLS))}"
