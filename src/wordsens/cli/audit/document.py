"""The JSON document of `wordsens audit`."""

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from wordsens import __version__
from wordsens.audit.decay import Decay
from wordsens.cli.audit.findings import findings
from wordsens.cli.terminal import print_json as print_document

if TYPE_CHECKING:
    from wordsens.cli.audit.outcome import Audit


def print_json(audit: "Audit") -> None:
    """One document on stdout; its keys are those of docs/cli.md."""
    document: dict[str, Any] = {
        "command": "audit",
        "version": __version__,
        "model": audit.records[0].model,
        "map": audit.map_name,
        "audit": audit.name,
        "removal": audit.options.removal,
        "seed": audit.options.seed,
        "findings": findings(audit),
        **audit.summary.to_dict(),
        "layers": [asdict(layer) for layer in audit.layers],
        "substitution": None if audit.substitution is None else asdict(audit.substitution),
        "decay": [_decay(one) for one in audit.decays],
        "no_decay": audit.no_decays,
        "advice": None if audit.advice is None else {"advice": audit.advice.advice, **asdict(audit.advice)},
        "no_advice": audit.no_advice,
        "changes": None if audit.changes is None else [asdict(change) for change in audit.changes],
        "cut": [
            {
                "source": record.source,
                "words": record.words,
                "words_lost": record.words_lost,
                "negations_lost": record.negations_lost,
            }
            for record in audit.cut
        ],
        "copies": audit.texts.copies,
        "left_out": [{"source": source, "reason": reason} for source, reason in audit.texts.left_out],
        "failed": [{"source": record.source, "error": record.error} for record in audit.failed],
        "records": str(audit.table),
    }
    print_document(document)


def _decay(one: Decay) -> dict[str, Any]:
    fit = one.fit
    return {
        "kind": one.kind,
        "pairs": one.pairs,
        "means": {str(multiple): value for multiple, value in one.means.items()},
        "exponent": None if fit is None else fit.exponent,
        "standard_error": None if fit is None or math.isnan(fit.standard_error) else fit.standard_error,
        "constant": None if fit is None else fit.constant,
        "reason": one.reason,
        "threshold": one.threshold,
        "length": one.length,
        "interval": one.interval,
        "decisive": one.decisive,
        "longest": one.longest,
    }
