"""Word sensitivity of several texts, searched together where the map can evaluate them at once."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from wordsens.errors import InputError, require_positive
from wordsens.maps.arguments import as_text, radii
from wordsens.maps.contract import FeatureMap
from wordsens.maps.function import as_feature_map
from wordsens.maps.mapping import feature_norm
from wordsens.maps.repeatable import leaves_the_map_as_found
from wordsens.search.ball import Ball
from wordsens.search.plan import Search
from wordsens.search.population import search_together, words_at_once
from wordsens.search.result import Progress
from wordsens.seeds import Seed, generator
from wordsens.sensitivity.budget import Budget
from wordsens.sensitivity.one_word import Asked, sensitivity_at, word_sensitivity
from wordsens.sensitivity.result import Sensitivity
from wordsens.text.matrix import TextMatrix

_SHARE = 1000
"""The share of one text in progress, whatever its steps."""


@leaves_the_map_as_found
def word_sensitivities(
    phi: FeatureMap | Callable[[Tensor], Tensor],
    texts: Iterable[TextMatrix | Tensor | np.ndarray],
    radius: float | None = None,
    seed: Seed = 0,
    *,
    search: Search | Budget = "normal",
    certificate: bool | str = True,
    text_depends_on_weights: bool = False,
) -> list[Sensitivity]:
    """The word sensitivity of each of several texts under one feature map (paper, eq. 1): `word_sensitivity`, faster.

    Every value is attained, with its witness recomputed through phi, and the certificate stands beside it. Under random
    attention, short texts of equal length are searched step by step together: on a CPU where n max(n, d) is at most
    4,096, past which it was measured to gain nothing. Other texts, and other maps, are searched one after the other.

    Each text is searched with the random numbers that `word_sensitivity` gives it alone, and witnesses are crossed
    within a text only: a result depends on its text, the seed and the options. Sums may be taken in another order:
    the two agreed to 1e-14 in the value for softmax; for scores with kinks the rounding of
    the float32 exploration decides where a climb ends (1.2e-5 was seen).

    Args:
        phi: a feature map, or any differentiable function of an (n, d) tensor.
        texts: each (n, d), n two or more; n may differ from text to text.
        radius: of every word's ball; None for the map's default, sqrt(d).
        seed: of the random starts, the same for every text.
        search: as for word_sensitivity; or a Budget, whose memory is for all texts that are searched together, and
            whose progress is told in thousandths of a text.
        certificate, text_depends_on_weights: as for word_sensitivity.

    Returns:
        A Sensitivity a text, in their order.

    Raises:
        InputError: no text, or a text that word_sensitivity would refuse; it names the text.
        ZeroFeaturesError: phi maps a text to zero.

    >>> phi = lambda X: 2 * X
    >>> found = word_sensitivities(phi, [torch.ones(4, 9), torch.ones(9, 9)])
    >>> [round(r.value, 6) for r in found]      # sqrt(d) / ‖X‖
    [0.5, 0.333333]
    """
    phi = as_feature_map(phi)
    asked = Asked(Budget.of(search), seed, certificate, text_depends_on_weights)
    if radius is not None:
        require_positive("radius", radius, remedy="pass None for the map's default")
    checked = _checked(phi, texts)
    results: dict[int, Sensitivity] = {}
    for lot in _lots(phi, checked, asked):
        report = _reporter(asked.budget.progress, len(results), len(lot), len(checked))
        if len(lot) == 1:
            with _naming(lot[0]):
                results[lot[0]] = word_sensitivity(
                    phi,
                    checked[lot[0]],
                    radius=radius,
                    seed=seed,
                    search=asked.budget.plan,
                    certificate=certificate,
                    text_depends_on_weights=text_depends_on_weights,
                    memory_budget=asked.budget.memory_budget,
                    progress=report,
                )
        else:
            results |= _together(phi, {index: checked[index] for index in lot}, radius, asked, report)
    return [results[index] for index in range(len(checked))]


def _together(
    phi: FeatureMap, texts: Mapping[int, TextMatrix], radius: float | None, asked: Asked, progress: Progress | None
) -> dict[int, Sensitivity]:
    """The sensitivities of texts of equal length, by their indices, searched step by step together."""
    started = time.perf_counter()
    rows = [phi.accept(text.rows) for text in texts.values()]
    words = torch.arange(len(rows[0]), device=phi.device)
    balls = [Ball(radii(radius, phi, own, words.cpu())) for own in rows]
    change = phi.texts_change(rows, memory_budget=asked.budget.memory_budget)
    found = search_together(
        change,
        Ball(torch.cat([ball.radius for ball in balls])),
        asked.budget.plan.stages(change.plan),
        generators=[generator(asked.seed, "starts") for _ in rows],
        progress=progress,
    )
    seconds = (time.perf_counter() - started) / len(rows)
    results = {}
    for (index, text), ball, witnesses in zip(texts.items(), balls, found, strict=True):
        with _naming(index):
            results[index] = sensitivity_at(phi, text, words, ball, witnesses, asked, seconds)
    return results


def _checked(phi: FeatureMap, texts: Iterable[TextMatrix | Tensor | np.ndarray]) -> list[TextMatrix]:
    """The texts, when every one has features of finite and positive norm: a bad one is named before any search."""
    if isinstance(texts, TextMatrix) or not isinstance(texts, Iterable):
        raise InputError(
            f"`texts` ({type(texts).__name__}) must be a list of texts, each of shape (n, d); for one text use "
            "word_sensitivity"
        )
    checked = []
    for index, X in enumerate(texts):
        with _naming(index), torch.no_grad():
            text = as_text(X)
            feature_norm(phi(text), phi.name)
        checked.append(text)
    if not checked:
        raise InputError("`texts` is empty; give at least one text of shape (n, d)")
    return checked


@contextmanager
def _naming(index: int) -> Iterator[None]:
    """Errors about `X` become errors about the text of this index."""
    try:
        yield
    except InputError as error:
        message = str(error)
        name = f"`texts[{index}]`"
        raise type(error)(message.replace("`X`", name) if "`X`" in message else f"{name}: {message}") from error


def _lots(phi: FeatureMap, texts: Sequence[TextMatrix], asked: Asked) -> Iterator[list[int]]:
    """The texts that are searched together: of equal length, and few enough for the map and for the memory budget."""
    lengths = [len(text) for text in texts]
    for n in dict.fromkeys(lengths):
        indices = [index for index, length in enumerate(lengths) if length == n]
        size = phi.texts_at_once(n, memory_budget=asked.budget.memory_budget)
        if size > 1:
            change = phi.word_change(phi.accept(texts[indices[0]].rows), memory_budget=asked.budget.memory_budget)
            size = min(size, words_at_once(change, asked.budget.plan.stages(change.plan)) // n)
        size = max(1, size)
        yield from (indices[start : start + size] for start in range(0, len(indices), size))


def _reporter(progress: Progress | None, before: int, texts: int, total: int) -> Progress | None:
    """Progress of a search of some texts, as a part of the whole."""
    if progress is None:
        return None

    def report(done: int, most: int) -> None:
        progress(_SHARE * before + _SHARE * texts * done // most, _SHARE * total)

    return report
