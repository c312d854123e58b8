"""The one-word experiment: learn (X, y), change one word, flip the label."""

import operator
import time
from collections.abc import Callable, Iterable
from typing import Any, SupportsIndex

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.errors import InputError, require_positive
from wordsens.generalization.loss import OneWordLoss, loss_for
from wordsens.generalization.loss_objective import FEW_WORDS, LossObjective, stages_for
from wordsens.generalization.new_text import Learned, NewText, as_new_text
from wordsens.generalization.result import Effort, OneWordGeneralization, Witness, result_at
from wordsens.maps.base import DEFAULT_MEMORY_BUDGET, FeatureMap
from wordsens.regression import MinNormFit
from wordsens.regression.features import Texts
from wordsens.search.ball import Ball
from wordsens.search.maximize import maximize
from wordsens.search.objective import Progress, SearchResult
from wordsens.search.plan import Search, SearchPlan, Stages
from wordsens.seeds import Seed, generator
from wordsens.text.matrix import TextMatrix

Word = SupportsIndex | str | None
"""An index; None or "all" for the best of all words."""


@torch.inference_mode(False)
def one_word_generalization(
    phi: FeatureMap | Callable[[Tensor], Tensor],
    texts: Texts | None,
    y: Iterable[Any] | None,
    x: TextMatrix | Tensor | NewText,
    y_x: float | int | None = None,
    word: Word = 0,
    training: str = "fine-tuned",
    objective: str = "alignment",
    seed: Seed = 0,
    *,
    penalty: float | int = 1.0,
    radius: float | int | None = None,
    ridge: float | int = 0.0,
    fit: MinNormFit | None = None,
    search: Search = "normal",
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
    progress: Progress | None = None,
) -> OneWordGeneralization:
    """A model learns N texts, then (X, y); one word of X changes, and the right label is -y: does the model see it?

    Err = (phi(X^i(Delta)).theta + y)², with Delta in the ball of radius sqrt(d) chosen for the objective
    (the setting of Theorems 4 and 5). The witness is mapped through phi, and only recomputed numbers are reported.

    Args:
        phi: a feature map, or any differentiable function of an (n, d) tensor.
        texts, y: the N training texts, of one shape, and their labels; not looked at when `fit` is given.
        x, y_x: the further text X and its label, +1 or -1; or a NewText, which holds both and its fit.
        word: an index, or None or "all" for the word at which the objective comes lowest.
        training: "fine-tuned" (one exact step on (X, y)) or "retrained" (interpolation of all N + 1 texts).
        objective: "alignment": (F + 1)² of the training's own F; "fine-tuned-alignment", "retrained-alignment": of that
            one, whatever the training; "error": Err; "penalized-error": Err + penalty gamma².
        seed: of the random starts.
        penalty: see objective.
        radius: of the ball; None for the map's default, sqrt(d).
        ridge: of the fit; 0 interpolates.
        fit: what `fit_min_norm` made of the training texts, to be shared by many X.
        search: "quick", "normal", "thorough" or a SearchPlan: what the search spends.
        memory_budget: bytes for intermediate results.
        progress: called with (steps done, steps at most) for each searched batch of words.

    Raises:
        InputError: an unknown name, label, word or radius; texts of unequal shape.
        SingularGramError: the training texts cannot be interpolated, or X lies in their span and is retrained on.

    >>> seen, new = torch.eye(8, dtype=torch.float64).view(8, 2, 4)[:2], torch.ones(2, 4, dtype=torch.float64)
    >>> g = one_word_generalization(lambda X: X, seen, [1, -1], new, 1, objective="error", radius=1.0)
    >>> round(g.error, 3), round(g.gamma, 3), round(g.alignment, 3)
    (0.318, 1.393, 0.956)
    """
    started, plan = time.perf_counter(), SearchPlan.of(search)
    new = as_new_text(x, y_x, Learned(phi, texts, y, ridge, fit), memory_budget=memory_budget)
    loss = loss_for(new, training, objective, penalty)
    words = words_of(word, len(new.text)).to(new.rows.device)
    ball = ball_of(new, words, radius)
    stream = generator(seed, "one word", training, objective)
    searched, found = _search_words(new, words, ball, loss, plan, stream, progress)
    # The searcher's ranking picks a few; the definition decides between them.
    front = found.squared.topk(min(FEW_WORDS, len(searched))).indices.tolist()
    best, value = min(
        ((at, _loss_at(new, loss, int(searched[at]), found.perturbations[at])) for at in front),
        key=operator.itemgetter(1),
    )
    witness = Witness(
        word=int(searched[best]),
        perturbation=found.perturbations[best],
        loss=value,
        radius=float(ball.radius[words == searched[best]]),
        converged=bool(found.converged[best]),
    )
    effort = Effort(str(plan), found.evaluations + len(front), time.perf_counter() - started, int(seed))
    return result_at(new, witness, effort, training=training, objective=objective)


