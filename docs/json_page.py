"""Writes docs/json.schema.json, the schema of the JSON documents: python docs/json_page.py.

Keys and types are the annotations of the classes of `json_documents.py` and of those that they name
or derive from; the meaning of a key is the first sentence about it among the "Attributes:" of the
class, or that of the property.
"""

import inspect
import json
import re
import sys
import types
import typing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from json_documents import DOCUMENTS, Record, Split

from wordsens.results import Estimate

SCHEMA = Path(__file__).with_name("json.schema.json")
_NAMES = {bool: "boolean", int: "integer", float: "number", str: "string"}
_DTYPES = {"Bool": "boolean", "Int": "integer", "Float": "number"}
_ATTRIBUTE = re.compile(r"^    (\w[\w, ]*): (.*?)(?=\n    \w|\n\n|\Z)", re.DOTALL | re.MULTILINE)
Json = dict[str, typing.Any]


def schema() -> Json:
    """The schema: any document of a command, and each kind of document and part by its name."""
    definitions: Json = {}
    documents = [_reference(cls, definitions) for cls in DOCUMENTS]
    _reference(Record, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What the commands of wordsens print with --json",
        "anyOf": documents,
        "$defs": definitions,
    }


def text() -> str:
    """The file."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


def _reference(cls: type, definitions: Json) -> Json:
    """A reference to the definition of a class, which is added to the others."""
    if cls.__name__ not in definitions:
        definitions[cls.__name__] = {}  # a class may contain itself
        definitions[cls.__name__] = _object(cls, definitions)
    return {"$ref": f"#/$defs/{cls.__name__}"}


def _object(cls: type, definitions: Json) -> Json:
    """The schema of the object that a class becomes."""
    properties: Json = {}
    optional: list[str] = []
    for key, annotation in _annotations(cls).items():
        meaning = _meaning(cls, key)
        if typing.get_origin(annotation) is typing.NotRequired:
            optional.append(key)
            (annotation,) = typing.get_args(annotation)
        if issubclass(cls, Split) and Estimate in (annotation, *typing.get_args(annotation)):
            ends = {"type": ["number", "null"]}
            value = {"type": "number"} if annotation is Estimate else ends
            properties[key] = {**value, "description": meaning}
            for end, name in (("low", "lower"), ("high", "upper")):
                interval = f"the {name} end of the 95 % interval of `{key}`"
                properties[f"{key}_{end}"] = {**ends, "description": interval}
        else:
            properties[key] = {**_type(annotation, definitions), "description": meaning}
    return {
        "description": " ".join(_docstring(cls).partition("\n\n")[0].split()),
        "type": "object",
        "properties": properties,
        "required": [key for key in properties if key not in optional],
        "additionalProperties": False,
    }


def _annotations(cls: type) -> Json:
    """The keys with their types, those of base classes first."""
    annotations: Json = {}
    for base in reversed(cls.__mro__):
        annotations |= inspect.get_annotations(base)
    left_out = getattr(cls, "not_in_dict", ())
    return {
        key: annotation
        for key, annotation in annotations.items()
        if key not in left_out and typing.get_origin(annotation) is not typing.ClassVar
    }


def _meaning(cls: type, key: str) -> str:
    """The first sentence about a key."""
    for base in cls.__mro__:
        for names, meaning in _ATTRIBUTE.findall(_docstring(base).partition("Attributes:\n")[2]):
            if key in names.split(", "):
                return _first_sentence(meaning)
    described = getattr(cls, key, None)
    if not isinstance(described, property):
        raise LookupError(f"no meaning of {key} among the attributes of {cls.__name__}")
    return _first_sentence(described.__doc__ or "")


def _docstring(cls: type) -> str:
    return inspect.cleandoc(cls.__doc__ or "")


def _first_sentence(meaning: str) -> str:
    sentence = re.split(r"(?<!e\.g)\. (?=[A-Z])", " ".join(meaning.split()))[0]
    return re.sub(r"(?<!\.)\.$", "", sentence).replace("None", "null")


def _type(annotation: typing.Any, definitions: Json) -> Json:
    """What JSON makes of a value of that type."""
    if annotation is typing.Any:
        return {}
    if annotation in (None, type(None)):
        return {"type": "null"}
    if annotation in _NAMES:
        return {"type": _NAMES[annotation]}
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if isinstance(annotation, types.UnionType) or origin is typing.Union:
        return _union([_type(part, definitions) for part in arguments])
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if hasattr(annotation, "dim_str"):  # a tensor; what is not finite is null
        kind = _DTYPES[annotation.__name__.partition("[")[0]]
        return {"type": "array", "items": {"type": [kind, "null"] if kind == "number" else kind}}
    if origin is dict:
        return {"type": "object", "additionalProperties": _type(arguments[1], definitions)}
    if origin is tuple and arguments[-1] is not Ellipsis:
        parts = [_type(part, definitions) for part in arguments]
        return {"type": "array", "prefixItems": parts, "items": False, "minItems": len(parts)}
    if origin in (tuple, list):
        return {"type": "array", "items": _type(arguments[0], definitions)}
    return _reference(annotation, definitions)


def _union(parts: list[Json]) -> Json:
    """Any of these, in one line where they are plain types."""
    if all(part.keys() == {"type"} for part in parts):
        return {"type": [part["type"] for part in parts]}
    return {"anyOf": parts}


if __name__ == "__main__":
    SCHEMA.write_text(text(), encoding="utf-8")
