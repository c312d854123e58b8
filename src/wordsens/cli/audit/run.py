"""The work of `wordsens audit`: sort the texts, measure what is missing, summarise."""

from collections.abc import Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

from wordsens.audit.comparison import AuditChange, audit_changes
from wordsens.audit.decay import Decay, decay, pair_distances
from wordsens.audit.layers import LayerSensitivity, layer_sensitivities
from wordsens.audit.summary import summarise_audit
from wordsens.audit.texts import AuditTexts
from wordsens.cli.audit.document import print_json
from wordsens.cli.audit.options import NO_PAIRS, OUTPUTS, SHIPPED_PAIRS, AuditOptions
from wordsens.cli.audit.outcome import Audit
from wordsens.cli.audit.tables import print_audit
from wordsens.cli.executor_options import fail_for, run_missing
from wordsens.cli.stopping import stopped_by_sigterm
from wordsens.cli.terminal import reporting
from wordsens.errors import InputError
from wordsens.evaluation.advice.advise import advise_length
from wordsens.evaluation.advice.result import LengthAdvice
from wordsens.experiments.audit import (
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
from wordsens.experiments.store import Record, Store, write_tables
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.maps.transformer.loading import content_of
from wordsens.models.black_box import Model
from wordsens.models.load import is_pair_model
from wordsens.sensitivity.substitution import SubstitutionPlan, SubstitutionSensitivity, substitution_sensitivity
from wordsens.text import Document, MeaningPair, MinimalPair, Reading, minimal_pairs, stream_documents
from wordsens.text.alternatives import SameKind
from wordsens.text.encoders import require_device
from wordsens.text.pairs import read_pairs
from wordsens.text.text_column import text_column_of

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
        read_pairs(options.pairs)  # refused before anything is measured
    texts = _texts(options)
    cells = _cells(options, texts.documents)
    phi = audited_model(cells[0])
    _require_mask(phi, options.removal)
    folder = Path(options.out)
    order = {cell.key(): at for at, cell in enumerate(cells)}
    with Store(folder) as store:
        run_missing(cells, store, options, called="texts")
        records = sorted(store.records(order), key=lambda record: order[record.cell])
        write_tables(store.records(experiment="audit"), folder, "audit")
    failed = [record for record in records if not record.done]
    if len(failed) == len(records):
        fail_for(failed, len(cells), called="texts")
    try:
        with stopped_by_sigterm():
            audit = _finish(options, texts, cells, records, phi)
    except KeyboardInterrupt as stop:
        raise type(stop)(
            f"interrupted: all {len(cells)} texts are finished in {folder}; the same command makes the report"
        ) from None
    (print_json if options.as_json else print_audit)(audit)
    fail_for(failed, len(cells), called="texts")


def _texts(options: AuditOptions) -> AuditTexts:
    texts = AuditTexts()
    column = options.text_column or text_column_of(options.dataset)
    stream = stream_documents(
        options.dataset, Reading(text_column=column, skip_empty=True), on_empty=texts.leave_out_empty
    )
    with closing(stream):
        texts.take(islice(stream, options.limit))
    if not texts.documents:
        raise InputError(
            f"no text of {options.dataset!r} can be measured: {len(texts.left_out)} are empty or have one word; give "
            "texts of two words or more"
        )
    return texts


def _cells(options: AuditOptions, documents: Sequence[Document]) -> list[AuditCell]:
    """One cell a text, each with the content that the model's files have now."""
    common = {name: getattr(options, name) for name in _OF_CELLS} | _model_keys(options)
    return [
        AuditCell.parse(
            {**common, "text": {"content": document.text, "source": document.source, "label": document.label}}
        )
        for document in documents
    ]


def _model_keys(options: AuditOptions) -> dict[str, Any]:
    """The keys of a cell that name the model: by the files that it has now, or by what it answers now."""
    if options.model is not None:
        if is_pair_model(options.model, options.revision):
            raise InputError(f"`model` (={options.model!r}) scores pairs of texts; an audit takes one text a time")
        return {"model": options.model, "content": content_of(options.model, options.revision)}
    server = None if options.endpoint is None else options.server()
    kept = {} if server is None else {
        "endpoint": server.url, "endpoint_model": server.model, "timeout": server.timeout, "retries": server.retries,
    }  # fmt: skip
    asked = BlackBox.parse({"encode": options.encode, **kept})
    model = black_box(asked)
    return {"model": model.name, "content": model.fingerprint(), "black_box": asked.model_dump()}


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
) -> Audit:
    """The summary of the records, and what is measured of the model beside them, once an audit's folder."""
    done = {record.cell for record in records if record.done}
    whole = [text for text, cell in zip(texts.documents, cells, strict=True) if cell.key() in done]
    parts = _Parts(options, phi, cells[0])
    decays, no_decays = parts.decays()
    advice, no_advice = parts.advice(whole)
    return Audit(
        options=options,
        name=records[0].audit,
        texts=texts,
        records=records,
        summary=summarise_audit((audited(record) for record in records if record.done), texts.counts),
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
        pairs = decay_pairs(options.pairs)
        key = {**self._model, "pairs": content_key([text for pair in pairs for text in (pair.first, pair.second)])}

        def measure() -> SavedDistances:
            with reporting(1, "pairs of sentences", quiet=options.quiet) as report:
                found = pair_distances(
                    self._phi, pairs, progress=lambda done, total: report.update(done / total, now="")
                )
            return SavedDistances(tuple(found))

        try:
            distances = load_or_compute(self._folder, SavedDistances, key, measure).distances
        except InputError as error:  # the pairs are English, the model need not be
            return [], str(error)
        return decay(distances, threshold=options.threshold, seed=options.seed), None

    def advice(self, whole: Sequence[Document]) -> tuple[LengthAdvice | None, str | None]:
        """On length, from the audit's own texts; or why there is none."""
        options = self._options
        if options.output != OUTPUTS[0]:
            return None, "it is for embeddings"
        texts = [document.text for document in whole[:ADVICE_TEXTS]]
        pairs = None if options.pairs in (NO_PAIRS, SHIPPED_PAIRS) else options.pairs
        named = None if pairs is None else [text for pair in read_pairs(pairs) for text in (pair.first, pair.second)]
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
                found = layer_sensitivities(
                    phi.at(),
                    some,
                    words=options.words_per_text,
                    max_words=options.max_words,
                    seed=options.seed,
                    progress=lambda share: report.update(share, now=""),
                )
            return SavedLayers(tuple(found))

        return list(load_or_compute(self._folder, SavedLayers, key, measure).layers)


def decay_pairs(pairs: str) -> Sequence[MinimalPair | MeaningPair]:
    """The pairs that --pairs names: the shipped minimal ones, or a file's, in its order."""
    if pairs == SHIPPED_PAIRS:
        return minimal_pairs()
    return [MinimalPair(f"{at}", pair.kind, pair.first, pair.second) for at, pair in enumerate(read_pairs(pairs))]


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
