"""The record of the attention of one pair of texts."""

import json
from dataclasses import dataclass

import torch

from wordsens.experiments.store.record import TorchRecord
from wordsens.maps.attention_pair import AttentionPair
from wordsens.maps.transformer.prompt_pair import PromptPair


@dataclass(frozen=True, kw_only=True)
class AttentionRecord(TorchRecord):
    """The attention of one layer on two texts. `value` is the share of it that moves (`moved_attention`).

    Attributes:
        model: its name.
        layer, head: of the weights; head None is the mean over the heads.
        first, second: the texts.
        tokens_first, tokens_second: JSON lists: what each row is called; words, where the texts' tokens do not stand
            one for one.
        weights_first, weights_second: (n, n), row after row: entry (j, i) is how much row j takes from i.
        changed: where the names differ.
        prompts, answers: JSON lists, of a causal language model; None without.
        probabilities: of each answer behind the first prompt, then behind the second; None without.
    """

    model: str
    layer: int
    head: int | None = None
    first: str
    second: str
    tokens_first: str | None = None
    tokens_second: str | None = None
    weights_first: tuple[float, ...] | None = None
    weights_second: tuple[float, ...] | None = None
    changed: tuple[int, ...] | None = None
    prompts: str | None = None
    answers: str | None = None
    probabilities: tuple[float, ...] | None = None

    def pair(self) -> AttentionPair:
        """The pair as `attention_pair` gave it. Of finished records."""
        names = [tuple(json.loads(str(text))) for text in (self.tokens_first, self.tokens_second)]
        weights = [
            torch.tensor(numbers, dtype=torch.float64).view(len(own), len(own))
            for numbers, own in zip((self.weights_first, self.weights_second), names, strict=True)
        ]
        return AttentionPair(
            self.layer, self.head, self.model, (names[0], names[1]), (weights[0], weights[1]), self.changed or ()
        )

    def prompt_pair(self) -> PromptPair | None:
        """The answers to the prompts as `prompt_pair` gave them; None without any."""
        if self.prompts is None or self.answers is None or self.probabilities is None:
            return None
        first, second = json.loads(self.prompts)
        answers = tuple(json.loads(self.answers))
        numbers = torch.tensor(self.probabilities, dtype=torch.float64).view(2, len(answers))
        return PromptPair(self.model, (first, second), answers, numbers)
