"""The attention of two texts side by side, and the answers of a language model to two prompts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError
from wordsens.maps.transformer.features import TransformerFeatures


@dataclass(frozen=True)
class AttentionPair:
    """The attention weights of one layer on two texts (paper, figure 1).

    Attributes:
        layer, head: which; head None is the mean over the layer's heads.
        model: the model's name.
        tokens: of each text.
        weights: of each text, (n, n): entry (j, i) is how much token j takes from token i; rows sum to 1.
        changed: where the tokens differ, for texts of the same number of tokens; else empty.
    """

    layer: int
    head: int | None
    model: str
    tokens: tuple[tuple[str, ...], tuple[str, ...]]
    weights: tuple[Float[Tensor, "n n"], Float[Tensor, "m m"]]
    changed: tuple[int, ...]

    @property
    def difference(self) -> Float[Tensor, "n n"] | None:
        """The second text's weights less the first's; None for texts of different length."""
        first, second = self.weights
        return second - first if first.shape == second.shape else None


def attention_pair(
    phi: TransformerFeatures, first: str, second: str, *, layer: int = 1, head: int | None = None
) -> AttentionPair:
    """The attention of a layer on two texts, special tokens included.

    Args:
        phi: a transformer with its tokenizer, loaded with attention="eager".
        first, second: two texts, for a comparison of the same number of tokens.
        layer: 1 to L; negative from the last, -1.
        head: 0, 1, ...; None for the mean over the heads.

    Raises:
        InputError: no such layer or head; a model that does not give its weights.

    >>> phi = TransformerFeatures.from_pretrained("minilm")
    >>> pair = attention_pair(phi, "I love her much", "I love her smile")
    >>> pair.changed, tuple(pair.weights[0].shape)
    ((4,), (6, 6))
    """
    stack = phi.stack
    number = layer if layer > 0 else stack.layers + 1 + layer
    if layer == 0 or not 1 <= number <= stack.layers:
        raise InputError(f"`layer` (={layer}) has no attention; choose 1 to {stack.layers}, or -1 for the last")
    if head is not None and not 0 <= head < stack.heads:
        raise InputError(f"`head` (={head}) does not exist; choose 0 to {stack.heads - 1}, or None for their mean")
    texts = phi.embed([first, second])
    weights = []
    with torch.no_grad():
        for text in texts:
            heads = stack.attention(text.rows.unsqueeze(0).to(stack.dtype), number)[0].double()
            weights.append(heads.mean(dim=0) if head is None else heads[head])
    one, other = (text.tokens or () for text in texts)
    changed = tuple(at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1])
    return AttentionPair(
        number, head, stack.name, (one, other), (weights[0], weights[1]), changed if len(one) == len(other) else ()
    )


@dataclass(frozen=True)
class PromptPair:
    """What a causal language model answers to two prompts (paper, figure 1, right).

    Attributes:
        model: its name.
        prompts: the two.
        answers: what was asked for, e.g. ("Yes", "No").
        probabilities: (2, answers), of each answer's first token being next, for each prompt.
        among: the same divided by their sum over the answers.
        change: (answers,), second less first of `probabilities`.
    """

    model: str
    prompts: tuple[str, str]
    answers: tuple[str, ...]
    probabilities: Float[Tensor, "2 a"]

    @property
    def among(self) -> Float[Tensor, "2 a"]:
        return self.probabilities / self.probabilities.sum(dim=1, keepdim=True)

    @property
    def change(self) -> Float[Tensor, " a"]:
        return self.probabilities[1] - self.probabilities[0]


def prompt_pair(
    phi: TransformerFeatures, first: str, second: str, *, answers: Sequence[str] = ("Yes", "No")
) -> PromptPair:
    """The probabilities of the answers behind each of two prompts.

    An answer may be written with or without a blank before it: the probabilities of both first tokens are added, where
    they differ. Special tokens that the tokenizer puts behind a text are left off: the answer follows the prompt.

    Args:
        phi: a causal language model, loaded with output="probabilities", pool="last".
        first, second: the prompts.
        answers: different ones, whose first tokens differ.

    Raises:
        InputError: a model that is not causal or has no language head; answers that begin with the same token.
    """
    if not phi.causal or phi.output != "probabilities" or phi.pooling is None or phi.reader is None:
        raise InputError(
            f"prompts need a causal language model as TransformerFeatures(..., output='probabilities', pool='last'); "
            f"{phi.name} is not one"
        )
    tokenizer = phi.reader.tokenizer
    starts = [_first_tokens(tokenizer, answer) for answer in answers]
    if len(answers) < 1 or any(one & other for at, one in enumerate(starts) for other in starts[:at]):
        raise InputError(f"`answers` (={tuple(answers)!r}) begin with the same token; choose answers that differ there")
    rows = []
    for prompt in (first, second):
        ids, words = phi.reader.tokens(prompt)
        stop = 1 + max((max(word.rows) for word in words), default=len(ids) - 1)
        with torch.no_grad():
            probabilities = phi(phi.rows_of(torch.tensor([ids[:stop]])))[0].double().cpu()
        rows.append(torch.stack([probabilities[sorted(start)].sum() for start in starts]))
    return PromptPair(phi.stack.name, (first, second), tuple(answers), torch.stack(rows))


def _first_tokens(tokenizer: Any, answer: str) -> set[int]:
    spelled = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in (answer, f" {answer}")]
    if not all(spelled):
        raise InputError(f"`answers` has {answer!r}, which gives no token; write a word")
    return {ids[0] for ids in spelled}
