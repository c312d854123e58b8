"""Attention records in numbers and sentences."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from wordsens.experiments.attention.cell import moved_attention
from wordsens.experiments.attention.record import AttentionRecord


@dataclass(frozen=True)
class AttentionSummary:
    """One pair of texts.

    Attributes:
        model, layer, head: of the attention; head None is the mean over the heads.
        first, second: the texts.
        tokens: the names of the rows, of each text.
        changed: where the names differ.
        weights: of each text, row by row: how much a row takes from each.
        moved: for each row, the share of its attention that moves.
        share: their mean.
        prompts, answers: of a causal language model; else empty.
        probabilities: of each answer, behind each prompt.
    """

    model: str
    layer: int
    head: int | None
    first: str
    second: str
    tokens: tuple[tuple[str, ...], tuple[str, ...]]
    changed: tuple[int, ...]
    weights: tuple[list[list[float]], list[list[float]]]
    moved: tuple[float, ...]
    share: float
    prompts: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    probabilities: tuple[list[float], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each row: "much/smile" where the texts differ."""
        return tuple(one if one == other else f"{one}/{other}" for one, other in zip(*self.tokens, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, for `--json`."""
        return asdict(self)


def summarise_attention(records: Iterable[AttentionRecord]) -> list[AttentionSummary]:
    """One summary for each finished record."""
    return [_summary(record) for record in records if record.done]


def attention_findings(summaries: Sequence[AttentionSummary]) -> list[str]:
    """Sentences: how much attention moves, whose moves most, and what becomes of the answers."""
    sentences = []
    for one in summaries:
        most = max(range(len(one.moved)), key=lambda at: one.moved[at])
        where = "the mean over the heads" if one.head is None else f"head {one.head}"
        changed = " and ".join(repr(one.names[at]) for at in one.changed)
        sentences.append(
            f"Layer {one.layer} of {one.model}, {where}: with {changed}, {one.share:.1%} of all attention goes "
            f"elsewhere; most of all in the row of {one.names[most]!r}, {one.moved[most]:.1%}."
        )
        for answer, before, after in zip(one.answers, *one.probabilities, strict=True) if one.answers else ():
            sentences.append(
                f"The answer {answer!r} has probability {before:.3g} behind the first prompt, {after:.3g} "
                "behind the second."
            )
    return sentences


def _summary(record: AttentionRecord) -> AttentionSummary:
    pair, answers = record.pair(), record.prompt_pair()
    moved = moved_attention(pair)
    further = (
        {}
        if answers is None
        else {
            "prompts": answers.prompts,
            "answers": answers.answers,
            "probabilities": tuple(answers.probabilities.tolist()),
        }
    )
    return AttentionSummary(
        record.model,
        record.layer,
        record.head,
        record.first,
        record.second,
        pair.tokens,
        pair.changed,
        (pair.weights[0].tolist(), pair.weights[1].tolist()),
        tuple(moved.tolist()),
        float(moved.mean()),
        **further,
    )
