"""The attention of two texts that differ in a word, side by side, and a language model's answers
(paper, figure 1)."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from statistics import fmean
from typing import Annotated, Any, ClassVar

import pandas as pd
import torch
from pydantic import Field, model_validator

from wordsens.display.numbers import number, percent
from wordsens.display.view import Finding
from wordsens.errors import InputError, argument
from wordsens.maps.attention_pair import AttentionPair, comparable_pair
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.maps.transformer.prompt_pair import PromptPair, prompt_pair
from wordsens.models.model_files import model_digest
from wordsens.sweeps.spec import Cell, ModelName
from wordsens.sweeps.store import json_text
from wordsens.sweeps.study import Preset, Study, Tables

# The pair of the paper's figure 1.
PAIR = ("I love her much", "I love her smile")
PROMPTS = (
    "Review: I was moved by this film from its first minute. Positive or negative? The review is",
    "Review: I was bored by this film from its first minute. Positive or negative? The review is",
)
ANSWERS = ("positive", "negative")
SIDES = ("first", "second")


class AttentionCell(Cell, frozen=True):
    """A pair of texts and a layer of a model.

    Attributes:
        model: "minilm", a folder or a name on the hub; the content of its files identifies it.
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


def measure(cell: AttentionCell) -> dict[str, Any]:
    """The columns of a pair; the weights (n, n) row after row: entry (j, i) is how much row j takes
    from i.

    Raises:
        InputError: what cannot be compared, or answered.
    """
    phi, probabilities = _model(cell.model, cell.device), None
    pair = comparable_pair(phi, cell.first, cell.second, layer=cell.layer, head=cell.head)
    if cell.prompts is not None:
        speaker = _model(cell.model, cell.device, speaks=True)
        answered = prompt_pair(speaker, *cell.prompts, answers=cell.answers or ())
        probabilities = tuple(answered.probabilities.flatten().tolist())
    return {
        "value": fmean(pair.columns()["attention that moves"]),
        "model": pair.model,
        "layer": pair.layer,
        "tokens_first": json_text(pair.tokens[0]),
        "tokens_second": json_text(pair.tokens[1]),
        "weights_first": tuple(pair.weights[0].flatten().tolist()),
        "weights_second": tuple(pair.weights[1].flatten().tolist()),
        "changed": pair.changed,
        "probabilities": probabilities,
    }


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
            that reads both ways.
    """
    keys: dict[str, Any] = {"model": model, "layer": layer, "head": head}
    keys |= zip(SIDES, pair or PAIR, strict=True)
    if _model(model, device).causal:
        keys |= {"prompts": list(prompts or PROMPTS), "answers": list(answers or ANSWERS)}
    elif prompts or answers:
        raise InputError(
            f"{argument('prompt')} and {argument('answer')} need a causal language model, and "
            f"{model} reads both ways; drop them"
        )
    measure(AttentionCell.parse({**keys, "device": device}))
    return {key: [value] if isinstance(value, list) else value for key, value in keys.items()}


def preset(scale: str, source: Any, seed: int, labels: str | None) -> Preset:
    """The pair of the paper under MiniLM, whatever the scale."""
    return [attention_grid("minilm", "cpu", None, None, None, 1, None)], []


def measured_pair(record: Mapping[str, Any]) -> tuple[AttentionPair, PromptPair | None]:
    """The attention that a row of the records holds, and the answers to its prompts, where it has
    some."""
    tokens: Any = tuple(tuple(json.loads(record[f"tokens_{side}"])) for side in SIDES)
    flat = [torch.tensor(record[f"weights_{side}"], dtype=torch.float64) for side in SIDES]
    weights: Any = tuple(numbers.view(len(tokens[0]), -1) for numbers in flat)
    head = record["head"] if isinstance(record["head"], int) else None
    layer, model, changed = (record[name] for name in ("layer", "model", "changed"))
    pair, answers = AttentionPair(layer, head, model, tokens, weights, changed), None
    if isinstance(record["probabilities"], tuple):
        probabilities = torch.tensor(record["probabilities"], dtype=torch.float64).view(2, -1)
        answers = PromptPair(model, record["prompts"], record["answers"], probabilities)
    return pair, answers


def tables(records: pd.DataFrame) -> Tables:
    """Of each pair: every row's attention to the changed words, before and after, and the share of
    its attention that moves."""
    frames = {}
    for record in records.to_dict("records"):
        pair, _ = measured_pair(record)
        columns: dict[str, Any] = {
            f"from {tokens[place]}": weights[:, place].tolist()
            for place in pair.changed
            for tokens, weights in zip(pair.tokens, pair.weights, strict=True)
        }
        names = [a if a == b else f"{a}/{b}" for a, b in zip(*pair.tokens, strict=True)]
        columns = {"row": names, **columns, "moved": pair.columns()["attention that moves"]}
        frames[f"{record['first']}  |  {record['second']}: {pair.headline}"] = pd.DataFrame(columns)
    return frames


def findings(records: pd.DataFrame, tables: Tables) -> Iterator[Finding]:
    """The pair whose attention moves most, and how answers to prompts change."""
    title, table = max(tables.items(), key=lambda item: item[1]["moved"].mean())
    top = table.loc[table["moved"].idxmax()]
    most = f", the most of {len(tables)} pairs" if len(tables) > 1 else ""
    yield Finding(
        f"When a word changes, {percent(fmean(table['moved']))} of the attention goes "
        f"elsewhere{most}; in the row of “{top['row']}”, {percent(top['moved'])} ({title}).",
        rows=tuple(records["cell"]),
    )
    for record in records.dropna(subset="probabilities").head(2).to_dict("records"):
        before, after = torch.tensor(record["probabilities"]).view(2, -1).tolist()
        clauses = [
            f"“{name}” from {number(a)} to {number(b)}"
            for name, a, b in zip(record["answers"], before, after, strict=True)
        ]
        yield Finding(
            "One word in the prompt changes the probability of the answer "
            f"{' and of '.join(clauses)} ({record['model']}).",
            rows=(record["cell"],),
        )


def figures(records: pd.DataFrame) -> dict[str, Any]:
    """Figure 1; of a causal language model also the answers to two prompts."""
    drawn = {}
    for place, record in enumerate(records.to_dict("records")):
        ending = f"-{place}" if place else ""
        results = zip(("attention", "prompts"), measured_pair(record), strict=True)
        drawn |= {f"{name}{ending}": pair.plot() for name, pair in results if pair}
    return drawn


STUDY = Study(
    name="attention",
    Cell=AttentionCell,
    measure=measure,
    preset=preset,
    tables=tables,
    findings=findings,
    figures=figures,
    note="Moved: the share of a row's attention that goes elsewhere, half the sum of its absolute "
    "differences. No search is involved.",
)
