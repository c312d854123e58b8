"""The one-word experiment: a model learns (X, y), one word of X changes, and the right label is
-y."""

import operator
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, SupportsIndex

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.errors import InputError, require_positive
from wordsens.generalization.features import Texts
from wordsens.generalization.loss import (
    FEW_WORDS,
    BestPoints,
    Loss,
    Losses,
    LossObjective,
    climb_within_limits,
    stages_for,
)
from wordsens.generalization.min_norm import TRAININGS, fit_min_norm
from wordsens.generalization.result import (
    OneWordFrontier,
    OneWordGeneralization,
    OneWordOutcomes,
    finite_sample_bound,
)
from wordsens.generalization.setting import OneWordSetting
from wordsens.maps.arguments import radii
from wordsens.maps.base import FeatureMap
from wordsens.maps.mapping import restores_state
from wordsens.search.maximize import maximize
from wordsens.search.objective import Ball, Progress, SearchResult
from wordsens.search.plan import Search, SearchPlan, Stages
from wordsens.seeds import Seed, generator
from wordsens.text.matrix import TextMatrix

WordIndex = SupportsIndex | str | None
"""An index; None or "all" for the best of all words."""

WordRows = tuple[Sequence[str], Tensor]
"""Words and their rows (v, d) at one position of a text."""

DEFAULT_GAMMAS = (0.1, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75)

_ROUNDS, _ROUND_STEPS = 6, 15
"""Of the multipliers, and of the climb after each."""
_LINEAR_ROUNDS, _LINEAR_ROUND_STEPS = 3, 6
"""Of maps that are nearly linear in one word: a few steps suffice."""

_TOGETHER = Stages(
    starts=12,
    steps=30,
    generations=3,
    population=3,
    children=4,
    finalists=1,
    finish=30,
    tolerance=1e-7,
)
_TOGETHER_LINEAR = Stages(starts=4, steps=8, finalists=1, finish=10, tolerance=1e-7)

_ALIGNMENTS = tuple(f"{training}-alignment" for training in TRAININGS)
_CHOICES = [(name.removesuffix("-alignment"), name) for name in _ALIGNMENTS] + [
    (training, name) for training in TRAININGS for name in ("error", "penalized-error")
]
"""The trainings and objectives that have a loss of their own; an alignment is the same for both
trainings."""


@restores_state
def one_word_generalization(
    phi: FeatureMap | Callable[[Tensor], Tensor],
    texts: Texts,
    y: Iterable[Any],
    x: TextMatrix | Tensor,
    y_x: float | int,
    **options: Any,
) -> OneWordGeneralization:
    """`NewText.generalization` of the model that fits (texts, y), with its options: one text, one
    question.

    >>> texts, x = torch.eye(8, dtype=torch.float64).view(8, 2, 4)[:2], torch.ones(2, 4, dtype=torch.float64)
    >>> round(one_word_generalization(lambda X: X, texts, [1, -1], x, 1, objective="error", radius=1.0).error, 3)
    0.318
    """  # noqa: E501
    return NewText(fit_min_norm(phi, texts, y), x, y_x).generalization(**options)


