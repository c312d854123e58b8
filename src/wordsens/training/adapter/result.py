"""The result of a tuning: what it raised, on what it had seen and on what it had not, and what it cost."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from wordsens.evaluation.check import Check
from wordsens.results import Look, Shown
from wordsens.training.adapter.plan import TunePlan
from wordsens.training.adapter.retrieval import Recall

_COIN = 0.5


@dataclass(frozen=True)
class BeforeAfter:
    """Checks of both models on the same pairs."""

    before: Check
    after: Check

    def rows(self, untrained: tuple[str, ...]) -> list[dict[str, Any]]:
        """A kind a row: areas and medians before and after."""
        return [
            {
                "kind": old.kind, "trained": old.kind not in untrained, "pairs": old.pairs,
                "auc_before": old.auc, "auc_before_low": old.auc_low, "auc_before_high": old.auc_high,
                "auc": new.auc, "auc_low": new.auc_low, "auc_high": new.auc_high,
                "median_opposite_before": old.median_opposite, "median_opposite": new.median_opposite,
                "median_same_before": old.median_same, "median_same": new.median_same,
            }
            for old, new in zip(self.before.kinds, self.after.kinds, strict=True)
        ]  # fmt: skip


@dataclass(frozen=True, repr=False)
class Tuned(Shown):
    """A tuned model, and what the tuning did; all numbers are attained on these pairs.

    Attributes:
        model: the name of what was tuned.
        folder: where the tuned model is; sentence-transformers loads it.
        plan: the settings.
        weights: numbers that were trained.
        domains: those kept apart; empty where the pairs have no domains and single texts were kept apart.
        kinds: kinds of opposites that were not trained on.
        unseen: both checks on what was kept apart: the judgement.
        seen: both checks on the domains that were trained on; a kind that is good here alone has been learnt by heart.
        recall: before and after, of the paraphrases kept apart among sentences kept apart.
        notes: on pairs and texts.
    """

    model: str
    folder: str
    plan: TunePlan
    weights: int
    domains: tuple[str, ...]
    kinds: tuple[str, ...]
    unseen: BeforeAfter
    seen: BeforeAfter
    recall: tuple[Recall, Recall]
    notes: tuple[str, ...] = ()

    @cached_property
    def answer(self) -> tuple[str, ...]:
        """The findings in sentences."""
        return tuple(self._sentences())

    def look(self) -> Look:
        rows = self.unseen.rows(self.kinds)
        return Look(self.answer[0], {name: [row[name] for row in rows] for name in rows[0]}, notes=self.answer[1:])

    def to_dict(self) -> dict[str, Any]:
        """Everything but the pairs, as the JSON document has it."""
        return {
            "model": self.model,
            "folder": self.folder,
            "plan": asdict(self.plan),
            "weights": self.weights,
            "held_out_domains": list(self.domains),
            "untrained_kinds": list(self.kinds),
            "answer": list(self.answer),
            "unseen": self.unseen.rows(self.kinds),
            "seen": self.seen.rows(self.kinds),
            "recall": [
                {"value": each.value, "queries": each.queries, "among": each.among} for each in self.recall
            ],
            "notes": list(self.notes),
        }  # fmt: skip

    def __repr__(self) -> str:
        return f"<Tuned {self.model} in {self.folder}>"

    def _sentences(self) -> Iterator[str]:
        where = f"on {', '.join(self.domains)}" if self.domains else "on texts"
        rows = self.unseen.rows(self.kinds)
        above = [row for row in rows if row["auc_low"] > _COIN]
        risen = [row for row in rows if row not in above and row["auc_low"] > row["auc_before_high"]]
        left = [row for row in rows if row not in above and row not in risen]
        parts = [f"{_named(above)} shows more often than not"] * bool(above)
        parts += [f"{_named(risen)} shows more than before"] * bool(risen)
        parts += [f"{_named(left)} is not shown to have gained"] * bool(left)
        yield f"{where[0].upper()}{where[1:]} that the tuning has not seen: {'; '.join(parts)}."
        lost = [
            here["kind"]
            for here, there in zip(rows, self.seen.rows(self.kinds), strict=False)
            if here["kind"] == there["kind"] and there["auc_low"] > here["auc_high"]
        ]
        if lost:
            yield f"Not all that was learnt of {', '.join(lost)} transfers: the areas are larger where it was trained."
        before, after = self.recall
        yield (
            f"Paraphrases found first among {after.among} texts: {after.value:.3f} of {after.queries}, "
            f"before {before.value:.3f}."
        )


def _named(rows: list[dict[str, Any]]) -> str:
    return ", ".join(f"{row['kind']} ({row['auc_before']:.2f} to {row['auc']:.2f})" for row in rows)
