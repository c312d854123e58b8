"""The work of `wordsens audit`: sort the texts, measure what is missing, summarise, and its document."""

import math
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from wordsens.cli.audit import NO_PAIRS, OUTPUTS, SHIPPED_PAIRS, AuditOptions
from wordsens.cli.audit_tables import Audit, audit_display, audit_findings_of
from wordsens.cli.executor_options import fail_for, run_missing
from wordsens.cli.stopping import stopped_by_sigterm
from wordsens.cli.terminal import notice, print_display, printing, reporting
from wordsens.cli.terminal import print_json as print_document
from wordsens.errors import InputError, RequirementError, require_device
from wordsens.evaluation.audit.cell import (
    AuditCell,
    BlackBox,
    SavedDistances,
    SavedLayers,
    audited,
    audited_model,
    black_box,
    content_key,
    load_or_compute,
)
from wordsens.evaluation.audit.comparison import AuditChange, audit_changes
from wordsens.evaluation.audit.decay import Decay, decay, pair_distances
from wordsens.evaluation.audit.layers import LayerSensitivity, layer_sensitivities
from wordsens.evaluation.audit.summary import AuditSummary, summarise_audit
from wordsens.evaluation.audit.text import AuditTexts
from wordsens.evaluation.length import LengthAdvice, advise_length
from wordsens.evaluation.requirement import Requirement
from wordsens.maps.transformer.features import TransformerFeatures, content_of
from wordsens.models.black_box import Model
from wordsens.models.load import is_pair_model
from wordsens.report.findings import save_findings
from wordsens.sensitivity.substitution import SubstitutionPlan, SubstitutionSensitivity, substitution_sensitivity
from wordsens.sweeps.store import Record, Store, write_tables
from wordsens.text import Document, MeaningPair, MinimalPair, minimal_pairs, stream_documents
from wordsens.text.alternatives import SameKind
from wordsens.text.pairs import read_pairs
from wordsens.version import __version__

FIELDS = ("count", "sensitivity", "removal", "swap")
"""Numbers of a kind of word that a requirement may name."""

_OF_CELLS = ("output", "pool", "max_words", "words_per_text", "removal", "swaps", "seed", "device", "revision")
"""Options that are keys of every cell."""

ADVICE_TEXTS = 200
"""The first texts of an audit: enough for the 30 shortest changed sentences and the words around them."""


def run_audit(options: AuditOptions) -> None:
    """Measure every text that has no record yet, then print the summary.

    Raises WordsensError when a text failed, after everything else is written.
    """
    require_device(options.device)
    if options.pairs not in (NO_PAIRS, SHIPPED_PAIRS):
        read_pairs(options.pairs, encoding=options.encoding)  # refused before anything is measured
    gate = [Requirement.read(one, FIELDS, "negation.removal >= .05") for one in options.requirements or ()]
    texts = _texts(options)
    cells = _cells(options, texts.documents)
    phi = audited_model(cells[0])
    _require_mask(phi, options.removal)
    folder = Path(options.out)
    cells = _read(phi, cells, texts, options)
    order = {cell.key(): at for at, cell in enumerate(cells)}
    with Store(folder) as store:
        if options.model is None and not options.resume and any(one.done for one in store.records(order)):
            raise InputError(
                f"the folder {options.out!r} holds records of {phi.name}, of which nothing tells whether it is still "
                "the same; pass --resume if it is, or another --out"
            )
        run_missing(cells, store, options, called="texts")
        records = sorted(store.records(order), key=lambda record: order[record.cell])
        write_tables(store.records(experiment="audit"), folder, "audit")
    failed = [record for record in records if not record.done]
    if len(failed) == len(records):
        fail_for(failed, len(cells), called="texts")
    try:
        with stopped_by_sigterm():
            audit = _finish(options, texts, cells, records, phi, gate)
    except KeyboardInterrupt as stop:
        raise type(stop)(
            f"interrupted: all {len(cells)} texts are finished in {folder}; the same command makes the report"
        ) from None
    save_findings(folder, audit.name, audit_findings_of(audit))
    with printing():
        if options.as_json:
            print_json(audit)
        else:
            print_display(audit_display(audit))
    fail_for(failed, len(cells), called="texts")
    if audit.failures:
        raise RequirementError(f"requirements are not met: {'; '.join(audit.failures)}")


def _read(
    phi: TransformerFeatures | Model, cells: Sequence[AuditCell], texts: AuditTexts, options: AuditOptions
) -> list[AuditCell]:
    """The cells of texts that the model can read; the others are left out, with their row and the reason."""
    if not isinstance(phi, TransformerFeatures):
        return list(cells)
    readable, saved = [], []
    for cell, document in zip(cells, texts.documents, strict=True):
        try:
            tokens = phi.reading().tokens(document.text, document.source, options.max_words)
        except InputError as error:
            texts.left_out.append((document.source, str(error).removeprefix(f"{document.source}: ")))
            continue
        if len(tokens.whole_words or ()) < 2:
            texts.left_out.append((document.source, "the model reads fewer than two words of it"))
            continue
        readable.append(cell)
        saved.append(document)
    texts.documents[:] = saved
    if not readable:
        raise InputError(
            f"no text of {options.texts!r} can be measured; the first, {texts.left_out[0][0]}: {texts.left_out[0][1]}"
        )
    return readable


