"""The attention of two texts that differ in a word, side by side, and a language model's answers (paper, figure 1)."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar

import torch
from jaxtyping import Float
from pydantic import Field, model_validator
from torch import Tensor

from wordsens.display.content import Finding, Table, times
from wordsens.errors import InputError
from wordsens.maps.attention_pair import AttentionPair, comparable_pair
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.maps.transformer.prompt_pair import PromptPair, prompt_pair
from wordsens.sweeps.experiment import Experiment, Grids, Summary, finding
from wordsens.sweeps.spec import Cell, ModelName
from wordsens.sweeps.store import Record, json_text
from wordsens.text.model_files import model_digest

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
        model: "minilm", a folder or a name on the hub; its files' content stands for it in the identity.
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
    """The columns of a pair; the weights (n, n) row after row: entry (j, i) is how much row j takes from i."""
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
        "probabilities": None if answers is None else tuple(answers.probabilities.flatten().tolist()),
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


def moved_attention(pair: AttentionPair) -> Float[Tensor, " n"]:
    """For each row j, half the sum over i of |second - first|: the share of its attention that moves, 0 to 1 (ours)."""
    if pair.difference is None:
        raise InputError("the texts have different numbers of tokens; compare them with comparable_pair")
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
    """The grid of one pair; a causal language model gets prompts too. It is tried once: what is wrong is refused.

    Raises:
        InputError: no such model, layer or head; texts that cannot be compared; prompts for a model that reads both
        ways.
    """
    first, second = pair or PAIR
    keys: dict[str, Any] = {"model": model, "first": first, "second": second, "layer": layer, "head": head}
    if _model(model, device).causal:
        keys |= {"prompts": list(prompts or PROMPTS), "answers": list(answers or ANSWERS)}
    elif prompts or answers:
        raise InputError(f"`prompt` and `answer` need a causal language model, and {model} reads both ways; drop them")
    pairs_of(AttentionCell.parse({**keys, "device": device}))
    return {key: [value] if isinstance(value, list) else value for key, value in keys.items()}


def preset(scale: str, source: Any, seed: int, labels: str | None) -> Grids:
    """The pair of the paper under MiniLM, whatever the scale."""
    return [attention_grid("minilm", "cpu", None, None, None, 1, None)], []


@dataclass(frozen=True)
class AttentionSummary:
    """One record of attention as its figure and tables need it.

    Attributes:
        model, layer, head: of the attention; head None is the mean over the heads.
        first, second: the texts.
        pair: with the names of the rows, the weights and the changed rows.
        moved: for each row, the share of its attention that moves; `share` is their mean.
        prompts: with the answers' probabilities; None without.
    """

    model: str
    layer: int
    head: int | None
    first: str
    second: str
    pair: AttentionPair
    moved: tuple[float, ...]
    share: float
    prompts: PromptPair | None

    @property
    def weights(self) -> tuple[list[list[float]], list[list[float]]]:
        """Of each text, row by row: how much a row takes from each."""
        return self.pair.weights[0].tolist(), self.pair.weights[1].tolist()

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each row: "much/smile" where the texts differ."""
        return tuple(one if one == other else f"{one}/{other}" for one, other in zip(*self.pair.tokens, strict=True))


def attention_summary(record: Record) -> AttentionSummary:
    """What a finished record says."""
    names = [tuple(json.loads(text)) for text in (record.tokens_first, record.tokens_second)]
    weights = [
        torch.tensor(numbers, dtype=torch.float64).view(len(tokens_of_text), len(tokens_of_text))
        for numbers, tokens_of_text in zip((record.weights_first, record.weights_second), names, strict=True)
    ]
    pair = AttentionPair(
        record.layer, record.head, record.model, (names[0], names[1]), (weights[0], weights[1]), record.changed or ()
    )
    prompts = None
    if record.probabilities is not None:
        numbers = torch.tensor(record.probabilities, dtype=torch.float64).view(2, len(record.answers))
        prompts = PromptPair(record.model, record.prompts, record.answers, numbers)
    moved = tuple(moved_attention(pair).tolist())
    head = (record.model, record.layer, record.head, record.first, record.second)
    return AttentionSummary(*head, pair, moved, sum(moved) / len(moved), prompts)


def summarize(records: Sequence[Record]) -> Summary:
    """Each row's attention to the changed words, before and after, and the share of its attention that moves."""
    sections, findings = [], []
    for record in records:
        one = attention_summary(record)
        changed, tokens, weights = one.pair.changed, one.pair.tokens, one.weights
        headings = ("map", "row", *(f"from {tokens[side][at]}" for at in changed for side in (0, 1)), "moved")
        rows = tuple(
            (one.model, name, *(weights[side][row][at] for at in changed for side in (0, 1)), one.moved[row])
            for row, name in enumerate(one.names)
        )
        sections.append(Table(f"{one.first}  |  {one.second}", headings, rows))
        findings += _findings(one, record)
    note = "Moved: half the sum of a row's absolute differences, the share of its attention that goes elsewhere."
    return Summary(tuple(sections), note, tuple(findings))


def _findings(one: AttentionSummary, record: Record) -> list[Finding]:
    known = "Computed from the model's own numbers: nothing is searched for."
    most = max(range(len(one.moved)), key=lambda at: one.moved[at])
    heads = "the mean over the heads" if one.head is None else f"head {one.head}"
    tokens = one.pair.tokens
    changed = " and ".join(f"“{tokens[0][at]}” becomes “{tokens[1][at]}”" for at in one.pair.changed)
    where = f"in layer {one.layer} of {one.model}, {heads}"
    sentence = f"The two texts are the same to the model, and so is their attention, {where}."
    if changed:
        sentence = (
            f"When {changed}, {one.share:.1%} of the attention goes elsewhere, {where}; most in the row of "
            f"“{one.names[most]}”, {one.moved[most]:.1%}."
        )
    findings = [finding(f"{one.share:.1%}", sentence, known, one.share, [record], ())]
    if one.prompts is not None:
        before, after = one.prompts.probabilities.tolist()
        change = after[0] - before[0]
        parts = [
            f"“{name}” from {times(a)} to {times(b)}"
            for name, a, b in zip(one.prompts.answers, before, after, strict=True)
        ]
        sentence = f"One word in the prompt moves the probability of the answer {' and of '.join(parts)} ({one.model})."
        findings.append(finding(f"{change:+.2g}", sentence, known, change, [record], ()))
    return findings


def _attention(records: Sequence[Record]) -> dict[str, Any]:
    """Figure 1; of a causal language model also the answers to two prompts."""
    from wordsens.plotting.attention import attention, prompts

    drawn = {}
    for at, one in enumerate(map(attention_summary, records)):
        drawn[f"attention-{at}" if at else "attention"] = attention(one.pair)
        if one.prompts is not None:
            drawn[f"prompts-{at}" if at else "prompts"] = prompts(one.prompts)
    return drawn


ATTENTION = Experiment(
    name="attention",
    Cell=AttentionCell,
    measure=measure_attention,
    preset=preset,
    summarize=summarize,
    figures=_attention,
)
