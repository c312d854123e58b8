"""The tasks of the workers by name; they load torch, which the page's own process never does."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from wordsens.app.request import MeasureRequest
from wordsens.app.tasks.measure import measure, word_detail
from wordsens.app.tasks.models import attention, check, two_texts
from wordsens.app.tasks.paper import learning, lengths, theorem
from wordsens.maps.transformer.features import loaded_model


def ready() -> None:
    """Nothing: a worker that can do it is ready."""


TASKS: Mapping[str, Callable[..., Any]] = {
    task.__name__: task
    for task in (
        *(ready, measure, word_detail, attention, check, two_texts),
        *(lengths, theorem, learning),
    )
}


def warm_up(models: Sequence[str]) -> None:
    """Load every model, the first last, which stays in memory, measure three words and compare two
    texts: the first visitor does not wait for what is read once.

    Raises:
        InputError: there is no such model.
    """
    torch.set_num_threads(1)
    for model in reversed(models):
        loaded_model(model)
    request = MeasureRequest(text="one two three", map="raf").model_dump()
    words = measure(request)["maps"]["raf"]["words"]
    word_detail(request, 0, {"raf": words[0]})
    two_texts(models[0], "one", "two")
