"""Word sensitivity of several texts under one map, and the words that are searched where nobody names them."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from wordsens.errors import InputError, require_positive
from wordsens.maps.arguments import as_text
from wordsens.maps.base import FeatureMap
from wordsens.maps.function import as_feature_map
from wordsens.maps.mapping import feature_norm, restores_state
from wordsens.search.objective import Progress
from wordsens.search.plan import Search
from wordsens.seeds import Seed, derive_seed, generator
from wordsens.sensitivity.one_word import word_sensitivity
from wordsens.sensitivity.result import Budget, Sensitivity
from wordsens.text.matrix import TextMatrix

ON_DEMAND_WORDS = 16
"""Words of a text that rf searches by default where its matrix is not built; drf: so many over its depth."""


def on_demand(phi: FeatureMap) -> bool:
    """True where the map's matrices are sampled on demand, and each query is remembered."""
    return getattr(phi, "gaussian", None) == "lazy"


def sampled_words(phi: FeatureMap, n: int, seed: Seed, count: int | None = None) -> list[int] | None:
    """A random sample of `count` of n words, ascending; None for all.

    By default all, but of a map whose matrices are sampled on demand ON_DEMAND_WORDS: it remembers every query, so all
    words of a long text would not fit.
    """
    if count is None and on_demand(phi):
        count = max(2, ON_DEMAND_WORDS // getattr(phi, "depth", 1))
    if count is None or count >= n:
        return None
    return sorted(torch.randperm(n, generator=generator(seed, "sample"))[:count].tolist())


_SHARE = 1000
"""The share of one text in progress, whatever its steps."""


@restores_state
def word_sensitivities(
    phi: FeatureMap | Callable[[Tensor], Tensor],
    texts: Iterable[TextMatrix | Tensor | np.ndarray],
    radius: float | None = None,
    seed: Seed = 0,
    *,
    search: Search | Budget = "normal",
    certificate: bool = True,
    text_depends_on_weights: bool = False,
) -> list[Sensitivity]:
    """The word sensitivity of each of several texts under one feature map: `word_sensitivity`, text by text.

    All texts are checked before the first is searched, and each is searched with the random numbers that
    `word_sensitivity` gives it alone.

    Args:
        phi: a feature map, or any differentiable function of an (n, d) tensor.
        texts: each (n, d), n two or more; n may differ from text to text.
        radius: of every word's ball; None for the map's default, sqrt(d).
        seed: of the random starts, the same for every text.
        search: as for word_sensitivity; or a Budget, whose progress counts thousandths of a text.
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
    budget = Budget.of(search)
    derive_seed(seed, "starts")  # checked, like the radius, before any text is mapped
    if radius is not None:
        require_positive("radius", radius, remedy="pass None for the map's default")
    checked, results = _checked(phi, texts), []
    for index, text in enumerate(checked):
        with _naming(index):
            results.append(
                word_sensitivity(
                    phi,
                    text,
                    radius=radius,
                    seed=seed,
                    search=budget.plan,
                    certificate=certificate,
                    text_depends_on_weights=text_depends_on_weights,
                    memory_budget=budget.memory_budget,
                    progress=_reporter(budget.progress, index, len(checked)),
                )
            )
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


def _reporter(progress: Progress | None, before: int, total: int) -> Progress | None:
    """Progress of the search of one text, as a part of the whole."""
    if progress is None:
        return None

    def report(done: int, most: int) -> None:
        progress(_SHARE * before + _SHARE * done // most, _SHARE * total)

    return report
