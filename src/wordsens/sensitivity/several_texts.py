"""Word sensitivity of several texts under one map, and the words that are searched by default."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
import torch
from torch import Tensor

from wordsens.errors import InputError, argument
from wordsens.maps.arguments import as_feature_map, as_text
from wordsens.maps.attention.features import AttentionLayer
from wordsens.maps.base import DEFAULT_MEMORY_BUDGET, FeatureMap
from wordsens.maps.mapping import feature_norm, restores_state
from wordsens.search.objective import Progress, part_of
from wordsens.search.plan import Search
from wordsens.seeds import Seed, generator
from wordsens.sensitivity.one_word import TextUnderMap, sensitivities
from wordsens.sensitivity.result import Sensitivity
from wordsens.text.matrix import TextMatrix


def sampled_words(
    phi: FeatureMap, n: int, seed: Seed, count: int | None = None
) -> list[int] | None:
    """A random sample of `count` of n words, ascending; None for all.

    By default as many as the map affords.
    """
    count = phi.affordable_words if count is None else count
    if count is None or count >= n:
        return None
    return sorted(torch.randperm(n, generator=generator(seed, "sample"))[:count].tolist())


# Texts, and about the most rows of them, that are prepared together: attention holds some arrays of
# n x n a text.
_TOGETHER, _ROWS_TOGETHER = 32, 2048


@restores_state
def word_sensitivities(
    phi: FeatureMap | Callable[[Tensor], Tensor],
    texts: Iterable[TextMatrix | Tensor | np.ndarray],
    radius: float | None = None,
    seed: Seed = 0,
    *,
    search: Search = "normal",
    certificate: bool = True,
    text_depends_on_weights: bool = False,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
    progress: Progress | None = None,
) -> list[Sensitivity]:
    """The word sensitivity of each of several texts under one feature map, as `word_sensitivity`
    gives it.

    All texts are checked before the first search. The search of each text uses the same random
    numbers as a call of `word_sensitivity` for that text. Under attention, texts of equal length
    are searched together in batches that fit the memory budget (on a CPU, its cache). The results
    are the same up to rounding.

    Arguments as for `word_sensitivity`; each text is (n, d), and n may differ from text to text;
    `progress` is called with (done, in all). Returns one Sensitivity per text,
    in their order.

    Raises:
        InputError: no text, or a text that word_sensitivity would refuse; it names the text.
        ZeroFeaturesError: phi maps a text to zero.

    >>> phi = lambda X: 2 * X
    >>> results = word_sensitivities(phi, [torch.ones(4, 9), torch.ones(9, 9)])
    >>> [round(r.value, 6) for r in results]      # sqrt(d) / ‖X‖
    [0.5, 0.333333]
    """
    phi = as_feature_map(phi)
    problems = [TextUnderMap(phi, text, None, radius, seed) for text in _checked(phi, texts)]
    # Only attention searches texts as one problem; other maps' blocks would hold all their matrices
    # at once.
    longest, size = max(len(problem.X) for problem in problems), 1
    if isinstance(phi, AttentionLayer):
        size = max(1, min(_TOGETHER, _ROWS_TOGETHER // longest))
    starts = range(0, len(problems), size)
    measured = partial(
        sensitivities,
        search=search,
        certificate=certificate,
        text_depends_on_weights=text_depends_on_weights,
        memory_budget=memory_budget,
    )
    results = []
    for number, first in enumerate(starts):
        block = problems[first : first + size]
        try:
            results += measured(block, progress=part_of(progress, number, len(starts)))
        except InputError:
            for index, problem in enumerate(block, first):
                with _naming(index):
                    results += measured([problem])
    return results


def _checked(
    phi: FeatureMap, texts: Iterable[TextMatrix | Tensor | np.ndarray]
) -> list[TextMatrix]:
    """The texts, when every one has features of finite and positive norm: a bad one is named before
    any search."""
    if isinstance(texts, TextMatrix) or not isinstance(texts, Iterable):
        raise InputError(
            f"{argument('texts')} ({type(texts).__name__}) must be a list of texts, each of shape "
            "(n, d); for one text use word_sensitivity"
        )
    checked = []
    for index, X in enumerate(texts):
        with _naming(index), torch.no_grad():
            text = as_text(X)
            feature_norm(phi(text), phi.name)
        checked.append(text)
    if not checked:
        raise InputError(f"{argument('texts')} is empty; give at least one text of shape (n, d)")
    return checked


@contextmanager
def _naming(index: int) -> Iterator[None]:
    """Errors about `X` become errors about the text of this index."""
    try:
        yield
    except InputError as error:
        message, X = str(error), argument("X")
        name = f"`texts[{index}]`"
        raise type(error)(
            message.replace(X, name, 1) if message.startswith(X) else f"{name}: {message}"
        ) from error
