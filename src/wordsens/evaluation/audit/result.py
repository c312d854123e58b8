"""The result of an audit: the summary of its texts, and what is measured of the model beside
them."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from wordsens.errors import InputError
from wordsens.evaluation.audit.cell import AuditCell, audited, digest
from wordsens.evaluation.audit.layers import LayerSensitivity
from wordsens.evaluation.audit.summary import AuditChange, AuditSummary, audit_changes
from wordsens.evaluation.audit.text import AuditTexts
from wordsens.evaluation.length import LengthAdvice
from wordsens.evaluation.requirement import Requirement, Unmet
from wordsens.results import Result
from wordsens.sweeps.spec import code_version
from wordsens.sweeps.store import Row, Store


@dataclass(frozen=True, kw_only=True)
class Audit:
    """The numbers of an audit.

    Attributes:
        name: the hash of everything but the texts, a column of the records.
        map_name: of the model.
        removal: "delete" or "mask".
        texts: of the dataset, with those that were left out.
        records: of the texts, in the order of the dataset; failed ones too.
        summary: of those that are done.
        layers: by layer and head; none of a black box.
        advice: on length; None where `no_advice` says why.
        changes: since the earlier audit that was named; None where none was.
        unmet: the requirements that fail.
        table: the file with the records as one table, beside those of other audits with the same
            folder.
    """

    name: str
    map_name: str
    removal: str
    texts: AuditTexts
    records: Sequence[Row]
    summary: AuditSummary
    layers: Sequence[LayerSensitivity]
    advice: LengthAdvice | None
    no_advice: str | None
    changes: Sequence[AuditChange] | None
    unmet: Sequence[Unmet]
    table: Path

    @property
    def failed(self) -> list[Row]:
        """The texts that could not be measured, though nothing was wrong with them."""
        return [record for record in self.records if record["status"] == "failed"]

    @property
    def cut(self) -> list[Row]:
        """The texts that lost words, those that lost most first."""
        return sorted(
            (record for record in self.records if record["words_lost"]),
            key=lambda record: -record["words_lost"],
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, as the JSON document has them; without the sentences."""
        cut = ("source", "words", "words_lost", "negations_lost")
        return {
            **self.summary.to_dict(),
            "layers": [asdict(layer) for layer in self.layers],
            "advice": self.advice and {"advice": self.advice.advice, **asdict(self.advice)},
            "no_advice": self.no_advice,
            "changes": None
            if self.changes is None
            else [asdict(change) for change in self.changes],
            "cut": [{name: record[name] for name in cut} for record in self.cut],
            "copies": self.texts.copies,
            "left_out": [
                {"source": source, "reason": reason} for source, reason in self.texts.left_out
            ],
            "failed": [
                {"source": record["source"], "error": record["error"]} for record in self.failed
            ],
            "records": str(self.table),
        }


def unmet(requirements: Sequence[Requirement], summary: AuditSummary) -> Iterator[Unmet]:
    """What fails: a kind of word by its name, another category likewise, "all" being the kinds."""
    categories = {group.category.partition(": ")[2]: group for group in summary.groups}
    kinds = {
        name: group for name, group in categories.items() if group.category.startswith("kind: ")
    }
    for requirement in requirements:
        rows = kinds if requirement.kind == "all" else categories
        missing = f"no measured word is of {requirement.kind!r}; there are {', '.join(categories)}"
        yield from requirement.unmet(rows, missing=missing)


def changes_since(folder: str, records: Sequence[Row]) -> list[AuditChange]:
    """Since the audit in that folder: of several there, the one that shares most texts with this
    one.

    Raises:
        InputError: no audit there shares a text.
    """
    with Store(folder, read_only=True) as store:
        held = store.rows(experiment="audit")
    earlier: dict[str, dict[str, Row]] = {}
    for record in held:
        if record["status"] == "done" and record["audit"] != records[0]["audit"]:
            earlier.setdefault(record["audit"], {})[record["text_content"]] = record
    now = {record["text_content"]: record for record in records if record["status"] == "done"}
    before = max(earlier.values(), key=lambda audit: len(audit.keys() & now.keys()), default={})
    shared = before.keys() & now.keys()
    if not shared:
        raise InputError(
            f"`compare` (={folder!r}) holds no other audit of any of these texts; give the --out "
            "of an audit of the "
            "same texts by another model, or with other options"
        )
    return audit_changes(
        [(audited(before[text]), audited(now[text])) for text in now if text in shared]
    )


@dataclass(frozen=True, eq=False, repr=False)
class SavedLayers(Result):
    """The layers of one model on a few texts."""

    layers: tuple[LayerSensitivity, ...]


SavedResult = TypeVar("SavedResult", bound=Result)


def load_or_compute(
    folder: Path,
    kind: type[SavedResult],
    key: Mapping[str, Any],
    compute: Callable[[], SavedResult],
) -> SavedResult:
    """A result about a model rather than its texts: an earlier one with the same key, in the
    audit's folder, by the same code; else what `compute` gives, written down.

    Args:
        folder: of the audit.
        kind: of the result.
        key: everything that decides it: the model's content, the texts, the options.
        compute: measures it.
    """
    code = code_version(AuditCell)
    path = folder / "kept" / f"{digest({**key, 'kind': kind.__name__, 'code': code})}.safetensors"
    if path.exists():
        try:
            return kind.load(path)
        except InputError:  # damaged: computed again
            pass
    computed = compute()
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        computed.save(aside)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
    return computed
