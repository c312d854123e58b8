"""The attention of two texts that differ in a word, side by side, and a language model's answers
(paper, figure 1)."""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Any, ClassVar

import torch
from jaxtyping import Float
from pydantic import Field, model_validator
from torch import Tensor

from wordsens.display.numbers import number
from wordsens.display.view import Table
from wordsens.errors import InputError
from wordsens.maps.attention_pair import AttentionPair, comparable_pair
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.maps.transformer.prompt_pair import PromptPair, prompt_pair
from wordsens.models.model_files import model_digest
from wordsens.sweeps.experiment import Experiment, Grids, Summary, finding
from wordsens.sweeps.spec import Cell, ModelName
from wordsens.sweeps.store import Record, json_text

PAIR = ("I love her much", "I love her smile")
"""The pair of the paper's figure 1."""

PROMPTS = (
    "Review: I was moved by this film from its first minute. Positive or negative? The review is",
    "Review: I was bored by this film from its first minute. Positive or negative? The review is",
)
ANSWERS = ("positive", "negative")


class AttentionCell(Cell, frozen=True):
    """A pair of texts and a layer of a model.

    Attributes:
        model: "minilm", a folder or a name on the hub; its files' content stands for it in the
            identity.
        first, second: the texts.
        layer: 1 to L; negative from the last, -1.
        head: 0, 1, ...; None for the mean over the heads.
        prompts: two prompts for a causal language model; None for no answers.
        answers: the answers whose probabilities are taken.
    """

    experiment: ClassVar[str] = "attention"

    model: ModelName = "minilm"
    first: str
    second: str
    layer: int = 1
    head: Annotated[int, Field(ge=0)] | None = None
    prompts: tuple[str, str] | None = Field(default=None, strict=False)
    answers: tuple[str, ...] | None = Field(default=None, strict=False)

    @model_validator(mode="after")
    def _both_or_neither(self) -> "AttentionCell":
        if (self.prompts is None) != (self.answers is None):
            raise InputError("`prompts` and `answers` belong together; give both or neither")
        return self

    def spec(self) -> dict[str, Any]:
        return {**super().spec(), "model": model_digest(self.model)}

    def described(self) -> dict[str, Any]:
        return {"model": self.model}


def measure_attention(cell: AttentionCell) -> dict[str, Any]:
    """The columns of a pair; the weights (n, n) row after row: entry (j, i) is how much row j takes
    from i."""
    pair, answers = pairs_of(cell)
    first, second = pair.weights
    return {
        "value": float(moved_attention(pair).mean()),
        "model": pair.model,
        "layer": pair.layer,
        "tokens_first": json_text(pair.tokens[0]),
        "tokens_second": json_text(pair.tokens[1]),
        "weights_first": tuple(first.flatten().tolist()),
        "weights_second": tuple(second.flatten().tolist()),
        "changed": pair.changed,
        "probabilities": None
        if answers is None
        else tuple(answers.probabilities.flatten().tolist()),
    }


def pairs_of(cell: AttentionCell) -> tuple[AttentionPair, PromptPair | None]:
    """The attention of the pair, and the answers to the prompts where they are asked for.

    Raises:
        InputError: what cannot be compared, or answered.
    """
    pair = comparable_pair(
        _model(cell.model, cell.device), cell.first, cell.second, layer=cell.layer, head=cell.head
    )
    if cell.prompts is None or cell.answers is None:
        return pair, None
    speaker = _model(cell.model, cell.device, speaks=True)
    return pair, prompt_pair(speaker, *cell.prompts, answers=cell.answers)


def moved_attention(pair: AttentionPair) -> Float[Tensor, " n"]:
    """For each row j, half the sum over i of |second - first|: the share of its attention that
    moves, 0 to 1 (ours)."""
    if pair.difference is None:
        raise InputError(
            "the texts have different numbers of tokens; compare them with comparable_pair"
        )
    return pair.difference.abs().sum(dim=1) / 2


@lru_cache(maxsize=2)
def _model(model: str, device: str, *, speaks: bool = False) -> TransformerFeatures:
    options: dict[str, Any] = {"output": "probabilities", "pool": "last"} if speaks else {}
    return TransformerFeatures.from_pretrained(model, attention="eager", device=device, **options)


