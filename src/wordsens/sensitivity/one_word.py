"""Word sensitivity: the definition, attained by a witness that is recomputed through the map."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.certificates.table import certificate_for
from wordsens.errors import InputError, MissingExtraError, require_count
from wordsens.maps.arguments import as_feature_map, as_text, radii, word_indices
from wordsens.maps.contract import DEFAULT_MEMORY_BUDGET, FeatureMap, feature_norm, perturbed_texts
from wordsens.maps.repeatable import leaves_the_map_as_found
from wordsens.search.ball import Ball
from wordsens.search.result import Progress, SearchResult
from wordsens.search.witnesses import find_witnesses
from wordsens.seeds import Seed, generator
from wordsens.text.matrix import TextMatrix

_SURE = 0.01
"""A search has converged where its value is at least 100 times the rounding error: so is its gradient's, about."""

_MAPPED_BYTES = 64 << 20
"""Perturbed texts are mapped in batches of this size: larger ones fall out of the cache and are slower."""


@dataclass(frozen=True)
class Sensitivity:
    """What `word_sensitivity` found for one text under one map.

    Attributes:
        value: the largest of `per_word`: attained, so a lower bound of S_phi(X) (paper, eq. 1).
        word: the index of its word.
        words: (w,), the words that were searched.
        per_word: (w,), ‖phi(X^i(Delta)) - phi(X)‖ / ‖phi(X)‖ at each word's witness, recomputed through phi, less
            `rounding` (0 where nothing is left).
        rounding: (w,), an estimate of the recomputation's rounding error: how phi magnifies the last digits of X
            and of the best witness. Near it, at tiny radii, the change is lost in the digits of phi(X).
        perturbations: (w, d), the witness Delta of each word.
        radius: (w,), the radius of each word's ball.
        upper: an upper bound of S_phi(X) over the searched words, or None where the map has no certificate.
        upper_per_word: (w,), likewise for each word, or None.
        rigor: of the upper bounds: "certified", or "with probability 1 - x over the weights, for a text chosen without
            them"; None without bounds. They speak of phi in exact arithmetic.
        tokens: w strings, what each word is called.
        evaluations: how many perturbed texts the search evaluated, the recomputation included.
        converged: (w,), whether the ascent that won stopped, before its steps ran out, at a point of its ball that is
            stationary in the first order: f = ‖phi(X^i(Delta)) - phi(X)‖² rises from it by less than 2 % of f a radius,
            in the map's own precision, with a rounding error below 1 % of the value. False where the gradient is zero
            altogether. It says nothing of other hills: a higher one may exist.
        seed: the seed of the random starts.
        map_name: the map's name.
        notes: what the map says of itself, e.g. that it is causal.
    """

    value: float
    word: int
    words: Int[Tensor, " w"]
    per_word: Float[Tensor, " w"]
    rounding: Float[Tensor, " w"]
    perturbations: Float[Tensor, "w d"]
    radius: Float[Tensor, " w"]
    tokens: tuple[str, ...]
    evaluations: int
    converged: Bool[Tensor, " w"]
    seed: int
    map_name: str
    upper: float | None = None
    upper_per_word: Float[Tensor, " w"] | None = None
    rigor: str | None = None
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Everything but the witnesses, as plain Python values: what `--json` prints."""
        return {
            "map": self.map_name,
            "value": self.value,
            "word": self.word,
            "token": self.tokens[int((self.words == self.word).nonzero()[0])],
            "upper": self.upper,
            "rigor": self.rigor,
            "words": self.words.tolist(),
            "tokens": list(self.tokens),
            "per_word": self.per_word.tolist(),
            "rounding": self.rounding.tolist(),
            "upper_per_word": None if self.upper_per_word is None else self.upper_per_word.tolist(),
            "radius": self.radius.tolist(),
            "converged": self.converged.tolist(),
            "evaluations": self.evaluations,
            "seed": self.seed,
            "notes": list(self.notes),
        }

    def to_pandas(self) -> Any:
        """One row a word: word, token, sensitivity, upper, radius, converged. Needs the `tables` extra."""
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtraError("pandas", "tables", "to_pandas") from error
        upper = None if self.upper_per_word is None else self.upper_per_word.tolist()
        return pd.DataFrame(
            {
                "word": self.words.tolist(),
                "token": self.tokens,
                "sensitivity": self.per_word.tolist(),
                "upper": [None] * len(self.tokens) if upper is None else upper,
                "radius": self.radius.tolist(),
                "converged": self.converged.tolist(),
            }
        )

    def save(self, path: str | Path) -> None:
        """Write everything, witnesses included, to one safetensors file."""
        import json

        from safetensors.torch import save_file

        tensors = {
            name: getattr(self, name).contiguous()
            for name in ("words", "per_word", "rounding", "perturbations", "radius", "converged", "upper_per_word")
            if getattr(self, name) is not None
        }
        plain = {
            name: getattr(self, name)
            for name in ("value", "word", "tokens", "evaluations", "seed", "map_name", "upper", "rigor", "notes")
        }
        save_file(tensors, str(path), metadata={"wordsens": json.dumps(plain)})

    @classmethod
    def load(cls, path: str | Path) -> "Sensitivity":
        """Read what `save` wrote. Nothing is unpickled."""
        import json

        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(str(path), framework="pt") as file:
                plain = json.loads((file.metadata() or {})["wordsens"])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            lists = {name: tuple(plain.get(name, ())) for name in ("tokens", "notes")}
            return cls(**{**plain, **lists}, **tensors)
        except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise InputError(f"`path` (={str(path)!r}) is not a file that Sensitivity.save wrote: {reason}") from error

    def show(self, most: int = 20) -> str:
        """A short table, the most sensitive words first."""
        order = self.per_word.argsort(descending=True)[: require_count("most", most)].tolist()
        width = max(5, *(len(self.tokens[at]) for at in order))
        lines = [
            f"{self.map_name}: S >= {self.value:.4f}, at word {self.word}",
            f"{'word':>6}  {'token':<{width}}  S",
        ]
        lines += [
            f"{int(self.words[at]):>6}  {self.tokens[at]:<{width}}  {float(self.per_word[at]):.4f}" for at in order
        ]
        if len(order) < len(self.tokens):
            lines.append(f"... and {len(self.tokens) - len(order)} more words")
        return "\n".join([*lines, *self.notes])

    def __repr__(self) -> str:
        upper = "" if self.upper is None else f", upper={self.upper:.6g}"
        return (
            f"Sensitivity({self.map_name}: value={self.value:.6g}{upper} at word {self.word} "
            f"{self.tokens[int((self.words == self.word).nonzero()[0])]!r}, {len(self.words)} words)"
        )


@leaves_the_map_as_found
def word_sensitivity(
    phi: FeatureMap | Callable[[Tensor], Tensor],
    X: TextMatrix | Tensor | np.ndarray,
    words: Iterable[int] | Tensor | np.ndarray | SupportsIndex | None = None,
    radius: float | Sequence[float] | np.ndarray | Tensor | None = None,
    seed: Seed = 0,
    *,
    starts: int | None = None,
    steps: int | None = None,
    generations: int | None = None,
    tolerance: float | None = None,
    certificate: bool = True,
    text_depends_on_weights: bool = False,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
    progress: Progress | None = None,
) -> Sensitivity:
    """The word sensitivity of a text under a feature map (paper, eq. 1).

    S_phi(X) = sup over i and ‖Delta‖ <= radius of ‖phi(X^i(Delta)) - phi(X)‖ / ‖phi(X)‖.

    The value is attained: a lower bound of the sup, with a witness for every word. The search proposes witnesses;
    each is then mapped through phi, and only that recomputed number, less its rounding error, is reported. Beside it
    stands an upper bound, for maps that have a certificate.

    Args:
        phi: a feature map, or any differentiable function of an (n, d) tensor.
        X: the text, (n, d), at least two words; taken as it is, rows are not rescaled here.
        words: the word indices to search; None for all. Negative indices count from the end.
        radius: of the ball, one number or one a searched word; None for the map's default, sqrt(d).
        seed: of the random starts.
        starts, steps, generations, tolerance: how much the search spends (see SearchPlan); None for what suits the map.
        certificate: whether to compute the upper bounds, where phi has a certificate.
        text_depends_on_weights: X, words or radius were chosen by phi's weights or answers; `upper` is then None where
            it would hold with a probability over the weights only (see `certify`; one call's probability).
        memory_budget: bytes for intermediate results.
        progress: called with (steps done, steps at most).

    Returns:
        A Sensitivity.

    Raises:
        InputError: NaN, infinite or zero rows; one word; an index out of range; a radius that is not positive; a map
            that answers differently each time.
        ZeroFeaturesError: phi(X) = 0.

    >>> phi = FunctionFeatures(lambda X: 2 * X, batched=True)
    >>> round(word_sensitivity(phi, torch.ones(4, 9, dtype=torch.float64)).value, 12)   # sqrt(d) / ‖X‖
    0.5
    """
    text, phi = as_text(X), as_feature_map(phi)
    n = len(text)
    require_count("memory_budget", memory_budget)
    rows = phi.accept(text.rows)
    chosen = word_indices(words, n).to(rows.device)
    ball = Ball(radii(radius, phi, rows, chosen))
    change = phi.word_change(rows, memory_budget=memory_budget)
    plan = change.plan.changed(starts=starts, steps=steps, generations=generations, tolerance=tolerance)
    found = find_witnesses(change, chosen, ball, plan, generator=generator(seed, "starts"), progress=progress)
    return sensitivity_at(
        phi,
        text,
        chosen,
        ball,
        found,
        seed=seed,
        certificate=certificate,
        text_depends_on_weights=text_depends_on_weights,
        memory_budget=memory_budget,
    )


def sensitivity_at(
    phi: FeatureMap,
    text: TextMatrix,
    words: Int[Tensor, " w"],
    ball: Ball,
    found: SearchResult,
    *,
    seed: Seed,
    certificate: bool,
    text_depends_on_weights: bool = False,
    memory_budget: int,
) -> Sensitivity:
    """The result of a search: every witness mapped through phi, and the certificate where it is asked for."""
    rows = phi.accept(text.rows)
    per_word = attained(phi, rows, words.unsqueeze(1), found.perturbations.unsqueeze(1), memory_budget=memory_budget)
    best = int(per_word.argmax())
    witness = perturbed_texts(rows, words[best].view(1, 1), found.perturbations[best].view(1, 1, -1))[0]
    error = max(phi.relative_rounding(rows), phi.relative_rounding(witness) if float(per_word[best]) > 0 else 0.0)
    # phi(X^i(Delta)) and phi(X) are each wrong by that share of their norms, at most 1 + per_word and 1.
    rounding = error * (2 + per_word)
    per_word = (per_word - rounding).clamp(min=0)
    asked = {"text_depends_on_weights": text_depends_on_weights}
    bounds = certificate_for(phi, rows, words, ball.radius, **asked) if certificate else None
    return Sensitivity(
        value=float(per_word[best]),
        word=int(words[best]),
        words=words,
        per_word=per_word,
        rounding=rounding,
        perturbations=found.perturbations,
        radius=ball.radius,
        tokens=tuple(text.word(int(word)) for word in words),
        evaluations=found.evaluations + len(words),
        converged=found.converged & (rounding <= _SURE * per_word),
        seed=int(seed),
        map_name=phi.name,
        upper=None if bounds is None else bounds.value,
        upper_per_word=None if bounds is None else bounds.upper,
        rigor=None if bounds is None else bounds.rigor,
        notes=phi.notes,
    )


def attained(
    phi: FeatureMap,
    rows: Float[Tensor, "n d"],
    words: Int[Tensor, "w g"],
    perturbations: Float[Tensor, "w g d"],
    *,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> Float[Tensor, " w"]:
    """‖phi(X^i(Delta)) - phi(X)‖ / ‖phi(X)‖ by definition: the features of every perturbed text are computed.

    One value a row of `words`, whose g words move together, each by its own Delta. Norms are taken in float64.
    """
    with torch.no_grad():
        base = phi(rows).flatten()
        norm = feature_norm(base, phi.name)
        n = len(rows)
        numbers = 3 * (rows.numel() + base.numel() + n * n)
        size = max(1, min(memory_budget, _MAPPED_BYTES) // (numbers * rows.element_size()))
        changes = [
            torch.linalg.vector_norm(
                phi.perturbed_features(rows, word, delta) - base,
                dim=1,
                dtype=torch.float64,
            )
            for word, delta in zip(words.split(size), perturbations.split(size), strict=True)
        ]
    relative = torch.cat(changes) / norm
    finite = torch.isfinite(relative)
    if not bool(finite.all()):
        moved = words[int((~finite).nonzero()[0])].tolist()
        raise InputError(
            f"{phi.name} gives NaN or infinity when word {', '.join(map(str, moved))} is perturbed; "
            "use float64, a smaller radius, or a map that is finite on the whole ball"
        )
    return relative
