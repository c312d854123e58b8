"""YAML as plain data that remembers where each value stands, so that a mistake can be named with its line."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wordsens.errors import InputError, MissingExtraError, shown

try:
    import yaml
except ImportError as error:
    raise MissingExtraError("pyyaml", "records", "a spec") from error

Path = tuple[str | int, ...]

MOST_VALUES = 200_000
"""A text whose aliases unfold to more than this is refused."""


@dataclass(frozen=True)
class Placed:
    """Data, and where they were written.

    Attributes:
        data: dictionaries, lists, strings, numbers, truth values, None.
        places: from the path of a value to what names its place, `spec.yaml:7` for instance.
        where: the place of what has none of its own.
    """

    data: Any
    places: Mapping[Path, str]
    where: str

    def at(self, path: Path) -> str:
        """The place of the value at the path, or of the nearest thing around it."""
        for end in range(len(path), -1, -1):
            if (place := self.places.get(path[:end])) is not None:
                return place
        return self.where


def read_yaml(text: str, *, where: str) -> Placed:
    """The data of a YAML text, and the line of each.

    Differs from YAML 1.1 where a spec would go wrong in silence: a key that stands twice is refused, and `1e-3` is a
    number.

    Raises:
        InputError: not YAML, or not plain data; one line with the place.

    >>> spec = read_yaml("name: a\\nn: [4, 1e-3]", where="s.yaml")
    >>> spec.data, spec.at(("n", 1)), spec.at(("n", 1, "deeper"))
    ({'name': 'a', 'n': [4, 0.001]}, 's.yaml:2', 's.yaml:2')
    """
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        places: dict[Path, str] = {}
        data = None if node is None else _plain(loader, node, (), places, where, frozenset())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{where}:{mark.line + 1}" if mark else where
        raise InputError(f"{place}: not valid YAML: {' '.join(str(error.problem).split())}") from error
    except yaml.YAMLError as error:
        raise InputError(f"{where}: not valid YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise InputError(f"{where}: not a spec: it is nested too deeply") from error
    return Placed(data, places, where)


def yaml_of(data: Any) -> str:
    """The data as YAML that `read_yaml` reads back, short lists on one line."""
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, default_flow_style=None, width=100)


_PLAIN_TAGS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")


class _Loader(yaml.SafeLoader):
    """SafeLoader with numbers as in YAML 1.2."""


# YAML 1.1 takes 1e-3 for a string; every researcher means a number.
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9]+(?:\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)


def _plain(
    loader: _Loader, node: yaml.Node, path: Path, places: dict[Path, str], where: str, above: frozenset[int]
) -> Any:
    place = f"{where}:{node.start_mark.line + 1}"
    places[path] = place
    if len(places) > MOST_VALUES:
        raise InputError(f"{place}: more than {MOST_VALUES:,} values; give axes as {{range: [first, last, step]}}")
    if id(node) in above:
        raise InputError(f"{place}: an alias stands inside its own anchor; write the value out")
    above |= {id(node)}
    if not isinstance(node, yaml.ScalarNode) and node.tag not in _PLAIN_TAGS:
        raise InputError(f"{place}: not valid YAML for a spec: the tag {node.tag!r}; write plain values")
    if isinstance(node, yaml.SequenceNode):
        return [_plain(loader, one, (*path, at), places, where, above) for at, one in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode):
        _refuse_twins(node, where)
        loader.flatten_mapping(node)
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = _scalar(loader, key_node, where)
            if not isinstance(key, str):
                raise InputError(f"{where}:{key_node.start_mark.line + 1}: a key (={key!r}) must be a word")
            found[key] = _plain(loader, value_node, (*path, key), places, where, above)
            # The line of the key: where the value is a block, it starts further down.
            places[(*path, key)] = f"{where}:{key_node.start_mark.line + 1}"
        return found
    value = _scalar(loader, node, where)
    if value is not None and not isinstance(value, str | int | float | bool):
        return str(node.value)
    return value


def _scalar(loader: _Loader, node: yaml.Node, where: str) -> Any:
    """The plain value of a node; PyYAML's own errors of dates, numbers and tags that are none are of many kinds."""
    try:
        return loader.construct_object(node)
    except yaml.YAMLError:
        raise
    except Exception as error:
        place, kind = f"{where}:{node.start_mark.line + 1}", node.tag.rpartition(":")[2]
        raise InputError(f"{place}: {shown(node.value)} is no {kind}; put a string into quotes") from error


def _refuse_twins(node: yaml.MappingNode, where: str) -> None:
    """Two equal keys: YAML would keep the last one without a word."""
    seen: dict[str, int] = {}
    for key, _ in node.value:
        name = str(key.value)
        if key.tag == "tag:yaml.org,2002:merge":
            continue
        line = key.start_mark.line + 1
        if name in seen:
            raise InputError(f"{where}:{line}: the key {name!r} stands twice (first on line {seen[name]}); keep one")
        seen[name] = line