def attention_grid(
    model: str,
    device: str,
    pair: tuple[str, str] | None,
    prompts: Sequence[str] | None,
    answers: Sequence[str] | None,
    layer: int,
    head: int | None,
) -> dict[str, Any]:
    """The grid of one pair; a causal language model gets prompts too. It is tried once: what is
    wrong is refused.

    Raises:
        InputError: no such model, layer or head; texts that cannot be compared; prompts for a model
            that reads both
        ways.
    """
    first, second = pair or PAIR
    keys: dict[str, Any] = {
        "model": model,
        "first": first,
        "second": second,
        "layer": layer,
        "head": head,
    }
    if _model(model, device).causal:
        keys |= {"prompts": list(prompts or PROMPTS), "answers": list(answers or ANSWERS)}
    elif prompts or answers:
        raise InputError(
            f"`prompt` and `answer` need a causal language model, and {model} reads both ways; "
            "drop them"
        )
    pairs_of(AttentionCell.parse({**keys, "device": device}))
    return {key: [value] if isinstance(value, list) else value for key, value in keys.items()}


def preset(scale: str, source: Any, seed: int, labels: str | None) -> Grids:
    """The pair of the paper under MiniLM, whatever the scale."""
    return [attention_grid("minilm", "cpu", None, None, None, 1, None)], []


def measured_pair(record: Record) -> tuple[AttentionPair, PromptPair | None]:
    """The attention that a finished record holds, and the answers to its prompts, where it has
    some."""
    first, second = (
        tuple(json.loads(text)) for text in (record.tokens_first, record.tokens_second)
    )
    weights = (
        torch.tensor(record.weights_first, dtype=torch.float64).view(len(first), len(first)),
        torch.tensor(record.weights_second, dtype=torch.float64).view(len(second), len(second)),
    )
    pair = AttentionPair(
        record.layer, record.head, record.model, (first, second), weights, record.changed or ()
    )
    if record.probabilities is None:
        return pair, None
    probabilities = torch.tensor(record.probabilities, dtype=torch.float64).view(
        2, len(record.answers)
    )
    return pair, PromptPair(record.model, record.prompts, record.answers, probabilities)


def summarize(records: Sequence[Record]) -> Summary:
    """Each row's attention to the changed words, before and after, and the share of its attention
    that moves."""
    tables, findings = [], []
    for record in records:
        pair, prompts = measured_pair(record)
        moved, (first, second) = moved_attention(pair).tolist(), pair.tokens
        names = [a if a == b else f"{a}/{b}" for a, b in zip(first, second, strict=True)]
        headings = [f"from {tokens[column]}" for column in pair.changed for tokens in pair.tokens]
        rows = tuple(
            (
                pair.model,
                name,
                *(float(side[row, column]) for column in pair.changed for side in pair.weights),
                moved[row],
            )
            for row, name in enumerate(names)
        )
        tables.append(
            Table.of_rows(
                f"{record.first}  |  {record.second}", ("map", "row", *headings, "moved"), rows
            )
        )
        share, most = sum(moved) / len(moved), max(range(len(moved)), key=lambda row: moved[row])
        heads = "the mean over the heads" if pair.head is None else f"head {pair.head}"
        where = f"in layer {pair.layer} of {pair.model}, {heads}"
        changed = " and ".join(
            f"“{first[column]}” becomes “{second[column]}”" for column in pair.changed
        )
        sentence = f"The two texts are the same to the model, and so is their attention, {where}."
        if changed:
            sentence = (
                f"When {changed}, {share:.1%} of the attention goes elsewhere, {where}; most in "
                "the row of "
                f"“{names[most]}”, {moved[most]:.1%}."
            )
        findings.append(
            finding(
                f"{share:.1%}" if changed else "the same", sentence, _KNOWN, share, [record], ()
            )
        )
        if prompts is not None:
            before, after = prompts.probabilities.tolist()
            change = after[0] - before[0]
            parts = [
                f"“{answer}” from {number(a)} to {number(b)}"
                for answer, a, b in zip(prompts.answers, before, after, strict=True)
            ]
            sentence = (
                "One word in the prompt moves the probability of the answer "
                f"{' and of '.join(parts)} ({pair.model})."
            )
            findings.append(
                finding(
                    f"{number(before[0])} to {number(after[0])}",
                    sentence,
                    _KNOWN,
                    change,
                    [record],
                    (),
                )
            )
    note = (
        "Moved: half the sum of a row's absolute differences, the share of its attention that "
        "goes elsewhere."
    )
    return Summary(tuple(tables), note, tuple(findings))


_KNOWN = "Computed from the model's own numbers: nothing is searched for."


def _attention(records: Sequence[Record]) -> dict[str, Any]:
    """Figure 1; of a causal language model also the answers to two prompts."""
    from wordsens.plotting import attention, prompts

    drawn = {}
    for place, (pair, answers) in enumerate(map(measured_pair, records)):
        ending = f"-{place}" if place else ""
        drawn[f"attention{ending}"] = attention(pair)
        if answers is not None:
            drawn[f"prompts{ending}"] = prompts(answers)
    return drawn


ATTENTION = Experiment(
    name="attention",
    Cell=AttentionCell,
    measure=measure_attention,
    preset=preset,
    summarize=summarize,
    figures=_attention,
)