def _search_words(
    new: NewText,
    words: Int[Tensor, " w"],
    ball: Ball,
    chosen: OneWordLoss,
    plan: SearchPlan,
    stream: torch.Generator,
    progress: Progress | None,
) -> tuple[Int[Tensor, " c"], SearchResult]:
    """Words and a good Delta for each: of many words, those that a first look puts in front."""
    functionals = new.functionals(chosen.kind)

    def loss(values: Tensor, items: Tensor) -> tuple[Tensor, Tensor]:
        return chosen.loss(values)

    def look(at: Int[Tensor, " c"], stages: Stages) -> SearchResult:
        group = words[at]
        objective = LossObjective(functionals, group, loss, wanted=chosen.wanted(), stages=stages)
        items = torch.arange(len(group), device=group.device)
        own = Ball(ball.radius[at])
        return maximize(objective, items, own, plan, generator=stream, progress=progress)

    def look_at_all(at: Int[Tensor, " c"], stages: Stages) -> SearchResult:
        size = 1 if functionals.one_word_at_a_time else len(at)
        return _joined([look(part, stages) for part in at.split(size)])

    first_look, close_look = stages_for(functionals)
    every = torch.arange(len(words), device=words.device)
    if len(words) <= FEW_WORDS:
        return words, look_at_all(every, close_look)
    first = look_at_all(every, first_look)
    front = first.squared.topk(FEW_WORDS).indices
    return torch.cat([words, words[front]]), _joined([first, look_at_all(front, close_look)])


def _joined(parts: list[SearchResult]) -> SearchResult:
    return SearchResult(
        perturbations=torch.cat([part.perturbations for part in parts]),
        squared=torch.cat([part.squared for part in parts]),
        spent=torch.cat([part.spent for part in parts]),
        converged=torch.cat([part.converged for part in parts]),
    )


def words_of(word: Word, n: int) -> Int[Tensor, " w"]:
    """The words to search; InputError for what is not an index of a text of n words."""
    if word is None or word == "all":
        return torch.arange(n)
    try:
        if isinstance(word, (bool, str)):
            raise TypeError
        index = operator.index(word)
    except TypeError as error:
        raise InputError(f"`word` (={word!r}) must be an index, or 'all' for the best of all words") from error
    if not -n <= index < n:
        raise InputError(f"`word` (={index}) is out of range: the text has {n} words, 0 to {n - 1}")
    return torch.tensor([index % n])


def ball_of(new: NewText, words: Int[Tensor, " w"], radius: float | int | None) -> Ball:
    """The ball of each word: the map's default radius, or the caller's."""
    if radius is None:
        return Ball(new.fit.phi.default_radius(new.rows)[words])
    value = require_positive("radius", radius, remedy="pass None for the map's default")
    return Ball(torch.full((len(words),), value, dtype=torch.float64, device=new.rows.device))


def _loss_at(new: NewText, loss: OneWordLoss, word: int, perturbation: Float[Tensor, " d"]) -> float:
    outputs = new.outputs(word, perturbation, loss.kind)
    values = torch.tensor([[outputs.shift, outputs.alignment - loss.own]], dtype=torch.float64)
    return float(loss.loss(values)[0])