class NewText(OneWordSetting):
    """A text X that a fitted model is about to learn, with its label y; and what one changed word
    of it can do.

    Err = (phi(X^i(Delta)).theta + y)² is the error of the model that has learned (X, y) on
    X^i(Delta), whose label is -y (the setting of Theorems 4 and 5). Every number that a method
    reports is recomputed through phi at its witness.

    Args:
        fit: the model before it sees (X, y): `fit_min_norm` of the training texts.
        x: the text X, of the training texts' shape.
        y_x: its label y, +1 or -1; the changed text's label is -y.
        memory_budget: bytes for intermediate results.

    Attributes:
        text, label, rows: X, y, and X in the map's dtype.
        features: phi(X), (p,), float64.
        output_before: f(X) = phi(X) . theta*.
        surprise: y - f(X), what learning X has to make up for.

    Raises:
        InputError: a label, of X or of a training text, that is neither +1 nor -1; or a text of
            another shape.

    >>> from wordsens import fit_min_norm
    >>> texts, x = torch.eye(8, dtype=torch.float64).view(8, 2, 4)[:2], torch.ones(2, 4, dtype=torch.float64)
    >>> new = NewText(fit_min_norm(lambda X: X, texts, [1, -1]), x, 1)
    >>> g = new.generalization(objective="error", radius=1.0)
    >>> round(g.error, 3), round(g.gamma, 3), round(g.alignment, 3)
    (0.318, 1.393, 0.956)
    """  # noqa: E501

    def __repr__(self) -> str:
        n, d = self.rows.shape
        return (
            f"NewText({self.fit.phi.name}, n={n}, d={d}, label={self.label:+g}, "
            f"output_before={self.output_before:.6g})"
        )

    @torch.inference_mode(False)
    def generalization(
        self,
        word: WordIndex = 0,
        *,
        training: str = "fine-tuned",
        objective: str = "alignment",
        penalty: float | int = 1.0,
        radius: float | int | None = None,
        seed: Seed = 0,
        search: Search = "normal",
        progress: Progress | None = None,
    ) -> OneWordGeneralization:
        """The model after (X, y), on X with one word moved within a ball so that the objective is
        as low as can be.

        Args:
            word: an index, or None or "all" for the word at which the objective comes lowest.
            training: "fine-tuned" (one exact step on (X, y)) or "retrained" (interpolation of all N
                + 1 texts).
            objective: "alignment": (F + 1)² of the training's own F; "fine-tuned-alignment",
                "retrained-alignment": of that one, whatever the training; "error": Err;
                "penalized-error": Err + penalty gamma².
            penalty: see objective.
            radius: of the ball; None for the map's default, sqrt(d).
            seed: of the random starts.
            search: "quick", "normal", "thorough" or a SearchPlan: what the search spends.
            progress: called with (steps done, steps at most) for each searched batch of words.

        Raises:
            InputError: an unknown name, word or radius.
            SingularGramError: X lies in the span of the training texts and is retrained on.
        """
        started, plan = time.perf_counter(), SearchPlan.of(search)
        loss = Loss.of(training, objective, penalty)
        losses, words = Losses(self, [loss]), self._words(word)
        ball, stream = self._ball(words, radius), generator(seed, "one word", training, objective)
        searched, points = _search_words(words, ball, losses, plan, stream, progress)
        # The searcher's ranking picks a few; the definition decides between them.
        front = points.squared.topk(min(FEW_WORDS, len(searched))).indices.tolist()
        values = [
            losses.at(self.outputs(int(searched[item]), points.perturbations[item], loss.kind))
            for item in front
        ]
        value, best = min(zip(values, front, strict=True), key=operator.itemgetter(0))
        return self._at(
            int(searched[best]),
            points.perturbations[best],
            training=training,
            objective=objective,
            loss=value,
            radius=float(ball.radius[words == searched[best]]),
            converged=bool(points.converged[best]),
            search=str(plan),
            evaluations=points.evaluations + len(front),
            seconds=time.perf_counter() - started,
            seed=int(seed),
        )

    @torch.inference_mode(False)
    def frontier(
        self,
        word: WordIndex = 0,
        *,
        training: str = "fine-tuned",
        gammas: Iterable[Any] = DEFAULT_GAMMAS,
        radius: float | int | None = None,
        seed: Seed = 0,
        search: Search = "normal",
    ) -> OneWordFrontier:
        """min Err over Delta in the ball with |delta| <= g, for each g of a grid (ours).

        For RF the frontier lies near (2 - g)² (Theorems 4 and 5); for attention it need not. Each
        limit has a loss of its own, Err plus an augmented Lagrangian of |delta| <= g; all limits
        (and words) are searched together and exchange their points, and every point that was
        evaluated counts for every limit it obeys.

        Args:
            word, training, radius, seed, search: as for `generalization`.
            gammas: the limits, positive.

        Raises:
            InputError: no limit, or one that is not positive; and what `generalization` raises.
        """
        started, plan = time.perf_counter(), SearchPlan.of(search)
        limits = _limits(gammas)
        losses, words = Losses(self, losses_under(training, limits)), self._words(word)
        best, stream = BestPoints(losses, self), generator(seed, "frontier", training)

        def search_words(chosen: Int[Tensor, " w"], stages: Stages, rounds: int) -> None:
            """Every pair of a word and a limit is an item; a search, then rounds that raise the
            multipliers."""
            for group in chosen.split(1 if losses.functionals.one_word_at_a_time else len(chosen)):
                items = losses.repeated(len(group))
                of_items = group.repeat_interleave(len(losses))
                objective = LossObjective(items, of_items, stages, observe=best.see)
                reach = self._ball(group, radius).radius.repeat_interleave(len(losses))
                each = torch.arange(len(items), device=reach.device)
                points = maximize(
                    objective, each, Ball(reach), plan, generator=stream
                ).perturbations
                points = points / reach.to(points.dtype).unsqueeze(1)
                climb_within_limits(
                    objective, items, of_items, reach, points, rounds=rounds, steps=_ROUND_STEPS
                )

        first_stages, close_stages = stages_for(losses.functionals)
        if len(words) > FEW_WORDS:
            search_words(words, first_stages, 1)
            words = best.words.unique()
        search_words(words, close_stages, _ROUNDS)
        return self._frontier_at(
            training,
            limits,
            best.words,
            best.perturbations,
            search=str(plan),
            evaluations=best.evaluations,
            seconds=time.perf_counter() - started,
            seed=int(seed),
        )

    @torch.inference_mode(False)
    def outcomes(
        self,
        word: SupportsIndex = 0,
        *,
        gammas: Iterable[Any] = DEFAULT_GAMMAS,
        penalty: float | int = 1.0,
        radius: float | int | None = None,
        seed: Seed = 0,
        search: Search = "normal",
    ) -> OneWordOutcomes:
        """`generalization` and `frontier` of one word, for both trainings and all objectives, from
        one search.

        The losses all depend on delta and on the two alignments alone. Each is climbed from a few
        starts of its own, all at once; every point that is evaluated counts for every loss (and for
        every limit on gamma that it obeys); from the best of them the climbs go on. A fraction of
        the cost of one search a loss: O(L s (n d + d²)) for L losses (22 with eight limits) and s
        steps of a few points (ours).

        Args:
            word: the word that changes.
            gammas, penalty, radius, seed: as for `frontier` and `generalization`.
            search: what the search spends on each loss.

        Raises:
            InputError: no limit, or one that is not positive; a bad word, penalty or radius.
            SingularGramError: X lies in the span of the training texts, so that it cannot be
                retrained on.
        """
        started, plan = time.perf_counter(), SearchPlan.of(search)
        words = self._words(word)
        if len(words) != 1:
            raise InputError(
                f"`word` (={word!r}) must be an index here; for all words search one objective at "
                "a time"
            )
        limits, ball = _limits(gammas), self._ball(words, radius)
        under = chain.from_iterable(losses_under(training, limits) for training in TRAININGS)
        losses = Losses(self, [*(Loss.of(*choice, penalty) for choice in _CHOICES), *under])
        best, linear = BestPoints(losses, self), losses.functionals.one_word_at_a_time
        stages = _TOGETHER_LINEAR if linear else _TOGETHER

        def objective(items: Losses) -> LossObjective:
            return LossObjective(items, words.expand(len(items)), stages, observe=best.see)

        each = torch.arange(len(losses), device=words.device)
        reach, stream = ball.radius.expand(len(each)), generator(seed, "together")
        points = maximize(
            objective(losses), each, Ball(reach), plan, generator=stream
        ).perturbations
        # Points inside a limit and, beside them, those that the stiffness of the limits leaves a
        # little outside.
        both, reach = losses.repeated(2), reach.repeat(2)
        points = torch.cat([points, best.perturbations]) / reach.to(points.dtype).unsqueeze(1)
        rounds, steps = (_LINEAR_ROUNDS, _LINEAR_ROUND_STEPS) if linear else (_ROUNDS, _ROUND_STEPS)
        each_word = words.expand(len(both))
        idle = climb_within_limits(
            objective(both), both, each_word, reach, points, rounds=rounds, steps=steps
        )
        converged = idle.view(2, -1).any(dim=0)
        spent: dict[str, Any] = {
            "search": str(plan),
            "evaluations": best.evaluations,
            "seed": int(seed),
        }
        spent["seconds"] = time.perf_counter() - started
        index, chosen = int(words[0]), []
        for item, (kind, name) in enumerate(_CHOICES):
            delta = best.perturbations[item]
            where: dict[str, Any] = {"loss": losses.at(self.outputs(index, delta, kind), item)}
            where |= {"radius": float(ball.radius[0]), "converged": bool(converged[item])}
            for training in TRAININGS if name in _ALIGNMENTS else (kind,):
                chosen.append(
                    self._at(index, delta, training=training, objective=name, **where, **spent)
                )
        deltas = best.perturbations[len(_CHOICES) :].chunk(len(TRAININGS))
        frontiers = [
            self._frontier_at(training, limits, words.expand(len(limits)), delta, **spent)
            for training, delta in zip(TRAININGS, deltas, strict=True)
        ]
        return OneWordOutcomes(tuple(chosen), tuple(frontiers))

    @torch.inference_mode(False)
    def swap(
        self,
        word: WordIndex = 0,
        *,
        vocabulary: WordRows | Callable[[int], WordRows],
        training: str = "fine-tuned",
        objective: str = "error",
        gamma_limit: float | int | None = None,
        penalty: float | int = 1.0,
        radius: float | int | None = None,
    ) -> OneWordGeneralization:
        """`generalization` with Delta restricted to real words: row i becomes a vocabulary word's
        own row.

        All words of the vocabulary are evaluated: the minimum is exact, not searched.

        Args:
            word, training, objective, penalty: as for `generalization`.
            vocabulary: (words, rows (v, d)), or a function of the position that gives them where
                rows depend on it (`TransformerFeatures.vocabulary`).
            gamma_limit: only swaps with gamma up to this count; None for all.
            radius: only swaps with ‖Delta‖ up to this count; None for all: a swap may leave the
                ball of radius sqrt(d).

        Raises:
            InputError: an empty vocabulary, rows of another length, or no swap within the limits.
        """
        started = time.perf_counter()
        losses = Losses(self, [Loss.of(training, objective, penalty)])
        most = float("inf") if radius is None else require_positive("radius", radius)
        limit = (
            float("inf") if gamma_limit is None else require_positive("gamma_limit", gamma_limit)
        )
        best: tuple[float, int, Tensor, str] | None = None
        evaluations = 0
        for index in self._words(word).tolist():
            names, rows = vocabulary(index) if callable(vocabulary) else vocabulary
            d = self.rows.shape[1]
            if rows.ndim != 2 or rows.shape[1] != d or len(rows) != len(names) or len(rows) == 0:
                raise InputError(
                    f"`vocabulary` has {len(names)} words and rows of shape {tuple(rows.shape)}; "
                    f"give one row of {d} "
                    "coordinates a word, at least one"
                )
            perturbations = rows.to(self.rows) - self.rows[index]
            same = torch.full((len(names),), index, device=self.rows.device)
            values = losses.functionals.values(perturbations, same)
            evaluations += len(names)
            allowed = torch.linalg.vector_norm(perturbations, dim=1, dtype=torch.float64) <= most
            allowed &= values[:, 0].abs().double() <= limit
            loss = torch.where(
                allowed, losses.loss(values, torch.zeros_like(same))[0].double(), torch.inf
            )
            least = int(loss.argmin())
            if bool(allowed.any()) and (best is None or float(loss[least]) < best[0]):
                best = float(loss[least]), index, perturbations[least], names[least]
        if best is None:
            raise InputError(
                f"no vocabulary word has ‖Delta‖ <= `radius` (={radius}) and gamma <= "
                f"`gamma_limit` (={gamma_limit}); "
                "raise them, or pass None"
            )
        loss, index, delta, name = best
        return self._at(
            index,
            delta,
            training=training,
            objective=objective,
            loss=loss,
            radius=most,
            converged=True,
            search="every word of the vocabulary",
            evaluations=evaluations,
            seconds=time.perf_counter() - started,
            seed=0,
            swapped_for=name,
        )

    def _at(
        self, word: int, perturbation: Float[Tensor, " d"], *, training: str, **search: Any
    ) -> OneWordGeneralization:
        """The result at one witness, every number recomputed through the map."""
        outputs = self.outputs(word, perturbation, training)
        return OneWordGeneralization(
            error=outputs.error,
            gamma=outputs.gamma,
            alignment=outputs.alignment,
            bound=finite_sample_bound(outputs.gamma, outputs.alignment, self.surprise),
            perturbation=perturbation,
            output_before=self.output_before,
            output_after=outputs.after,
            variant_output_before=outputs.before,
            text_output_after=self.text_output_after(training),
            word=word,
            token=self.text.word(word),
            label=self.label,
            training=training,
            conditions=self.conditions(training, outputs.gamma),
            map_name=self.fit.phi.name,
            **search,
        )

    def _frontier_at(
        self,
        training: str,
        limits: Float[Tensor, " g"],
        words: Int[Tensor, " g"],
        perturbations: Float[Tensor, "g d"],
        **search: Any,
    ) -> OneWordFrontier:
        """The result: every witness is mapped through phi; a point that then breaks a limit does
        not count for it."""
        at_rest = self.outputs(int(words[0]), torch.zeros_like(perturbations[0]), training)
        reached = [
            self.outputs(int(word), delta, training)
            for word, delta in zip(words, perturbations, strict=True)
        ]
        outputs, places = [], []
        for limit in limits.tolist():
            inside = [place for place, point in enumerate(reached) if point.gamma <= limit]
            place = min(inside, default=None, key=lambda place: reached[place].error)
            outputs.append(at_rest if place is None else reached[place])
            places.append(place)
        picked = torch.tensor([place or 0 for place in places], device=words.device)
        unmoved = torch.tensor([place is None for place in places], device=words.device)
        return OneWordFrontier(
            gammas=limits.to(words.device),
            errors=torch.tensor([point.error for point in outputs], dtype=torch.float64),
            attained_gammas=torch.tensor([point.gamma for point in outputs], dtype=torch.float64),
            alignments=torch.tensor([point.alignment for point in outputs], dtype=torch.float64),
            words=words[picked],
            perturbations=torch.where(unmoved.unsqueeze(1), 0.0, perturbations[picked]),
            theorem=(2 - limits).clamp(min=0).square().to(words.device),
            error_unchanged=at_rest.error,
            training=training,
            output_before=self.output_before,
            label=self.label,
            map_name=self.fit.phi.name,
            **search,
        )

    def _words(self, word: WordIndex) -> Int[Tensor, " w"]:
        """The words to search; InputError for what is not an index of the text."""
        n = len(self.text)
        if word is None or word == "all":
            return torch.arange(n, device=self.rows.device)
        try:
            if isinstance(word, (bool, str)):
                raise TypeError
            index = operator.index(word)
        except TypeError as error:
            raise InputError(
                f"`word` (={word!r}) must be an index, or 'all' for the best of all words"
            ) from error
        if not -n <= index < n:
            raise InputError(
                f"`word` (={index}) is out of range: the text has {n} words, 0 to {n - 1}"
            )
        return torch.tensor([index % n], device=self.rows.device)

    def _ball(self, words: Int[Tensor, " w"], radius: float | int | None) -> Ball:
        """The ball of each word: the map's default radius, or the caller's."""
        return Ball(radii(radius, self.fit.phi, self.rows, words))


