"""Models that only the sentence-transformers library can load."""

import importlib.util
import json
from pathlib import Path
from typing import Any

from wordsens.errors import InputError, MissingExtraError, first_line
from wordsens.text import pretrained
from wordsens.text.model_files import model_folder
from wordsens.text.pretrained import Access, find_model, quiet_transformers

_MODULES_FILE = "modules.json"
_PROMPTS_FILE = "config_sentence_transformers.json"
_CLASSIFIER = "ForSequenceClassification"


def sentence_transformer(name: str, *, revision: str | None, device: str) -> Any | None:
    """The SentenceTransformer of that name, where its files are on this machine and the library can load them."""
    if importlib.util.find_spec("sentence_transformers") is None or not _has_modules(name, revision):
        return None
    try:
        return pretrained.sentence_transformer(name, name, True, Access(revision=revision), device)
    except InputError:  # the caller has a reason of its own to tell
        return None


def cross_encoder(name: str, *, revision: str | None, device: str, local_files_only: bool) -> Any:
    """The CrossEncoder of that name.

    Raises:
        MissingExtraError: sentence-transformers is not installed.
        InputError: there is no such model, or it does not score pairs.
    """
    if importlib.util.find_spec("sentence_transformers") is None:
        raise MissingExtraError("sentence-transformers", "models", f"the CrossEncoder {name!r}")
    place, local = find_model(name, revision, local_files_only=local_files_only)
    from sentence_transformers import CrossEncoder

    try:
        with quiet_transformers():
            model = CrossEncoder(place, device=device, revision=revision, local_files_only=local)
    except Exception as error:  # the library raises what its modules raise
        raise InputError(f"no CrossEncoder {name!r}: it cannot be loaded: {first_line(error)}") from error
    # Of any other model the library makes a classifier with random weights.
    if not scores_pairs(name, revision):
        raise InputError(f"the model {name!r} does not score pairs: it is no CrossEncoder; use it as a model of texts")
    return model


def scores_pairs(name: str, revision: str | None = None) -> bool:
    """True where the files of a model on this machine say that it gives one score to a pair of texts."""
    try:
        folder = model_folder(name, revision)
    except InputError:
        return False
    if _read(folder / _PROMPTS_FILE).get("model_type") == "CrossEncoder":
        return True
    config = _read(folder / "config.json")
    architectures, labels = config.get("architectures"), config.get("id2label")
    classifies = isinstance(architectures, list) and str(*architectures[:1]).endswith(_CLASSIFIER)
    return classifies and isinstance(labels, dict) and len(labels) == 1


def _has_modules(name: str, revision: str | None) -> bool:
    try:
        return (model_folder(name, revision) / _MODULES_FILE).is_file()
    except InputError:
        return False


def _read(path: Path) -> dict[str, Any]:
    """The file's object; an empty one where there is none: loading the model says what is wrong."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
