"""The one-word experiment: learn (X, y), change one word, flip the label; and its result."""

import operator
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, SupportsIndex

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.errors import InputError, require_positive
from wordsens.generalization.loss import FEW_WORDS, Loss, Losses, LossObjective, stages_for
from wordsens.generalization.new_text import Learner, NewText, Outputs, as_new_text
from wordsens.maps.base import DEFAULT_MEMORY_BUDGET
from wordsens.maps.dense import RandomFeatures
from wordsens.regression.features import Texts
from wordsens.results import Result, ResultTable
from wordsens.search.ball import Ball
from wordsens.search.maximize import maximize
from wordsens.search.objective import Progress, SearchResult
from wordsens.search.plan import Search, SearchPlan, Stages
from wordsens.seeds import Seed, generator
from wordsens.text.matrix import TextMatrix

SOLVED_DIGITS = 3
"""So many digits of theta* must be left by rounding for the theorems' numbers to be about it."""

Word = SupportsIndex | str | None
"""An index; None or "all" for the best of all words."""


@dataclass(frozen=True)
class TheoremConditions:
    """The conditions of Theorems 4 and 5, at this sample. They are asymptotic; `OneWordGeneralization.bound` is not.

    Attributes:
        theorem: 4 for fine-tuned, 5 for retrained.
        random_features: whether the map is a single random layer (RF).
        gamma_below_two: the assumption on the model before: gamma in [0, 2).
        texts_per_feature: N / p.
        texts_per_coordinate: N / (n d).
        condition: of the kernel matrix, estimated.
        solved: whether float64 solves with it: condition N eps <= 10^-SOLVED_DIGITS. N eps times the condition number
            is, up to a small constant, how far rounding moves a solution by Cholesky, relative (Higham 2002, section
            10.1); a matrix that took a jitter is always past it.

    Theorem 5 requires a small N against k and D and a well-conditioned kernel; for how small, and how well, see the
    paper: the numbers stand here, and `hold` checks only what is necessary.
    """

    theorem: int
    random_features: bool
    gamma_below_two: bool
    texts_per_feature: float
    texts_per_coordinate: float
    condition: float
    solved: bool

    @property
    def hold(self) -> bool:
        """RF, gamma < 2, a solved kernel; for Theorem 5 also N < p and N < n d: necessary, not sufficient."""
        if not (self.random_features and self.gamma_below_two and self.solved):
            return False
        return self.theorem == 4 or (self.texts_per_feature < 1 and self.texts_per_coordinate < 1)


@dataclass(frozen=True, eq=False, repr=False)
class Witness(Result):
    """A Delta at one word, and the search that it comes from.

    Attributes:
        word: i.
        perturbation: Delta.
        loss: there.
        radius: of the ball; infinite for a swap without one.
        converged: whether the search stopped at a stationary point.
        swapped_for: the vocabulary word that took the place, or None.
    """

    word: int
    perturbation: Float[Tensor, " d"]
    loss: float
    radius: float
    converged: bool
    swapped_for: str | None = None


@dataclass(frozen=True)
class Effort:
    """A search's allowance and cost: its plan in words, evaluations, seconds, the seed of its random starts."""

    search: str
    evaluations: int
    seconds: float
    seed: int