def losses_under(training: str, limits: Float[Tensor, " g"]) -> list[Loss]:
    """Err under each limit on gamma."""
    return [replace(Loss.of(training, "error"), limit=limit) for limit in limits.tolist()]


def _limits(gammas: Iterable[Any]) -> Float[Tensor, " g"]:
    """The limits on gamma, ascending; InputError for one that is not positive, or none."""
    limits = torch.tensor(
        sorted({require_positive("gammas", gamma) for gamma in gammas}), dtype=torch.float64
    )
    if len(limits) == 0:
        raise InputError("`gammas` is empty; give at least one positive limit on gamma")
    return limits


def _search_words(
    words: Int[Tensor, " w"],
    ball: Ball,
    losses: Losses,
    plan: SearchPlan,
    stream: torch.Generator,
    progress: Progress | None,
) -> tuple[Int[Tensor, " c"], SearchResult]:
    """Words and a good Delta for each: of many words, those that come out best of a first
    search."""

    def search(places: Int[Tensor, " c"], stages: Stages) -> SearchResult:
        parts = []
        for part in places.split(1 if losses.functionals.one_word_at_a_time else len(places)):
            objective = LossObjective(losses.repeated(len(part)), words[part], stages)
            items = torch.arange(len(part), device=part.device)
            parts.append(
                maximize(
                    objective,
                    items,
                    Ball(ball.radius[part]),
                    plan,
                    generator=stream,
                    progress=progress,
                )
            )
        return SearchResult.joined(parts)

    first_stages, close_stages = stages_for(losses.functionals)
    every = torch.arange(len(words), device=words.device)
    if len(words) <= FEW_WORDS:
        return words, search(every, close_stages)
    first = search(every, first_stages)
    front = first.squared.topk(FEW_WORDS).indices
    return torch.cat([words, words[front]]), SearchResult.joined(
        [first, search(front, close_stages)]
    )
