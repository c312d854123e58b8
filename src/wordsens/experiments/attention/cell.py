"""One pair of texts: from spec to the columns of its record. A process loads a model once."""

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError
from wordsens.experiments.attention.spec import AttentionCell
from wordsens.maps.attention_pair import AttentionPair
from wordsens.maps.attention_words import comparable_pair
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.maps.transformer.prompt_pair import PromptPair, prompt_pair


def measure_attention(cell: AttentionCell, keep: Callable[[Mapping[str, Any]], None] | None) -> dict[str, Any]:
    """The columns of a pair. No witness is kept."""
    if keep is not None:
        keep({})
    pair, answers = pairs_of(cell)
    first, second = pair.weights
    columns = {
        "value": float(moved_attention(pair).mean()),
        "model": pair.model,
        "layer": pair.layer,
        "tokens_first": json.dumps(pair.tokens[0], ensure_ascii=False),
        "tokens_second": json.dumps(pair.tokens[1], ensure_ascii=False),
        "weights_first": tuple(first.flatten().tolist()),
        "weights_second": tuple(second.flatten().tolist()),
        "changed": pair.changed,
    }
    if answers is not None:
        columns["probabilities"] = tuple(answers.probabilities.flatten().tolist())
    return columns


def describe_attention(cell: AttentionCell) -> dict[str, Any]:
    """The columns that the cell alone decides."""
    plain = {name: getattr(cell, name) for name in ("model", "layer", "head", "first", "second")}
    texts = {name: getattr(cell, name) for name in ("prompts", "answers")}
    return plain | {
        name: None if value is None else json.dumps(value, ensure_ascii=False) for name, value in texts.items()
    }


def pairs_of(cell: AttentionCell) -> tuple[AttentionPair, PromptPair | None]:
    """The attention of the pair, and the answers to the prompts where they are asked for.

    Raises:
        InputError: what cannot be compared, or answered.
    """
    pair = comparable_pair(_model(cell.model, cell.device), cell.first, cell.second, layer=cell.layer, head=cell.head)
    if cell.prompts is None or cell.answers is None:
        return pair, None
    speaker = _model(cell.model, cell.device, speaks=True)
    return pair, prompt_pair(speaker, *cell.prompts, answers=cell.answers)


def is_causal(model: str, device: str) -> bool:
    """True where the model reads from left to right, and so can be asked for answers."""
    return _model(model, device).causal


def moved_attention(pair: AttentionPair) -> Float[Tensor, " n"]:
    """For each row j, half the sum over i of |second - first|: the share of its attention that moves, 0 to 1 (ours)."""
    if pair.difference is None:
        raise InputError("the texts have different numbers of tokens; compare them with comparable_pair")
    return pair.difference.abs().sum(dim=1) / 2


@lru_cache(maxsize=2)
def _model(model: str, device: str, *, speaks: bool = False) -> TransformerFeatures:
    if not speaks:
        return TransformerFeatures.from_pretrained(model, attention="eager", device=device)
    return TransformerFeatures.from_pretrained(
        model, attention="eager", device=device, output="probabilities", pool="last"
    )