def _failures(one: Requirement, summary: AuditSummary) -> list[str]:
    """A sentence for every kind of word that does not meet the requirement."""
    groups = {group.category.removeprefix("kind: "): group for group in summary.groups}
    kinds = {name: group for name, group in groups.items() if group.category.startswith("kind: ")}
    named = kinds if one.kind == "all" else {one.kind: groups[one.kind]} if one.kind in groups else {}
    if not named:
        return [f"{one.text}: no measured word is of {one.kind!r}; there are {', '.join(groups)}"]
    values = {name: getattr(group, one.field) for name, group in named.items()}
    return [one.failure(f"{name}.{one.field}", value) for name, value in values.items() if not one.met(value)]


def _texts(options: AuditOptions) -> AuditTexts:
    texts = AuditTexts()
    for message in () if options.quiet else options.notices():
        notice(message)
    stream = stream_documents(str(options.texts), options.reading(), on_empty=texts.leave_out_empty)
    with closing(stream):
        texts.take(islice(stream, options.limit))
    if not texts.documents:
        raise InputError(
            f"no text of {options.texts!r} can be measured: {len(texts.left_out)} are empty or have one word; give "
            "texts of two words or more"
        )
    return texts


def _cells(options: AuditOptions, documents: Sequence[Document]) -> list[AuditCell]:
    """One cell a text, each with the content that the model's files have now."""
    common = {name: getattr(options, name) for name in _OF_CELLS} | _model_keys(options)
    return [
        AuditCell.parse(
            {
                **common,
                "searched": at < options.sensitivity_texts,
                "text": {"content": document.text, "source": document.source, "label": document.label},
            }
        )
        for at, document in enumerate(documents)
    ]


def _model_keys(options: AuditOptions) -> dict[str, Any]:
    """The keys of a cell that name the model: by the files that it has now, or by what it answers now."""
    if options.model is not None:
        if is_pair_model(options.model, options.revision):
            raise InputError(f"`model` (={options.model!r}) scores pairs of texts; an audit takes one text a time")
        return {"model": options.model, "content": content_of(options.model, options.revision)}
    server = None if options.endpoint is None else options.server()
    saved = {} if server is None else {
        "endpoint": server.url, "endpoint_model": server.model, "timeout": server.timeout, "retries": server.retries,
    }  # fmt: skip
    requested = BlackBox.parse({"encode": options.encode, **saved})
    model = black_box(requested)
    return {"model": model.name, "content": model.fingerprint(), "black_box": requested.model_dump()}


def _require_mask(phi: TransformerFeatures | Model, removal: str) -> None:
    if isinstance(phi, Model):
        if removal == "mask":
            raise InputError(f"`removal` (='mask') needs a mask token, and {phi.name} gives vectors alone; use delete")
        return
    if removal == "mask" and phi.reader is not None and phi.reader.tokenizer.mask_token_id is None:
        raise InputError(f"`removal` (='mask') needs a mask token, but {phi.name} has none; use delete")


def _finish(
    options: AuditOptions,
    texts: AuditTexts,
    cells: Sequence[AuditCell],
    records: list[Record],
    phi: TransformerFeatures | Model,
    gate: Sequence[Requirement],
) -> Audit:
    """The summary of the records, and what is measured of the model beside them, once an audit's folder."""
    done = {record.cell for record in records if record.done}
    whole = [text for text, cell in zip(texts.documents, cells, strict=True) if cell.key() in done]
    parts = _Parts(options, phi, cells[0])
    decays, no_decays = parts.decays()
    advice, no_advice = parts.advice(whole)
    summary = summarise_audit((audited(record) for record in records if record.done), texts.counts)
    return Audit(
        options=options,
        name=records[0].audit,
        texts=texts,
        records=records,
        summary=summary,
        failures=[one for each in gate for one in _failures(each, summary)],
        layers=parts.layers(whole),
        substitution=_substitution(options, phi, whole, texts),
        decays=decays,
        no_decays=no_decays,
        advice=advice,
        no_advice=no_advice,
        changes=None if options.compare is None else _changes(options.compare, records),
        map_name=phi.name,
        context=phi.reader.context if isinstance(phi, TransformerFeatures) and phi.reader is not None else None,
    )


