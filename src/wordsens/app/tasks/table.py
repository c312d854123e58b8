"""Every task by its name, and what a worker loads before it takes the first."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from wordsens.app.request import MeasureRequest
from wordsens.app.tasks.attention import attention
from wordsens.app.tasks.check import check
from wordsens.app.tasks.explain import explain
from wordsens.app.tasks.export import export
from wordsens.app.tasks.learning import learning
from wordsens.app.tasks.lengths import lengths
from wordsens.app.tasks.measure import measure
from wordsens.app.tasks.real import real
from wordsens.app.tasks.strength import strength
from wordsens.app.tasks.theorem import theorem
from wordsens.app.tasks.word import word_detail
from wordsens.app.work.worker import Desk
from wordsens.maps.transformer.features import loaded_model

TASKS: dict[str, Callable[..., Any]] = {
    "measure": measure,
    "word": word_detail,
    "export": export,
    "strength": strength,
    "lengths": lengths,
    "theorem": theorem,
    "learning": learning,
    "real": real,
    "attention": attention,
    "check": check,
    "explain": explain,
}


def warm_up(desk: Desk, models: Sequence[str]) -> None:
    """Load every model, the first last, which stays in memory, and measure three words: the first visitor does not wait
    for what is read once.

    Raises:
        InputError: there is no such model.
    """
    torch.set_num_threads(1)
    for model in reversed(models):
        loaded_model(model, torch.float32, "cpu")
    asked = vars(MeasureRequest(text="one two three"))
    found = measure(desk, asked)
    word_detail(desk, asked, 0, found["witnesses"][0])
