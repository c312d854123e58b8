"""The answers of a causal language model to two prompts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.display.numbers import column
from wordsens.display.view import Chart, View
from wordsens.errors import InputError, require_kind
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.results import Result


@dataclass(frozen=True, eq=False, repr=False)
class PromptPair(Result):
    """A causal language model's answers to two prompts (paper, figure 1, right).

    Attributes:
        model: its name.
        prompts: the two prompts.
        answers: the answers, e.g. ("Yes", "No").
        probabilities: (2, answers), the probability that each answer's first token follows each
            prompt.
        among: the same, divided by its sum over the answers.
        change: (answers,), second minus first of `probabilities`.
    """

    model: str
    prompts: tuple[str, str]
    answers: tuple[str, ...]
    probabilities: Float[Tensor, "2 a"]

    @property
    def headline(self) -> str:
        """Which probabilities these are."""
        return f"{self.model}: probabilities of the answers"

    def columns(self) -> dict[str, Any]:
        """One row per answer."""
        first, second = self.probabilities.tolist()
        return {
            "answer": self.answers,
            "first": first,
            "second": second,
            "change": self.change.tolist(),
        }

    def view(self) -> View:
        """The headline and the table; a figure draws both probabilities of each answer."""
        first, second = self.probabilities.tolist()
        columns: dict[str, list[Any]] = {
            "answer": [answer for answer in self.answers for _ in self.prompts],
            "probability": [value for both in zip(first, second, strict=True) for value in both],
            "prompt": ["first prompt", "second prompt"] * len(self.answers),
        }
        changes = self.change.tolist()
        columns["change"] = []
        for change, text in zip(changes, column(changes, "+"), strict=True):
            columns["change"] += [None, text] if change > 0 else [text, None]  # above the higher
        options = {
            "x": "answer",
            "y": "probability",
            "colour": "prompt",
            "above": "change",
            "labels": {"answer": "", "probability": "probability of the answer"},
            "title": self.model,
            "caption": "Above the bars: the change from the first prompt to the second.",
        }
        return replace(super().view(), chart=Chart("bars", columns, options))

    @property
    def among(self) -> Float[Tensor, "2 a"]:
        return self.probabilities / self.probabilities.sum(dim=1, keepdim=True)

    @property
    def change(self) -> Float[Tensor, " a"]:
        return self.probabilities[1] - self.probabilities[0]


def prompt_pair(
    phi: TransformerFeatures, first: str, second: str, *, answers: Sequence[str] = ("Yes", "No")
) -> PromptPair:
    """The probabilities of the answers after each of two prompts.

    An answer may be written with or without a blank before it: if their first tokens differ, both
    probabilities are added; a token that is only a blank does not count. Special tokens that the
    tokenizer puts after a text are left out, since the answer follows the prompt.

    Args:
        phi: a causal language model, loaded with output="probabilities", pool="last".
        first, second: the prompts.
        answers: different ones, whose first tokens differ.

    Raises:
        InputError: a model that is not causal or has no language head; answers that begin with the
            same token, or only with a blank.
    """
    require_kind(
        "phi", phi, TransformerFeatures, remedy="load one with TransformerFeatures.from_pretrained"
    )
    speaks = phi.causal and phi.output == "probabilities" and phi.pool is not None
    if not speaks or phi.model.tokenizer is None:
        raise InputError(
            "prompts need a causal language model as TransformerFeatures(..., "
            "output='probabilities', pool='last'); "
            f"{phi.name} is not one"
        )
    tokenizer = phi.model.tokenizer
    starts = [_first_tokens(tokenizer, answer) for answer in answers]
    if len(answers) < 1 or any(left & right for left, right in combinations(starts, 2)):
        raise InputError(
            f"`answers` (={tuple(answers)!r}) begin with the same token; choose answers that "
            "differ there"
        )
    rows = []
    for prompt in (first, second):
        read = phi.model.read(prompt)
        stop = len(read.ids) - read.trailing
        with torch.no_grad():
            probabilities = phi(phi.rows_of(torch.tensor([read.ids[:stop]])))[0].double().cpu()
        rows.append(torch.stack([probabilities[sorted(start)].sum() for start in starts]))
    return PromptPair(phi.model.name, (first, second), tuple(answers), torch.stack(rows))


def _first_tokens(tokenizer: Any, answer: str) -> set[int]:
    spelled = [
        tokenizer(text, add_special_tokens=False)["input_ids"] for text in (answer, f" {answer}")
    ]
    if not all(spelled):
        raise InputError(f"`answers` has {answer!r}, which gives no token; write a word")
    first = {ids[0] for ids in spelled if tokenizer.decode(ids[:1]).strip()}
    if not first:
        raise InputError(
            f"`answers` has {answer!r}, whose first token is a blank alone in this vocabulary; "
            "choose a commoner word"
        )
    return first