class _Parts:
    """The parts of the report that belong to the model: each is kept in the audit's folder."""

    def __init__(self, options: AuditOptions, phi: TransformerFeatures | Model, cell: AuditCell):
        self._options, self._phi, self._folder = options, phi, Path(options.out)
        self._model = cell.of_the_model()

    def decays(self) -> tuple[list[Decay], str | None]:
        """Of the pairs, by kind; or why there are none."""
        options = self._options
        if options.pairs == NO_PAIRS:
            return [], "--pairs none"
        pairs = decay_pairs(options.pairs, options.encoding)
        key = {**self._model, "pairs": content_key([text for pair in pairs for text in (pair.first, pair.second)])}

        def measure() -> SavedDistances:
            with reporting(1, "pairs of sentences", quiet=options.quiet) as report:
                result = pair_distances(
                    self._phi, pairs, progress=lambda done, total: report.update(done / total, now="")
                )
            return SavedDistances(tuple(result))

        try:
            distances = load_or_compute(self._folder, SavedDistances, key, measure).distances
        except InputError as error:  # the pairs are English, the model need not be
            return [], str(error)
        return decay(distances, threshold=1 - options.threshold, seed=options.seed), None

    def advice(self, whole: Sequence[Document]) -> tuple[LengthAdvice | None, str | None]:
        """On length, from the audit's own texts; or why there is none."""
        options = self._options
        if options.output != OUTPUTS[0]:
            return None, "it is for embeddings"
        texts = [document.text for document in whole[:ADVICE_TEXTS]]
        own = options.pairs not in (NO_PAIRS, SHIPPED_PAIRS)
        pairs = read_pairs(options.pairs, encoding=options.encoding) if own else None
        named = None if pairs is None else [text for pair in pairs for text in (pair.first, pair.second)]
        key = {
            **self._model,
            "texts": content_key(texts),
            "threshold": options.threshold,
            "pairs": None if named is None else content_key(named),
        }

        def measure() -> LengthAdvice:
            with reporting(1, "advice on length", quiet=options.quiet) as report:
                return advise_length(
                    self._phi,
                    texts,
                    pairs,
                    options.threshold,
                    progress=lambda done, total: report.update(done / total, now=""),
                )

        try:
            return load_or_compute(self._folder, LengthAdvice, key, measure), None
        except InputError as error:
            return None, str(error)

    def layers(self, whole: Sequence[Document]) -> list[LayerSensitivity]:
        """By layer and head, of the first texts."""
        options, phi = self._options, self._phi
        if not isinstance(phi, TransformerFeatures) or not options.layer_texts:
            return []
        some = whole[: options.layer_texts]
        key = {**self._model, "texts": content_key([document.text for document in some])}
        key |= {name: getattr(options, name) for name in ("words_per_text", "max_words", "seed")}

        def measure() -> SavedLayers:
            with reporting(1, "layers", quiet=options.quiet) as report:
                result = layer_sensitivities(
                    phi.at(),
                    some,
                    words=options.words_per_text,
                    max_words=options.max_words,
                    seed=options.seed,
                    progress=lambda share: report.update(share, now=""),
                )
            return SavedLayers(tuple(result))

        return list(load_or_compute(self._folder, SavedLayers, key, measure).layers)


def decay_pairs(pairs: str, encoding: str = "utf-8") -> Sequence[MinimalPair | MeaningPair]:
    """The pairs that --pairs names: the shipped minimal ones, or a file's, in its order."""
    if pairs == SHIPPED_PAIRS:
        return minimal_pairs()
    read = read_pairs(pairs, encoding=encoding)
    return [MinimalPair(f"{at}", pair.kind, pair.first, pair.second) for at, pair in enumerate(read)]


def _changes(folder: str, records: Sequence[Record]) -> list[AuditChange]:
    """Since the audit in that folder: of several there, the one that shares most texts with this one."""
    with Store(folder, read_only=True) as store:
        held = store.records(experiment="audit")
    earlier: dict[str, dict[str, Record]] = {}
    for record in held:
        if record.done and record.audit != records[0].audit:
            earlier.setdefault(record.audit, {})[_text_of(record)] = record
    now = {_text_of(record): record for record in records if record.done}
    shared = max((own.keys() & now.keys() for own in earlier.values()), key=len, default=set())
    if not shared:
        raise InputError(
            f"`compare` (={folder!r}) holds no other audit of any of these texts; give the --out of an audit of the "
            "same texts by another model, or with other options"
        )
    before = next(own for own in earlier.values() if own.keys() & now.keys() == shared)
    return audit_changes([(audited(before[name]), audited(now[name])) for name in now if name in shared])


def _text_of(record: Record) -> str:
    """The digest of the record's text."""
    return record.text_content


def _substitution(
    options: AuditOptions, phi: TransformerFeatures | Model, whole: Sequence[Document], texts: AuditTexts
) -> SubstitutionSensitivity | None:
    """The sensitivities to random words of the first texts; the words are those of all the data."""
    if not options.substitutions:
        return None
    labelled = options.output != "embedding"
    return substitution_sensitivity(
        phi,
        [document.text for document in whole[: options.substitutions]],
        SameKind(texts.counts),
        plan=SubstitutionPlan(most_words=options.max_words),
        label=(lambda rows: rows.argmax(dim=1).tolist()) if labelled else None,
        seed=options.seed,
    )


def print_json(audit: "Audit") -> None:
    """One document on stdout; its keys are those of docs/json.md."""
    document: dict[str, Any] = {
        "command": "audit",
        "version": __version__,
        "model": audit.records[0].model,
        "map": audit.map_name,
        "audit": audit.name,
        "removal": audit.options.removal,
        "seed": audit.options.seed,
        "passed": not audit.failures,
        "failures": audit.failures,
        "findings": [one.sentence for one in audit_findings_of(audit)],
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
