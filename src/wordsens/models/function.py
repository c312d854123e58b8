"""Black boxes: a function from texts to vectors."""

import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError, WordsensError, first_line
from wordsens.models.answers import Answers, require_texts
from wordsens.models.contract import Model
from wordsens.models.digest import answers_digest

PROBES = (
    "The service is not available on Sundays.",
    "a",
    "Please turn the alarm on before you leave, and do not open the second door until the light has gone out.",
)
"""Sentences of one word to twenty, on which two ways to compute an embedding are compared."""

STEADY = 0.02
"""The largest change of a vector between two calls that counts as rounding, as a share of its length: it moves a cosine
by up to 2e-4. bfloat16 keeps two to three digits, and hosted models answer with about that much noise."""


class FunctionModel(Model):
    """A function from a list of m texts to an array (m, d), which nothing else is known of.

    Args:
        function: called with at most `batch_size` texts at a time.
        name: for tables and records.
        batch_size: texts at a time.
        error: raised for a bad answer: InputError, where the caller can mend the function.
        zero: whether a vector of zeros is an answer.
    """

    def __init__(
        self,
        function: Callable[[list[str]], Any],
        *,
        name: str,
        batch_size: int = 32,
        error: type[WordsensError] = InputError,
        zero: bool = False,
    ):
        self.name = name
        self._function, self._batch_size, self._error, self._zero = function, batch_size, error, zero
        self._answers = Answers(name, error=error)

    def encode(self, texts: Sequence[str]) -> Float[Tensor, "m d"]:
        return self._asked(texts, zero=self._zero)

    def identity(self) -> str:
        return answers_digest(self._asked(PROBES, zero=True))

    def require_steady(self) -> None:
        """Ask for a sentence twice alone and once among others, and refuse a model that changes its mind.

        Raises:
            InputError: (or the error of this model) vectors farther apart than STEADY times their length.
        """
        sentence = PROBES[0]
        # Zero for an English sentence is no fault of a model of another language.
        alone, again, among = (
            self._asked(texts, zero=True)[texts.index(sentence)]
            for texts in ([sentence], [sentence], [PROBES[1], sentence, *PROBES[2:]])
        )
        for other, when in ((again, "in a second call"), (among, "among other texts")):
            apart = float((other - alone).norm() / alone.norm().clamp_min(torch.finfo(torch.float64).tiny))
            if apart > STEADY:
                raise self._error(
                    f"{self.name} changes its mind: {when} the vector of {sentence!r} is another (by {apart:.2g} of "
                    f"its length; at most {STEADY:g}); switch off dropout and whatever depends on the batch"
                )

    def _asked(self, texts: Sequence[str], *, zero: bool) -> Float[Tensor, "m d"]:
        listed = require_texts(texts)
        batches = (listed[start : start + self._batch_size] for start in range(0, len(listed), self._batch_size))
        return torch.cat([self._answers.rows(batch, self._called(batch), zero=zero) for batch in batches])

    def _called(self, batch: list[str]) -> Any:
        try:
            return self._function(batch)
        except WordsensError:
            raise
        except Exception as error:  # anything can go wrong in a stranger's function
            raise self._error(
                f"{self.name} failed on {len(batch)} texts with {type(error).__name__}: {first_line(error)}"
            ) from error


def load_named(place: str, option: str = "encode") -> Any:
    """The object that "module:name" stands for; the module may lie in the working directory. Runs the module's code.

    Args:
        place: such as "my_encoder:encode" or "package.module:model.encode".
        option: for messages.

    Raises:
        InputError: no such module or name, or the module fails.

    >>> load_named("math:sqrt")(4.0)
    2.0
    """
    module_name, _, path = place.partition(":")
    if not module_name or not path or path.startswith("//"):
        raise InputError(f"`{option}` (={place!r}) must be module:function, such as my_encoder:encode")
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as error:  # a stranger's module
        raise InputError(
            f"`{option}` (={place!r}): the module {module_name!r} cannot be imported "
            f"({type(error).__name__}: {first_line(error)}); run in its folder, or install it"
        ) from error
    for part in path.split("."):
        if not hasattr(found, part):
            raise InputError(f"`{option}` (={place!r}): {module_name!r} has no {path!r}; name what it defines")
        found = getattr(found, part)
    return found
