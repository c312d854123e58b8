"""`wordsens audit`: its options, and its work: sort the texts, measure what is missing,
summarise."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wordsens.cli.executor_options import PlaceOptions, fail_for, run_missing
from wordsens.cli.model_choice import (
    ModelOptions,
    TextOptions,
    require_met,
    requirements_option,
    unset,
)
from wordsens.cli.options import Seed, takes
from wordsens.cli.stopping import stopped_by_sigterm
from wordsens.cli.terminal import notice, print_json, printing, reporting, stdout
from wordsens.display.terminal import print_view
from wordsens.errors import InputError, require_choice, require_count, require_device, require_extra
from wordsens.version import __version__

if TYPE_CHECKING:
    from wordsens.evaluation.audit.cell import AuditCell
    from wordsens.evaluation.audit.layers import LayerSensitivity
    from wordsens.evaluation.audit.result import Audit
    from wordsens.evaluation.audit.text import AuditTexts
    from wordsens.evaluation.length import LengthAdvice
    from wordsens.evaluation.requirement import Requirement
    from wordsens.maps.transformer.features import TransformerFeatures
    from wordsens.models.model import Model
    from wordsens.sweeps.store import Row
    from wordsens.text import Document

OUTPUTS = ("embedding", "probabilities")
WAYS = ("delete", "mask")

FIELDS = ("count", "sensitivity", "removal", "swap")
"""Numbers of a kind of word that a requirement may name."""

_OF_CELLS = (
    "output",
    "pool",
    "max_words",
    "words_per_text",
    "removal",
    "swaps",
    "seed",
    "device",
    "revision",
)
"""Options that are keys of every cell."""

ADVICE_TEXTS = 200
"""The first texts of an audit: enough for the 30 shortest changed sentences and the words around
them."""


@dataclass(frozen=True, kw_only=True)
class AuditOptions(PlaceOptions, ModelOptions, TextOptions):
    """The options of `wordsens audit`."""

    max_words: Annotated[
        int,
        typer.Option(
            help="Tokens that a longer text keeps, special ones not counted.",
            rich_help_panel="Texts",
        ),
    ] = 126
    output: Annotated[
        str,
        typer.Option(
            help="What is watched: embedding, or a classifier's probabilities.",
            rich_help_panel="Model",
        ),
    ] = "embedding"
    words_per_text: Annotated[
        int,
        typer.Option(help="Words measured in each text: its negations first, others at random."),
    ] = 4
    removal: Annotated[
        str,
        typer.Option(
            help="How a word is taken out: delete, or mask, which measures the mask token too."
        ),
    ] = "delete"
    swaps: Annotated[
        bool,
        typer.Option(
            "--swaps", help="Also try other words that a writer could have meant in its place."
        ),
    ] = False
    pairs: Annotated[
        str | None,
        unset(
            "Pairs for the advice on length, a file as of `check --pairs`; default: negations in "
            "your own texts."
        ),
    ] = None
    compare: Annotated[
        str | None, unset("The --out of an earlier audit of the same texts: what changed.")
    ] = None
    threshold: Annotated[
        float,
        typer.Option(
            help="The cosine from which on two texts count as the same, so that a change is lost."
        ),
    ] = 0.95
    sensitivity_texts: Annotated[
        int,
        typer.Option(
            help="Texts whose words are moved as vectors, the first ones, which takes most of the "
            "time."
        ),
    ] = 10
    layer_texts: Annotated[
        int, typer.Option(help="Texts measured layer by layer and head by head; 0: none.")
    ] = 1
    requirements: Annotated[
        list[str] | None, requirements_option("'negation.removal >= .05' or 'all.removal <= .5'")
    ] = None
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on with an audit of a function or endpoint, which is the same one: nothing "
            "tells.",
        ),
    ] = False
    out: Annotated[str, typer.Option(help="The folder for the records and the report.")] = "audit"
    seed: Seed = 0

    def __post_init__(self) -> None:
        PlaceOptions.__post_init__(self)
        ModelOptions.__post_init__(self)
        require_count("max_words", self.max_words, least=2)
        require_count("words_per_text", self.words_per_text)
        for name in ("layer_texts", "sensitivity_texts"):
            require_count(name, getattr(self, name), least=0)
        if not -1 < self.threshold < 1:
            raise InputError(
                f"`threshold` (={self.threshold!r}) must be a cosine between -1 and 1, such as 0.95"
            )
        require_choice("output", self.output, OUTPUTS)
        require_choice("removal", self.removal, WAYS)
        self.require_texts()
        if self.model is None and (self.output, self.removal) != (OUTPUTS[0], WAYS[0]):
            wrong = "--output probabilities" if self.output != OUTPUTS[0] else "--removal mask"
            raise InputError(
                f"{wrong} needs the model itself; a function or an endpoint gives vectors, and no "
                "more"
            )


@takes(AuditOptions)
def audit(options: AuditOptions) -> None:
    """Find the words that move a model of embeddings or classes, those it ignores, and how that
    decays with length.

    Each finished text is a row of OUT/results.sqlite; the same command goes on where an earlier run
    stopped. Texts that are empty or have one word are left out and counted; exit code 1 if any
    other text failed.

    Example: wordsens audit minilm --texts reviews.parquet --limit 200 --out audit
    """
    require_extra(
        "report,models", "an audit", "matplotlib", "jinja2", "pydantic", "pyarrow", "pandas", "yaml"
    )
    from wordsens.evaluation.audit.cell import audited_model
    from wordsens.evaluation.requirement import Requirement
    from wordsens.findings.audit import findings_of, save_findings, view
    from wordsens.report.write import write_report
    from wordsens.sweeps.store import Store, write_tables
    from wordsens.text.pairs import read_pairs

    require_device(options.device)
    if options.pairs is not None:
        read_pairs(options.pairs, encoding=options.encoding)  # refused before anything is measured
    gate = Requirement.read_all(options.requirements or (), FIELDS, "negation.removal >= .05")
    texts = _texts(options)
    cells = _cells(options, texts.documents)
    phi = audited_model(cells[0])
    _require_mask(phi, options.removal)
    cells = _readable(phi, cells, texts, options)
    order = {cell.key(): number for number, cell in enumerate(cells)}
    folder = Path(options.out)
    with Store(folder) as store:
        if (
            options.model is None
            and not options.resume
            and any(record["status"] == "done" for record in store.rows(order))
        ):
            raise InputError(
                f"the folder {options.out!r} holds records of {phi.name}, of which nothing tells "
                "whether it is still "
                "the same; pass --resume if it is, or another --out"
            )
        run_missing(cells, store, options, called="texts")
        records = sorted(store.rows(order), key=lambda record: order[record["cell"]])
        write_tables(store.frame(experiment="audit"), folder, "audit")
    failed = [record for record in records if record["status"] == "failed"]
    if len(failed) == len(records):
        fail_for([record["error"] for record in failed], len(cells), called="texts")
    try:
        with stopped_by_sigterm():
            audit = _audit(options, texts, cells, records, phi, gate)
    except KeyboardInterrupt as stop:
        raise type(stop)(
            f"interrupted: all {len(cells)} texts are finished in {folder}; the same command makes "
            "the report"
        ) from None
    findings = findings_of(audit)
    save_findings(folder, audit.name, findings)
    report = write_report(folder, folder / "report.html")
    failures = [each.sentence for each in audit.unmet]
    with printing():
        if options.as_json:
            print_json(
                {
                    "command": "audit",
                    "version": __version__,
                    "model": records[0]["model"],
                    "map": audit.map_name,
                    "audit": audit.name,
                    "report": str(report),
                    "removal": audit.removal,
                    "seed": options.seed,
                    "passed": not failures,
                    "failures": failures,
                    "findings": [finding.sentence for finding in findings],
                    **audit.to_dict(),
                }
            )
        else:
            print_view(view(audit), stdout())
            stdout().print(f"report   {report}", soft_wrap=True)
    fail_for([record["error"] for record in failed], len(cells), called="texts")
    require_met(failures)


def _texts(options: AuditOptions) -> "AuditTexts":
    from wordsens.evaluation.audit.text import AuditTexts
    from wordsens.text import stream_documents

    texts = AuditTexts()
    for message in () if options.quiet else options.notices():
        notice(message)
    stream = stream_documents(str(options.texts), **options.reading())
    with closing(stream):
        texts.take(islice(stream, options.limit))
    if not texts.documents:
        raise InputError(
            f"no text of {options.texts!r} can be measured: {len(texts.left_out)} are empty or "
            "have one word; give "
            "texts of two words or more"
        )
    return texts


def _cells(options: AuditOptions, documents: "Sequence[Document]") -> "list[AuditCell]":
    """One cell a text, each with the model by the files that it has now, or by what it answers
    now."""
    from wordsens.evaluation.audit.cell import AuditCell, BlackBox, black_box
    from wordsens.models.load import is_pair_model
    from wordsens.models.model_files import model_digest

    keys: dict[str, Any] = {name: getattr(options, name) for name in _OF_CELLS}
    if options.model is not None:
        if is_pair_model(options.model, options.revision):
            raise InputError(
                f"`model` (={options.model!r}) scores pairs of texts; an audit takes one text a "
                "time"
            )
        keys |= {"model": options.model, "content": model_digest(options.model, options.revision)}
    else:
        asked: dict[str, Any] = {"encode": options.encode, "batch_size": options.batch_size or 32}
        if options.endpoint is not None:
            server = options.server()
            asked |= {"endpoint": server.url, "endpoint_model": server.model}
            asked |= {"timeout": server.timeout, "retries": server.retries}
            asked |= {"on_error": server.on_error}
        box = BlackBox.parse(asked)
        black_box.cache_clear()  # every audit looks at the model again
        model = black_box(box)
        keys |= {"model": model.name, "content": model.fingerprint(), "black_box": box.model_dump()}
    cells = []
    for number, document in enumerate(documents):
        text = {"content": document.text, "source": document.source, "label": document.label}
        cells.append(
            AuditCell.parse({**keys, "searched": number < options.sensitivity_texts, "text": text})
        )
    return cells


def _require_mask(phi: "TransformerFeatures | Model", removal: str) -> None:
    from wordsens.maps.transformer.features import TransformerFeatures

    if removal != "mask":
        return
    if not isinstance(phi, TransformerFeatures):
        raise InputError(
            f"`removal` (='mask') needs a mask token, and {phi.name} gives vectors alone; use "
            "delete"
        )
    if phi.model.tokenizer.mask_token_id is None:
        raise InputError(
            f"`removal` (='mask') needs a mask token, but {phi.name} has none; use delete"
        )


def _readable(
    phi: "TransformerFeatures | Model",
    cells: "Sequence[AuditCell]",
    texts: "AuditTexts",
    options: AuditOptions,
) -> "list[AuditCell]":
    """The cells of texts that the model can read; the others are left out, with their row and the
    reason."""
    reasons = _refusals(phi, texts.documents, options.max_words)
    readable = [
        (cell, document)
        for cell, document in zip(cells, texts.documents, strict=True)
        if document.text not in reasons
    ]
    texts.left_out += [
        (document.source, reasons[document.text])
        for document in texts.documents
        if document.text in reasons
    ]
    if not readable:
        raise InputError(
            f"no text of {options.texts!r} can be measured; the first, {texts.left_out[0][0]}: "
            f"{texts.left_out[0][1]}"
        )
    texts.documents[:] = [document for _, document in readable]
    return [cell for cell, _ in readable]


def _refusals(
    phi: "TransformerFeatures | Model", documents: "Sequence[Document]", max_words: int
) -> dict[str, str]:
    """Why the model cannot read a text, for each such text."""
    from wordsens.maps.transformer.features import TransformerFeatures
    from wordsens.text.whole_words import first_words

    if not isinstance(phi, TransformerFeatures):
        read = {document.text: first_words(document.text, max_words) for document in documents}
        refused = phi.refusals(list(read.values()))
        return {text: refused[part] for text, part in read.items() if part in refused}
    reasons: dict[str, str] = {}
    for document in documents:
        try:
            tokens = phi.model.read(document.text, document.source, max_words)
        except InputError as error:
            reasons[document.text] = str(error).removeprefix(f"{document.source}: ")
            continue
        if len(tokens.whole_words or ()) < 2:
            reasons[document.text] = "the model reads fewer than two words of it"
    return reasons


def _audit(
    options: AuditOptions,
    texts: "AuditTexts",
    cells: "Sequence[AuditCell]",
    records: "Sequence[Row]",
    phi: "TransformerFeatures | Model",
    gate: "Sequence[Requirement]",
) -> "Audit":
    """The summary of the records, and what is measured of the model beside them, once an audit's
    folder."""
    from wordsens.evaluation.audit.cell import audited
    from wordsens.evaluation.audit.result import Audit, changes_since, unmet
    from wordsens.evaluation.audit.summary import summarise_audit

    done = {record["cell"] for record in records if record["status"] == "done"}
    documents = [
        document
        for document, cell in zip(texts.documents, cells, strict=True)
        if cell.key() in done
    ]
    model = cells[0].of_the_model()
    advice, no_advice = _advice(options, phi, documents, model)
    summary = summarise_audit(audited(record) for record in records if record["status"] == "done")
    return Audit(
        name=records[0]["audit"],
        map_name=phi.name,
        removal=options.removal,
        texts=texts,
        records=records,
        summary=summary,
        layers=_layers(options, phi, documents[: options.layer_texts], model),
        advice=advice,
        no_advice=no_advice,
        changes=None if options.compare is None else changes_since(options.compare, records),
        unmet=tuple(unmet(gate, summary)),
        table=Path(options.out) / "audit.parquet",
    )


def _advice(
    options: AuditOptions,
    phi: "TransformerFeatures | Model",
    documents: "Sequence[Document]",
    model: dict[str, Any],
) -> "tuple[LengthAdvice | None, str | None]":
    """On length, from the audit's own texts; or why there is none."""
    from wordsens.evaluation.audit.cell import digest
    from wordsens.evaluation.audit.result import load_or_compute
    from wordsens.evaluation.length import LengthAdvice, advise_length
    from wordsens.models.endpoint import EndpointError
    from wordsens.text.pairs import read_pairs

    if options.output != OUTPUTS[0]:
        return None, "it is for embeddings"
    texts = [document.text for document in documents[:ADVICE_TEXTS]]
    pairs = None if options.pairs is None else read_pairs(options.pairs, encoding=options.encoding)
    named = None if pairs is None else digest([(pair.first, pair.second) for pair in pairs])
    key = {**model, "texts": digest(texts), "threshold": options.threshold, "pairs": named}

    def measure() -> LengthAdvice:
        with reporting(1, "advice on length", quiet=options.quiet) as report:

            def progress(done: int, total: int) -> None:
                report.update(done / total, now="")

            return advise_length(phi, texts, pairs, options.threshold, progress=progress)

    # A longer passage may be refused, though the text is not.
    impossible = (InputError, EndpointError) if options.on_error == "skip" else InputError
    try:
        return load_or_compute(Path(options.out), LengthAdvice, key, measure), None
    except impossible as error:
        return None, str(error)


def _layers(
    options: AuditOptions,
    phi: "TransformerFeatures | Model",
    documents: "Sequence[Document]",
    model: dict[str, Any],
) -> "Sequence[LayerSensitivity]":
    """By layer and head, of the first texts."""
    from wordsens.evaluation.audit.cell import digest
    from wordsens.evaluation.audit.layers import layer_sensitivities
    from wordsens.evaluation.audit.result import SavedLayers, load_or_compute
    from wordsens.maps.transformer.features import TransformerFeatures

    if not isinstance(phi, TransformerFeatures) or not documents:
        return []
    effort = {"max_words": options.max_words, "seed": options.seed}
    key = {
        **model,
        **effort,
        "words": options.words_per_text,
        "texts": digest([each.text for each in documents]),
    }

    def measure() -> SavedLayers:
        with reporting(1, "layers", quiet=options.quiet) as report:
            layers = layer_sensitivities(
                phi.at(),
                documents,
                words=options.words_per_text,
                progress=lambda share: report.update(share, now=""),
                **effort,
            )
        return SavedLayers(tuple(layers))

    return load_or_compute(Path(options.out), SavedLayers, key, measure).layers
