"""The result of word sensitivity: attained values, witnesses and bounds, as tables, plain values and files."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.errors import InputError, MissingExtraError, require_count
from wordsens.results import Result

_PLAIN = (
    "value",
    "word",
    "tokens",
    "search",
    "evaluations",
    "seconds",
    "seed",
    "map_name",
    "upper",
    "rigor",
    "notes",
)
"""Fields that a saved file keeps as text; the others are tensors."""


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity(Result):
    """The word sensitivity of one text under one map: attained values, witnesses, bounds, and what was spent.

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
        search: what the search was allowed, in words, such as "normal" or "quick, starts=4"; see SearchPlan.
        evaluations: how many perturbed texts the search evaluated, the recomputation included.
        seconds: what the call took, its certificate included; of texts searched together, an equal share.
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
    search: str
    evaluations: int
    seconds: float = field(compare=False)
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
            "search": self.search,
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
        from safetensors.torch import save_file

        tensors = {
            name: getattr(self, name).contiguous()
            for name in ("words", "per_word", "rounding", "perturbations", "radius", "converged", "upper_per_word")
            if getattr(self, name) is not None
        }
        plain = {name: getattr(self, name) for name in _PLAIN}
        save_file(tensors, str(path), metadata={"wordsens": json.dumps(plain)})

    @classmethod
    def load(cls, path: str | Path) -> "Sensitivity":
        """Read what `save` wrote. Nothing is unpickled."""
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
