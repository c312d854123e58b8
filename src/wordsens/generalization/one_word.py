"""The one-word experiment: learn (X, y), change one word, flip the label."""

import operator
from collections.abc import Callable, Iterable
from typing import Any, SupportsIndex

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.errors import InputError, require_positive
from wordsens.generalization.new_text import NewText
from wordsens.generalization.objective import Objective, objective_for
from wordsens.generalization.pursuit import FEW_WORDS, Pursuit, plans_for
from wordsens.generalization.result import (
    OneWordGeneralization,
    error_of,
    finite_sample_bound,
    theorem_conditions,
)
from wordsens.maps.arguments import as_feature_map
from wordsens.maps.contract import DEFAULT_MEMORY_BUDGET, FeatureMap
from wordsens.regression import MinNormFit, fit_min_norm
from wordsens.regression.features import Texts
from wordsens.search.ball import Ball
from wordsens.search.plan import SearchPlan
from wordsens.search.population import search
from wordsens.search.result import Progress, SearchResult
from wordsens.seeds import Seed, generator
from wordsens.text.matrix import TextMatrix

Word = SupportsIndex | str | None
"""An index; None or "all" for the best of all words."""


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
    starts: int | None = None,
    steps: int | None = None,
    generations: int | None = None,
    tolerance: float | None = None,
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
        starts, steps, generations, tolerance: how much the search spends (see SearchPlan); None for what suits the map.
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
    new = as_new_text(phi, texts, y, x, y_x, fit=fit, ridge=ridge, memory_budget=memory_budget)
    chosen = objective_for(new, training, objective, penalty)
    words = words_of(word, len(new.text)).to(new.rows.device)
    ball = ball_of(new, words, radius)

    def plan_of(plan: SearchPlan) -> SearchPlan:
        return plan.changed(starts=starts, steps=steps, generations=generations, tolerance=tolerance)

    stream = generator(seed, "one word", training, objective)
    searched, found = _search_words(new, words, ball, chosen, plan_of, stream, progress)
    # The searcher's ranking picks a few; the definition decides between them.
    front = found.squared.topk(min(FEW_WORDS, len(searched))).indices.tolist()
    best, value = min(
        ((at, _loss_at(new, chosen, int(searched[at]), found.perturbations[at])) for at in front),
        key=operator.itemgetter(1),
    )
    return result_at(
        new,
        int(searched[best]),
        found.perturbations[best],
        training=training,
        objective=objective,
        loss=value,
        radius=float(ball.radius[words == searched[best]]),
        evaluations=found.evaluations + len(front),
        converged=bool(found.converged[best]),
        seed=seed,
    )


def _search_words(
    new: NewText,
    words: Int[Tensor, " w"],
    ball: Ball,
    objective: Objective,
    plan_of: Callable[[SearchPlan], SearchPlan],
    stream: torch.Generator,
    progress: Progress | None,
) -> tuple[Int[Tensor, " c"], SearchResult]:
    """Words and a good Delta for each: of many words, those that a first look puts in front."""
    functionals = new.functionals(objective.kind)

    def loss(values: Tensor, items: Tensor) -> tuple[Tensor, Tensor]:
        return objective.loss(values)

    def look(chosen: Int[Tensor, " c"], plan: SearchPlan) -> SearchResult:
        group = words[chosen]
        pursuit = Pursuit(functionals, group, loss, wanted=objective.wanted(), plan=plan_of(plan))
        items = torch.arange(len(group), device=group.device)
        own = Ball(ball.radius[chosen])
        return search(pursuit, items, own, pursuit.plan, generator=stream, progress=progress)

    def look_at_all(chosen: Int[Tensor, " c"], plan: SearchPlan) -> SearchResult:
        size = 1 if functionals.one_word_at_a_time else len(chosen)
        return _joined([look(part, plan) for part in chosen.split(size)])

    first_look, thorough = plans_for(functionals)
    every = torch.arange(len(words), device=words.device)
    if len(words) <= FEW_WORDS:
        return words, look_at_all(every, thorough)
    first = look_at_all(every, first_look)
    front = first.squared.topk(FEW_WORDS).indices
    return torch.cat([words, words[front]]), _joined([first, look_at_all(front, thorough)])


def _joined(parts: list[SearchResult]) -> SearchResult:
    return SearchResult(
        perturbations=torch.cat([part.perturbations for part in parts]),
        squared=torch.cat([part.squared for part in parts]),
        evaluations=sum(part.evaluations for part in parts),
        converged=torch.cat([part.converged for part in parts]),
    )


def result_at(
    new: NewText,
    word: int,
    perturbation: Float[Tensor, " d"],
    *,
    training: str,
    objective: str,
    loss: float,
    radius: float,
    evaluations: int,
    converged: bool,
    seed: Seed,
    swapped_for: str | None = None,
) -> OneWordGeneralization:
    """The result at one witness, every number recomputed through the map."""
    outputs = new.outputs(word, perturbation, training)
    gamma = abs(outputs.shift)
    return OneWordGeneralization(
        error=error_of(new, outputs),
        gamma=gamma,
        alignment=outputs.alignment,
        bound=finite_sample_bound(gamma, outputs.alignment, new.surprise),
        perturbation=perturbation,
        output_before=new.output_before,
        output_after=outputs.after,
        variant_output_before=outputs.before,
        text_output_after=new.text_output_after(training),
        word=word,
        token=new.text.word(word),
        radius=radius,
        label=new.label,
        training=training,
        objective=objective,
        loss=loss,
        conditions=theorem_conditions(new, training, gamma),
        evaluations=evaluations,
        converged=converged,
        seed=int(seed),
        map_name=new.fit.phi.name,
        swapped_for=swapped_for,
    )


def as_new_text(
    phi: FeatureMap | Callable[[Tensor], Tensor],
    texts: Texts | None,
    y: Iterable[Any] | None,
    x: TextMatrix | Tensor | NewText,
    y_x: float | int | None,
    *,
    fit: MinNormFit | None,
    ridge: float | int,
    memory_budget: int,
) -> NewText:
    """The text that is about to be learned, from what the caller gave: a fit is made unless there is one."""
    if isinstance(x, NewText):
        return x
    if fit is None:
        if texts is None or y is None:
            raise InputError("`texts` and `y` are None; give the training texts and labels, or a `fit` of them")
        fit = fit_min_norm(as_feature_map(phi), texts, y, ridge=ridge)
    if y_x is None:
        raise InputError("`y_x` is None; give the label of `x`, +1 or -1")
    return NewText(fit, x, y_x, memory_budget=memory_budget)


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


def _loss_at(new: NewText, objective: Objective, word: int, perturbation: Float[Tensor, " d"]) -> float:
    outputs = new.outputs(word, perturbation, objective.kind)
    values = torch.tensor([[outputs.shift, outputs.alignment - objective.own]], dtype=torch.float64)
    return float(objective.loss(values)[0])
