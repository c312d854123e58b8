"""The work of `wordsens audit`: sort the texts, measure what is missing, summarise."""

from collections.abc import Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

from wordsens.audit.decay import decay, pair_distances
from wordsens.audit.layers import layer_sensitivities
from wordsens.audit.summary import summarise_audit
from wordsens.audit.texts import AuditTexts
from wordsens.cli.audit.document import print_json
from wordsens.cli.audit.options import AuditOptions
from wordsens.cli.audit.outcome import Audit
from wordsens.cli.audit.tables import print_audit
from wordsens.cli.running import RunRequest, fail_for, open_store, run_missing
from wordsens.cli.stopping import stopped_by_sigterm
from wordsens.cli.terminal import reporting
from wordsens.errors import InputError
from wordsens.experiments.audit.cell import audited_model, black_box
from wordsens.experiments.audit.record import AuditRecord
from wordsens.experiments.audit.spec import AuditCell, BlackBox
from wordsens.experiments.store.store import write_aside
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.maps.transformer.loading import content_of
from wordsens.models.choice import is_pair_model
from wordsens.models.contract import Model
from wordsens.sensitivity.substitution import SubstitutionPlan, SubstitutionSensitivity, substitution_sensitivity
from wordsens.text import Document, Reading, minimal_pairs, stream_documents
from wordsens.text.alternatives import SameKind
from wordsens.text.encoders import require_device

_OF_CELLS = ("output", "pool", "max_words", "words_per_text", "removal", "swaps", "seed", "device", "revision")
"""Options that are keys of every cell."""


def run_audit(options: AuditOptions) -> None:
    """Measure every text that has no record yet, then print the summary.

    Raises WordsensError when a text failed, after everything else is written.
    """
    require_device(options.device)
    texts = _texts(options)
    cells = _cells(options, texts.documents)
    phi = audited_model(cells[0])
    _require_mask(phi, options.removal)
    folder = Path(options.out)
    store = open_store(folder / "records", AuditRecord)
    run_missing(cells, store, "audit", RunRequest(executor=options, quiet=options.quiet), called="texts")
    order = {cell.content_hash(): at for at, cell in enumerate(cells)}
    records = sorted(store.read(order), key=lambda record: order[record.cell])
    write_aside(folder / "audit.parquet", store.read(), AuditRecord)
    failed = [record for record in records if not record.done]
    if len(failed) == len(records):
        fail_for(failed, len(cells), called="texts")
    try:
        with stopped_by_sigterm():
            audit = _finish(options, texts, cells, records, phi)
    except KeyboardInterrupt as stop:
        raise type(stop)(
            f"interrupted: all {len(cells)} texts are finished in {store.folder}; the same command makes the report"
        ) from None
    (print_json if options.as_json else print_audit)(audit)
    fail_for(failed, len(cells), called="texts")


def _texts(options: AuditOptions) -> AuditTexts:
    texts = AuditTexts()
    stream = stream_documents(
        options.dataset, Reading(text_column=options.text_column, skip_empty=True), on_empty=texts.leave_out_empty
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
    return {"model": model.name, "content": model.identity(), "black_box": asked.model_dump()}


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
    records: list[AuditRecord],
    phi: TransformerFeatures | Model,
) -> Audit:
    """The summary of the records, and what is measured anew for every report: layers and minimal pairs."""
    done = {record.cell for record in records if record.done}
    whole = [text for text, cell in zip(texts.documents, cells, strict=True) if cell.content_hash() in done]
    layers, decays, no_decays = [], [], None
    with reporting(3, "parts of the report", quiet=options.quiet) as report:
        if isinstance(phi, TransformerFeatures):
            layers = layer_sensitivities(
                phi.at(),
                whole[: options.layer_texts],
                words=options.words_per_text,
                max_words=options.max_words,
                seed=options.seed,
            )
        report.update(1, now="random words")
        substitution = _substitution(options, phi, whole, texts)
        report.update(2, now="minimal pairs")
        try:
            decays = decay(pair_distances(phi, minimal_pairs()), threshold=options.threshold, seed=options.seed)
        except InputError as error:  # the pairs are English, the model need not be
            no_decays = str(error)
        report.update(3, now="")
    return Audit(
        options=options,
        name=records[0].audit,
        texts=texts,
        records=records,
        summary=summarise_audit((record.audited() for record in records if record.done), texts.counts),
        layers=layers,
        substitution=substitution,
        decays=decays,
        no_decays=no_decays,
        map_name=phi.name,
        context=phi.reader.context if isinstance(phi, TransformerFeatures) and phi.reader is not None else None,
    )


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
