"""The library's errors in the words of the command line: `max_words=510` is `--max-words 510`."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from wordsens.errors import InputError

_OTHER_NAMES = {
    "words": "--word",
    "held_out": "--hold-out",
    "held_out_kinds": "--hold-out-kind",
    "model_layer": "--layer",
    "timeout": "--endpoint-timeout",
    "retries": "--endpoint-retries",
}
"""Arguments of the library whose option has another name, where the command has that option."""


def options_of(command: Any, arguments: Sequence[str], *, keep: Collection[str] = ()) -> dict[str, str]:
    """Every option of the command that the arguments name, by its name in the library.

    Args:
        command: of click; its subcommands are followed as far as the arguments name them.
        arguments: what was typed.
        keep: names that stand for something else too, and stay as they are.
    """
    for word in arguments:
        command = getattr(command, "commands", {}).get(word, command)
    result = {}
    for parameter in command.params:
        option = next((name for name in parameter.opts if name.startswith("--")), parameter.opts[0])
        if option.startswith("--"):
            result |= {parameter.name: option, option.removeprefix("--").replace("-", "_"): option}
    result |= {name: option for name, option in _OTHER_NAMES.items() if option in result.values()}
    return {name: option for name, option in result.items() if name not in keep}


def require_once(command: Any, arguments: Sequence[str]) -> None:
    """InputError for a second file of pairs or texts: the first would be dropped without a word."""
    given = [word.partition("=")[0] for word in arguments]
    for word in arguments:
        command = getattr(command, "commands", {}).get(word, command)
    for parameter in command.params:
        names = [name for name in parameter.opts if name.startswith("--")]
        if parameter.name in ("pairs", "texts") and sum(map(given.count, names)) > 1:
            raise InputError(f"{names[0]} is given twice, and takes one file; put both in one")


def in_options(message: str, options: Mapping[str, str]) -> str:
    """The message with every argument that an option stands for under the option's name.

    >>> in_options("`radius` (=0) must be positive; or radius=2", {"radius": "--radius"})
    '--radius (=0) must be positive; or --radius 2'
    >>> in_options("`X` has one word", {})
    'the text has one word'
    """
    if options:
        names = "|".join(sorted(map(re.escape, options), key=len, reverse=True))
        message = re.sub(rf"`({names})`", lambda match: options[match[1]], message)
        message = re.sub(rf"\b({names})=(?=[\w'])", lambda match: f"{options[match[1]]} ", message)
        compound = "|".join(name for name in options if "_" in name)
        if compound:
            message = re.sub(rf"(?<![-\w`'/])({compound})(?![\w='/])", lambda match: options[match[1]], message)
    return message.replace("`X`", "the text")
