"""What a worker of the page does: it prepares itself once, does tasks, and says in plain words
what went wrong."""

import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from wordsens import errors
from wordsens.workers import report

_OUT_OF_MEMORY = (
    "This needs more memory than a measurement may take here. Use a shorter text or another map."
)

_FAILED = "Something went wrong ({name}). It was not your input; the server’s log has the details."

# How the page calls an argument, where not by its name.
_WORDS = {
    "X": "the text",
    "text": "the text",
    "texts": "the text",
    "first": "the first text",
    "second": "the second text",
    "pairs": "the table",
}


def do(memory: int, models: Sequence[str], name: str, arguments: dict[str, Any]) -> Any:
    """The answer of a task of `wordsens.app.tasks`; the first report says that it begins.

    Raises:
        InputError: in plain words, why there is none.
    """
    try:
        tasks = _prepared(memory, tuple(models))
        report({})
        errors.spelling.set(_in_words)
        return tasks[name](**arguments)
    except Exception as error:
        if isinstance(error, MemoryError) or "allocate memory" in str(error):
            sentence = _OUT_OF_MEMORY
        elif isinstance(error, errors.WordsensError):
            sentence = _sentence(str(error))
        else:
            traceback.print_exc(file=sys.stderr)
            sentence = _FAILED.format(name=type(error).__name__)
        raise errors.InputError(sentence) from error


@cache
def _prepared(memory: int, models: tuple[str, ...]) -> Mapping[str, Callable[..., Any]]:
    """The tasks, once what is read once has been read, under the limit on memory in MiB."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    with suppress(ImportError, ValueError, OSError):  # a system that cannot limit a process
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (memory << 20, memory << 20))
    from wordsens.app.tasks import TASKS, warm_up  # loads torch

    warm_up(models)
    return TASKS


def _in_words(name: str, value: object) -> str:
    words = _WORDS.get(name, name.replace("_", " "))
    return words if value is None else f"{words} {value}"


def _sentence(message: str) -> str:
    """A library's message as a sentence, without the marks around names.

    >>> _sentence("the text has one `word`; give a longer text")
    'The text has one word; give a longer text.'
    """
    plain = message.replace("`", "").rstrip(".")
    return f"{plain[:1].upper()}{plain[1:]}."
