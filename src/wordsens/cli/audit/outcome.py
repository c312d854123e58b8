"""Everything that `wordsens audit` prints."""

from dataclasses import dataclass
from pathlib import Path

from wordsens.audit.comparison import AuditChange
from wordsens.audit.decay import Decay
from wordsens.audit.layers import LayerSensitivity
from wordsens.audit.summary import AuditSummary
from wordsens.audit.texts import AuditTexts
from wordsens.cli.audit.options import AuditOptions
from wordsens.evaluation.advice.result import LengthAdvice
from wordsens.experiments.store import Record
from wordsens.sensitivity.substitution import SubstitutionSensitivity


@dataclass(frozen=True)
class Audit:
    """Everything an audit prints.

    Attributes:
        options: of the command.
        texts: of the dataset, with those that were left out.
        records: of the texts, in the order of the dataset; failed ones too.
        summary: of those that are done.
        layers: by layer and head; none of a black box.
        substitution: the sensitivities to random words; None where none were asked for.
        name: of the audit: the hash of everything but the texts, a column of the records.
        decays: of the minimal pairs' distances by kind; empty where `no_decays` says why.
        advice: on length; None where `no_advice` says why.
        changes: since the earlier audit that was named; None where none was.
        map_name, context: of the model.
    """

    options: AuditOptions
    name: str
    texts: AuditTexts
    records: list[Record]
    summary: AuditSummary
    layers: list[LayerSensitivity]
    substitution: SubstitutionSensitivity | None
    decays: list[Decay]
    no_decays: str | None
    advice: LengthAdvice | None
    no_advice: str | None
    changes: list[AuditChange] | None
    map_name: str
    context: int | None

    @property
    def failed(self) -> list[Record]:
        """The texts that could not be measured, though nothing was wrong with them."""
        return [record for record in self.records if not record.done]

    @property
    def cut(self) -> list[Record]:
        """The texts that lost words, those that lost most first."""
        return sorted((record for record in self.records if record.words_lost), key=lambda record: -record.words_lost)

    @property
    def table(self) -> Path:
        """The file with the records as one table, beside those of other audits with the same folder."""
        return Path(self.options.out) / "audit.parquet"
