"""The one-word experiment: a model learns (X, y), words of X change, and the right label is -y."""

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple, SupportsIndex

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError, require_choice, require_positive
from wordsens.generalization.features import Texts
from wordsens.generalization.loss import Loss, Losses, LossObjective, search_losses
from wordsens.generalization.min_norm import TRAININGS, MinNormFit, fit_min_norm
from wordsens.generalization.result import (
    OneWordFrontier,
    OneWordGeneralization,
    OneWordOutcomes,
    finite_sample_bound,
)
from wordsens.maps.arguments import as_text, radii, word_indices
from wordsens.maps.base import DEFAULT_MEMORY_BUDGET, FeatureMap
from wordsens.maps.dense import RandomFeatures
from wordsens.maps.functionals import functional_values, functionals_change
from wordsens.maps.mapping import restores_state
from wordsens.search.objective import Progress
from wordsens.search.plan import Search, SearchPlan
from wordsens.seeds import Seed, generator
from wordsens.sensitivity.several_words import BALLS
from wordsens.text.matrix import TextMatrix

# An index; several that move at once; None or "all" for the best of all words.
WordIndex = SupportsIndex | Sequence[int] | str | None

# Words, and their rows at one position of a text, (v, d); or phrases for a group of g, (v, g, d).
WordRows = tuple[Sequence[str], Tensor]

# A loss, and the fields of a result that say where it is lowest.
Found = tuple[Loss, dict[str, Any]]

DEFAULT_GAMMAS = (0.1, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75)

# So many digits of theta* must be left by rounding for the theorems' numbers to be about it.
SOLVED_DIGITS = 3

# The trainings and objectives that have a loss of their own; an alignment is the same for both
# trainings.
_CHOICES = [(training, f"{training}-alignment") for training in TRAININGS] + [
    (training, name) for training in TRAININGS for name in ("error", "penalized-error")
]


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


class Outputs(NamedTuple):
    """The linear models on one perturbed text, by definition.

    Attributes:
        shift: delta = (phi(X^G(Delta)) - phi(X)) . theta*.
        gamma: |delta|.
        alignment: F = phi(X^G(Delta)) . direction of the training.
        after: phi(X^G(Delta)) . theta after (X, y) is learned.
        error: Err = (after + y)², the squared distance from -y.
    """

    shift: float
    gamma: float
    alignment: float
    after: float
    error: float