@dataclass(frozen=True, eq=False, repr=False)
class OneWordGeneralization(Result):
    """The model that learned (X, y), on X with one word changed and the label flipped (Theorems 4 and 5).

    All numbers are recomputed through the map at the witness, by definition.

    Attributes:
        error: Err = (phi(X^i(Delta)).theta - (-y))², attained: an upper bound of the least error.
        gamma: |phi(X^i(Delta)).theta* - phi(X).theta*|, what the model before (X, y) makes of the change.
        alignment: F of the training, so that phi(X^i(Delta)).theta - y = delta + (F - 1)(y - phi(X).theta*).
        bound: max(0, 2 - gamma - |F - 1| |y - phi(X).theta*|)² <= error, without asymptotics (ours).
        perturbation: Delta, (d,).
        output_before: phi(X).theta*, the model before (X, y) is learned, on X.
        output_after: phi(X^i(Delta)).theta, the model after, on the changed text.
        variant_output_before: phi(X^i(Delta)).theta*, the model before, on the changed text.
        text_output_after: phi(X).theta, the model after, on X: y, unless there is a ridge.
        word, token: the changed word; `swapped_for` is the vocabulary word that took its place, or None.
        radius: of the ball; infinite for a swap without one.
        label: y.
        training, objective: how (X, y) was learned, what Delta was chosen for.
        loss: the objective's value.
        conditions: of Theorem 4 or 5.
        search: what the search was allowed, in words, such as "normal" or "quick, starts=4".
        evaluations: how many perturbed texts were evaluated.
        seconds: what the call took.
        converged: whether the search stopped gaining, before its steps ran out, at a stationary point.
        seed: of the random starts.
        map_name: the map's name.
    """

    error: float
    gamma: float
    alignment: float
    bound: float
    perturbation: Float[Tensor, " d"]
    output_before: float
    output_after: float
    variant_output_before: float
    text_output_after: float
    word: int
    token: str
    radius: float
    label: float
    training: str
    objective: str
    loss: float
    conditions: TheoremConditions
    search: str
    evaluations: int
    seconds: float = field(compare=False)
    converged: bool
    seed: int
    map_name: str
    swapped_for: str | None = None

    def result_table(self) -> ResultTable:
        """One row: the numbers of the experiment."""
        names = ["word", "token", "error", "gamma", "alignment", "bound"]
        names += ["output_before", "output_after", "distinguished"]
        columns = {name.replace("_", " "): [getattr(self, name)] for name in names}
        return ResultTable(f"{self.map_name}, {self.training}, {self.objective}: error {self.error:.4f}", columns)

    @property
    def distinguished(self) -> bool:
        """True where the model gives the changed text the sign of its label, -y."""
        return self.output_after * self.label < 0

    def to_dict(self) -> dict[str, Any]:
        """Everything but the perturbation, as plain Python values."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        del plain["perturbation"], plain["conditions"]
        return {**plain, "distinguished": self.distinguished, "theorem_conditions_hold": self.conditions.hold}

    def __repr__(self) -> str:
        return (
            f"OneWordGeneralization({self.map_name}, {self.training}, {self.objective}: error={self.error:.4g}, "
            f"gamma={self.gamma:.4g}, alignment={self.alignment:.4g}, bound={self.bound:.4g}, "
            f"word {self.word} {self.token!r})"
        )


@torch.inference_mode(False)
def one_word_generalization(
    phi: Learner,
    texts: Texts | None = None,
    y: Iterable[Any] | None = None,
    x: TextMatrix | Tensor | None = None,
    y_x: float | int | None = None,
    *,
    word: Word = 0,
    training: str = "fine-tuned",
    objective: str = "alignment",
    seed: Seed = 0,
    penalty: float | int = 1.0,
    radius: float | int | None = None,
    ridge: float | int = 0.0,
    search: Search = "normal",
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
    progress: Progress | None = None,
) -> OneWordGeneralization:
    """A model learns N texts, then (X, y); one word of X changes, and the right label is -y: does the model see it?

    Err = (phi(X^i(Delta)).theta + y)², with Delta in the ball of radius sqrt(d) chosen for the objective
    (the setting of Theorems 4 and 5). The witness is mapped through phi, and only recomputed numbers are reported.

    Args:
        phi: a feature map, or any differentiable function of an (n, d) tensor; or the fit of the training texts
            (`fit_min_norm`), to be shared by many X; or a `NewText`, which holds the fit, X and y.
        texts, y: the N training texts, of one shape, and their labels; with a map only.
        x, y_x: the further text X and its label, +1 or -1; unless `phi` is a NewText.
        word: an index, or None or "all" for the word at which the objective comes lowest.
        training: "fine-tuned" (one exact step on (X, y)) or "retrained" (interpolation of all N + 1 texts).
        objective: "alignment": (F + 1)² of the training's own F; "fine-tuned-alignment", "retrained-alignment": of that
            one, whatever the training; "error": Err; "penalized-error": Err + penalty gamma².
        seed: of the random starts.
        penalty: see objective.
        radius: of the ball; None for the map's default, sqrt(d).
        ridge: of the fit of a map; 0 interpolates.
        search: "quick", "normal", "thorough" or a SearchPlan: what the search spends.
        memory_budget: bytes for intermediate results.
        progress: called with (steps done, steps at most) for each searched batch of words.

    Raises:
        InputError: an unknown name, label, word or radius; texts of unequal shape.
        SingularGramError: the training texts cannot be interpolated, or X lies in their span and is retrained on.

    >>> texts, x = torch.eye(8, dtype=torch.float64).view(8, 2, 4)[:2], torch.ones(2, 4, dtype=torch.float64)
    >>> g = one_word_generalization(lambda X: X, texts, [1, -1], x, 1, objective="error", radius=1.0)
    >>> round(g.error, 3), round(g.gamma, 3), round(g.alignment, 3)
    (0.318, 1.393, 0.956)
    """
    started, plan = time.perf_counter(), SearchPlan.of(search)
    new = as_new_text(phi, texts, y, x, y_x, ridge=ridge, memory_budget=memory_budget)
    loss = Loss.of(training, objective, penalty)
    losses = Losses(new, [loss])
    words = words_of(word, len(new.text)).to(new.rows.device)
    ball = ball_of(new, words, radius)
    stream = generator(seed, "one word", training, objective)
    searched, points = _search_words(words, ball, losses, plan, stream, progress)
    # The searcher's ranking picks a few; the definition decides between them.
    front = points.squared.topk(min(FEW_WORDS, len(searched))).indices.tolist()
    values = [losses.at(new.outputs(int(searched[at]), points.perturbations[at], loss.kind)) for at in front]
    value, best = min(zip(values, front, strict=True), key=operator.itemgetter(0))
    witness = Witness(
        word=int(searched[best]),
        perturbation=points.perturbations[best],
        loss=value,
        radius=float(ball.radius[words == searched[best]]),
        converged=bool(points.converged[best]),
    )
    effort = Effort(str(plan), points.evaluations + len(front), time.perf_counter() - started, int(seed))
    return result_at(new, witness, effort, training=training, objective=objective)


def _search_words(
    words: Int[Tensor, " w"],
    ball: Ball,
    losses: Losses,
    plan: SearchPlan,
    stream: torch.Generator,
    progress: Progress | None,
) -> tuple[Int[Tensor, " c"], SearchResult]:
    """Words and a good Delta for each: of many words, those that come out best of a first search."""

    def search(at: Int[Tensor, " c"], stages: Stages) -> SearchResult:
        objective = LossObjective(losses.repeated(len(at)), words[at], stages)
        items = torch.arange(len(at), device=at.device)
        return maximize(objective, items, Ball(ball.radius[at]), plan, generator=stream, progress=progress)

    def search_all(at: Int[Tensor, " c"], stages: Stages) -> SearchResult:
        size = 1 if losses.functionals.one_word_at_a_time else len(at)
        return _joined([search(part, stages) for part in at.split(size)])

    first_stages, close_stages = stages_for(losses.functionals)
    every = torch.arange(len(words), device=words.device)
    if len(words) <= FEW_WORDS:
        return words, search_all(every, close_stages)
    first = search_all(every, first_stages)
    front = first.squared.topk(FEW_WORDS).indices
    return torch.cat([words, words[front]]), _joined([first, search_all(front, close_stages)])


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


def error_of(new: NewText, outputs: Outputs) -> float:
    """Err: the squared distance of the output from -y."""
    return (outputs.after + new.label) ** 2


def finite_sample_bound(gamma: float, alignment: float, surprise: float) -> float:
    """max(0, 2 - gamma - |F - 1| |y - f(X)|)²: no sample's Err is below it (ours; docs/theory/generalization.md).

    >>> finite_sample_bound(0.5, 0.9, 1.0)
    1.95...
    """
    return max(0.0, 2 - gamma - abs(alignment - 1) * abs(surprise)) ** 2


def theorem_conditions(new: NewText, training: str, gamma: float) -> TheoremConditions:
    """The conditions of Theorem 4 or 5, at this sample."""
    n, d = new.rows.shape
    features, condition = new.fit.features, new.fit.conditioning.condition
    return TheoremConditions(
        theorem=4 if training == "fine-tuned" else 5,
        random_features=isinstance(new.fit.phi, RandomFeatures),
        gamma_below_two=gamma < 2,
        texts_per_feature=len(features) / features.size,
        texts_per_coordinate=len(features) / (n * d),
        condition=condition,
        solved=condition * len(features) * sys.float_info.epsilon <= 10.0**-SOLVED_DIGITS,
    )


def result_at(
    new: NewText, witness: Witness, effort: Effort, *, training: str, objective: str
) -> OneWordGeneralization:
    """The result at one witness, every number recomputed through the map."""
    outputs = new.outputs(witness.word, witness.perturbation, training)
    gamma = abs(outputs.shift)
    return OneWordGeneralization(
        error=error_of(new, outputs),
        gamma=gamma,
        alignment=outputs.alignment,
        bound=finite_sample_bound(gamma, outputs.alignment, new.surprise),
        output_before=new.output_before,
        output_after=outputs.after,
        variant_output_before=outputs.before,
        text_output_after=new.text_output_after(training),
        token=new.text.word(witness.word),
        label=new.label,
        training=training,
        objective=objective,
        conditions=theorem_conditions(new, training, gamma),
        map_name=new.fit.phi.name,
        **vars(witness),
        **vars(effort),
    )