class NewText:
    """A text X that a fitted model is about to learn, with its label y; and what one changed word,
    or a group that changes at once, can do.

    Err = (phi(X^G(Delta)).theta + y)² is the error on X^G(Delta), whose label is -y, of the model
    that has learned (X, y) (the setting of Theorems 4 and 5). Every number that a method reports is
    recomputed through phi at its witness.

    `word` is an index; a sequence of indices that move at once; or None or "all" for the best of all
    words. `ball` of a group: "joint", one ball for all, sum_i ‖Delta_i‖² / radius_i² <= 1; "each",
    every word has its own, ‖Delta_i‖ <= radius_i.

    Args:
        fit: the model before it sees (X, y): `fit_min_norm` of the training texts.
        x: the text X, of the training texts' shape.
        y_x: its label y, +1 or -1; the changed text's label is -y.
        memory_budget: bytes for intermediate results.

    Attributes:
        text, label, rows: X, y, and X in the map's dtype.
        features: phi(X), (p,), float64.
        output_before: f(X) = phi(X) . theta*.
        surprise: y - f(X), the error that learning X corrects.
        direction: for a training, the change of the parameters per unit of surprise when (X, y) is
            learned (`MinNormFit.direction`); computed once.

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

    @torch.inference_mode(False)
    def __init__(
        self,
        fit: MinNormFit,
        x: TextMatrix | Tensor,
        y_x: float | int,
        *,
        memory_budget: int = DEFAULT_MEMORY_BUDGET,
    ):
        self.fit, self.text, self.memory_budget = fit, as_text(x), memory_budget
        if others := [label for label in (y_x, *fit.labels.tolist()) if label not in (1, -1)]:
            raise InputError(
                f"`{'y_x' if y_x in others else 'y'}` (={others[0]:g}) must be +1 or -1, since the "
                "changed text has the opposite label; map the labels first: 2 * y - 1 for labels "
                "0 and 1"
            )
        self.label = float(y_x)
        if tuple(self.text.rows.shape) != fit.features.text_shape:
            raise InputError(
                f"`x` (shape {tuple(self.text.rows.shape)}) must have the shape of the training "
                f"texts, {fit.features.text_shape}; truncate it (TextMatrix.truncated)"
            )
        self.rows = fit.phi.accept(self.text.rows)
        self.features = fit.map(self.rows)
        self.output_before = float(self.features @ fit.theta)
        self.surprise = self.label - self.output_before
        self._setting: dict[str, Any] = {
            "label": self.label,
            "output_before": self.output_before,
            "map_name": fit.phi.name,
        }
        self.direction = cache(partial(fit.direction, self.features))

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
        ball: str = "joint",
        search: Search = "normal",
        progress: Progress | None = None,
    ) -> OneWordGeneralization:
        """The model after learning (X, y), on X with a word moved within a ball so that the
        objective is as low as the search can make it.

        Args:
            word: an index, a group, or None or "all" for the word at which the objective comes
                lowest.
            training: "fine-tuned" (one exact step on (X, y)) or "retrained" (interpolation of all N
                + 1 texts).
            objective: "alignment": (F + 1)² of the training's own F; "fine-tuned-alignment",
                "retrained-alignment": of the F of the training in the name; "error": Err;
                "penalized-error": Err + penalty gamma².
            penalty: see objective.
            radius: of the ball; None for the map's default, sqrt(d).
            seed: of the random starts.
            ball: of a group.
            search: "quick", "normal", "thorough" or a SearchPlan: what the search spends.
            progress: called with (steps done, steps at most) for each searched batch of words.

        Raises:
            InputError: an unknown name, word or radius.
            SingularGramError: retrained, and X lies in the span of the training texts.
        """
        loss = Loss(training, objective, penalty)
        [(_, witness)], spent = self._searched(word, [loss], radius, seed, ball, search, progress)
        return self._at(witness, loss, training, **spent)

    @torch.inference_mode(False)
    def frontier(
        self,
        word: WordIndex = 0,
        *,
        training: str = "fine-tuned",
        gammas: Iterable[Any] = DEFAULT_GAMMAS,
        radius: float | int | None = None,
        seed: Seed = 0,
        ball: str = "joint",
        search: Search = "normal",
    ) -> OneWordFrontier:
        """min Err over Delta in the ball with |delta| <= g, for each g of a grid (ours).

        For RF the frontier lies near (2 - g)² (Theorems 4 and 5); for attention it need not. Each
        limit has a loss of its own, Err plus an augmented Lagrangian of |delta| <= g; all limits
        (and words) are searched together, and every point that was evaluated counts for every limit
        it obeys.

        Args:
            word, training, radius, seed, ball, search: as for `generalization`.
            gammas: the limits, positive.

        Raises:
            InputError: no limit, or one that is not positive; and what `generalization` raises.
        """
        losses = [Loss(training, "error", limit=limit) for limit in _limits(gammas)]
        found, spent = self._searched(word, losses, radius, seed, ball, search)
        return self._frontier(found, training, **spent)

    @torch.inference_mode(False)
    def outcomes(
        self,
        word: SupportsIndex | Sequence[int] = 0,
        *,
        gammas: Iterable[Any] = DEFAULT_GAMMAS,
        penalty: float | int = 1.0,
        radius: float | int | None = None,
        seed: Seed = 0,
        ball: str = "joint",
        search: Search = "normal",
    ) -> OneWordOutcomes:
        """`generalization` and `frontier` of one word or group, for both trainings and all
        objectives, from one search.

        The losses all depend on delta and on the two alignments alone. Each is climbed from a few
        starts of its own, all at once; every point that is evaluated counts for every loss (and for
        every limit on gamma that it obeys); from the best of them the climbs continue. A fraction
        of the cost of one search per loss: O(L s (n d + d²)) for L losses (22 with eight limits)
        and s steps of a few points (ours).

        Args:
            word: what changes.
            gammas, penalty, radius, seed, ball: as for `frontier` and `generalization`.
            search: what the search spends on each loss.

        Raises:
            InputError: no limit, or one that is not positive; a bad word, penalty or radius.
            SingularGramError: X lies in the span of the training texts, so that it cannot be
                retrained on.
        """
        if word is None or isinstance(word, str):
            raise InputError(
                f"`word` (={word!r}) must be an index or a group here; for all words search one "
                "objective at a time"
            )
        limits = _limits(gammas)
        losses = [Loss(training, name, penalty) for training, name in _CHOICES]
        losses += [Loss(kind, "error", limit=limit) for kind in TRAININGS for limit in limits]
        found, spent = self._searched(word, losses, radius, seed, ball, search)
        chosen = {
            training: {
                loss.objective: self._at(witness, loss, training, **spent)
                for loss, witness in found[: len(_CHOICES)]
                if loss.training == training or "alignment" in loss.objective
            }
            for training in TRAININGS
        }
        frontiers = {kind: self._frontier(found, kind, **spent) for kind in TRAININGS}
        return OneWordOutcomes(chosen, frontiers)

    @torch.inference_mode(False)
    def swap(
        self,
        word: WordIndex = 0,
        *,
        vocabulary: WordRows | Callable[[Any], WordRows],
        training: str = "fine-tuned",
        objective: str = "error",
        gamma_limit: float | int | None = None,
        penalty: float | int = 1.0,
        radius: float | int | None = None,
    ) -> OneWordGeneralization:
        """`generalization` with Delta restricted to real words: row i becomes a vocabulary word's
        own row, or the rows of a group those of a phrase.

        All words of the vocabulary are evaluated: the minimum is exact, not searched.

        Args:
            word, training, objective, penalty: as for `generalization`.
            vocabulary: (words, rows (v, d)), for a group of g (phrases, rows (v, g, d)); or a
                function of `word` that gives them where rows depend on the position
                (`TransformerFeatures.vocabulary`).
            gamma_limit: the largest gamma of a swap that counts; None for all.
            radius: the largest ‖Delta‖ of a swap that counts; None for all: a swap may leave the
                ball of radius sqrt(d).

        Raises:
            InputError: an empty vocabulary, rows of another shape, or no swap within the limits.
        """
        started = time.perf_counter()
        loss = Loss(training, objective, penalty)
        most = torch.inf if radius is None else require_positive("radius", radius)
        limit = torch.inf if gamma_limit is None else require_positive("gamma_limit", gamma_limit)
        climbed = self.objective(word, [loss])
        change = climbed.change
        shape = change.shape if change.shape[0] > 1 else change.shape[1:]
        found: list[tuple[float, dict[str, Any], int]] = []
        for place, members in enumerate(change.groups):
            position = _plain(members)
            names, rows = vocabulary(position) if callable(vocabulary) else vocabulary
            if len(names) == 0 or tuple(rows.shape) != (len(names), *shape):
                raise InputError(
                    f"`vocabulary` has {len(names)} words and rows of shape {tuple(rows.shape)}; "
                    f"give one array of shape {tuple(shape)} per word, at least one"
                )
            deltas = rows.to(self.rows).view(len(names), *change.shape) - self.rows[members]
            places = torch.full((len(names),), place, device=deltas.device)
            values = functional_values(change, climbed.thetas, deltas, places)
            length = torch.linalg.vector_norm(deltas.double(), dim=(1, 2))
            loss_of = climbed.losses.of(values)[:, 0].nan_to_num(torch.inf)
            refused = (length > most) | (values[:, 0].abs().double() > limit)
            loss_of = loss_of.masked_fill(refused, torch.inf)
            least, index = loss_of.min(dim=0)
            witness = {
                "word": position,
                "perturbation": deltas[index].squeeze(0),
                "swapped_for": names[int(index)],
            }
            found.append((float(least), witness, len(names)))
        least, witness, _ = min(found, key=lambda swap: swap[0])
        if least == torch.inf:
            raise InputError(
                f"no vocabulary word has ‖Delta‖ <= `radius` (={radius}) and gamma <= "
                f"`gamma_limit` (={gamma_limit}); raise them, or pass None"
            )
        return self._at(
            witness,
            loss,
            training,
            radius=most,
            converged=True,
            search="every word of the vocabulary",
            evaluations=sum(tried for _, _, tried in found),
            seconds=time.perf_counter() - started,
            seed=0,
        )

    def outputs(
        self,
        word: int | Sequence[int] | Tensor,
        perturbation: Tensor,
        training: str,
    ) -> Outputs:
        """The models on X^G(Delta), Delta (d,) for a word or (g, d) for a group: the perturbed text
        is built and mapped."""
        rows = self.rows.clone()
        rows[torch.as_tensor(word)] += perturbation.to(rows.dtype)
        features = self.fit.map(rows)
        shift = float((features - self.features) @ self.fit.theta)
        alignment = float(features @ self.direction(training))
        after = self.output_before + shift + alignment * self.surprise
        return Outputs(shift, abs(shift), alignment, after, (after + self.label) ** 2)

    def conditions(
        self,
        training: str,
        gamma: float,
    ) -> dict[str, float | bool]:
        """The conditions of Theorem 4 or 5 at this sample: see `OneWordGeneralization`."""
        texts, condition = len(self.fit.features), self.fit.condition
        per_feature, per_coordinate = texts / self.fit.features.size, texts / self.rows.numel()
        solved = condition * texts * sys.float_info.epsilon <= 10.0**-SOLVED_DIGITS
        tall = training == "retrained" and max(per_feature, per_coordinate) >= 1
        necessary = isinstance(self.fit.phi, RandomFeatures) and gamma < 2 and solved and not tall
        return {
            "theorem": 4 if training == "fine-tuned" else 5,
            "texts_per_feature": per_feature,
            "texts_per_coordinate": per_coordinate,
            "condition": condition,
            "solved": solved,
            "hold": necessary,
        }

    @torch.inference_mode(False)
    def objective(
        self,
        word: WordIndex,
        losses: Sequence[Loss],
    ) -> LossObjective:
        """The function that a search climbs to make these losses small."""
        every = word is None or (isinstance(word, str) and word == "all")
        indices: Any = None if every else word
        groups = word_indices(indices, len(self.text), "word").unsqueeze(int(every))
        change = functionals_change(self.fit.phi, self.rows, groups, self.memory_budget)
        return LossObjective(change, *self._functionals(losses))

    def _functionals(self, losses: Sequence[Loss]) -> tuple[Float[Tensor, "f p"], Losses]:
        """theta* and the directions that the losses read, and the losses as functions of these."""
        kinds = [kind for kind in TRAININGS if kind in {loss.kind for loss in losses}]
        thetas = torch.stack([self.fit.theta, *map(self.direction, kinds)])
        at_rest = dict(zip(kinds, (thetas[1:] @ self.features).tolist(), strict=True))
        terms = [loss.terms(self.label, self.surprise, at_rest[loss.kind]) for loss in losses]
        constant, shift, aligned, weight = thetas.new_tensor(terms).unbind(dim=1)
        reads = [[loss.kind == kind for kind in kinds] for loss in losses]
        slope = torch.column_stack([shift, aligned.unsqueeze(1) * thetas.new_tensor(reads)])
        limit = thetas.new_tensor([loss.limit for loss in losses])
        return thetas.to(self.rows), Losses(constant, slope, weight, limit)

    def _searched(
        self,
        word: WordIndex,
        losses: Sequence[Loss],
        radius: float | int | None,
        seed: Seed,
        ball: str,
        search: Search,
        progress: Progress | None = None,
    ) -> tuple[list[Found], dict[str, Any]]:
        """The losses, each with the fields of a result that say where it is lowest; and the fields
        that the search has."""
        started = time.perf_counter()
        plan, joint = SearchPlan.of(search), require_choice("ball", ball, BALLS) == "joint"
        objective = self.objective(word, losses)
        groups = objective.change.groups
        lengths = radii(radius, self.fit.phi, self.rows, groups.flatten()).view(groups.shape)
        stream = generator(seed, "one word")
        converged = search_losses(objective, lengths, plan, stream, progress, joint=joint).tolist()
        witnesses = [
            {
                "word": _plain(groups[group]),
                "perturbation": objective.points[index].squeeze(0),
                "radius": _plain(lengths[group]),
                "converged": converged[index],
            }
            for index, group in enumerate(objective.groups.tolist())
        ]
        return list(zip(losses, witnesses, strict=True)), {
            "evaluations": objective.evaluations,
            "seconds": time.perf_counter() - started,
            "seed": int(seed),
            "search": str(plan),
        }

    def _at(
        self,
        witness: dict[str, Any],
        loss: Loss,
        training: str,
        **search: Any,
    ) -> OneWordGeneralization:
        """The result at one witness, every number recomputed through the map."""
        where = witness["word"], witness["perturbation"]
        outputs = self.outputs(*where, training)
        read = outputs if loss.kind == training else self.outputs(*where, loss.kind)
        learned = float(self.features @ self.direction(training)) * self.surprise
        return OneWordGeneralization(
            error=outputs.error,
            gamma=outputs.gamma,
            alignment=outputs.alignment,
            bound=finite_sample_bound(outputs.gamma, outputs.alignment, self.surprise),
            output_after=outputs.after,
            variant_output_before=self.output_before + outputs.shift,
            text_output_after=self.output_before + learned,
            token=" ".join(self.text.word(i) for i in torch.tensor([where[0]]).flatten().tolist()),
            objective=loss.objective,
            loss=loss.at(read.error, read.gamma, read.alignment),
            conditions=self.conditions(training, outputs.gamma),
            training=training,
            **self._setting,
            **witness,
            **search,
        )

    def _frontier(
        self,
        found: list[Found],
        training: str,
        **search: Any,
    ) -> OneWordFrontier:
        """The result: every witness is mapped through phi; a point that then breaks a limit does
        not count for it, and Delta = 0 counts for each."""
        mine = [
            (loss.limit, witness)
            for loss, witness in found
            if loss.training == training and loss.limit < torch.inf
        ]
        words = [mine[0][1]["word"]] + [witness["word"] for _, witness in mine]
        deltas = [witness["perturbation"] for _, witness in mine]
        deltas.insert(0, torch.zeros_like(deltas[0]))
        reached = [self.outputs(*point, training) for point in zip(words, deltas, strict=True)]
        numbers = torch.tensor(reached, dtype=torch.float64)
        _, gammas, alignments, _, errors = numbers.unbind(1)
        grid = torch.tensor([limit for limit, _ in mine], dtype=torch.float64)
        past = gammas > grid.unsqueeze(1)
        best = errors.masked_fill(past, torch.inf).argmin(dim=1)
        return OneWordFrontier(
            gammas=grid,
            errors=errors[best],
            attained_gammas=gammas[best],
            alignments=alignments[best],
            words=torch.tensor(words)[best],
            perturbations=torch.stack(deltas)[best],
            error_unchanged=reached[0].error,
            training=training,
            **self._setting,
            **search,
        )


def _limits(gammas: Iterable[Any]) -> list[float]:
    """The limits on gamma, ascending; InputError for one that is not positive, or none."""
    limits = sorted({require_positive("gammas", gamma) for gamma in gammas})
    if not limits:
        raise InputError("`gammas` is empty; give at least one positive limit on gamma")
    return limits


def _plain(values: Tensor) -> Any:
    """The one number, or a tuple of several."""
    listed = values.tolist()
    return listed[0] if len(listed) == 1 else tuple(listed)
