"""The work of `wordsens audit`: count the words, measure what is missing, summarise."""

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from wordsens import __version__
from wordsens.audit.categories import counted
from wordsens.audit.layers import LayerSensitivity, layer_sensitivities
from wordsens.audit.record import AuditPlan, AuditRecord
from wordsens.audit.summary import AuditSummary, summarise_audit
from wordsens.audit.text import attempt_text, peak_memory_mb
from wordsens.cli.audit_tables import print_audit
from wordsens.cli.terminal import notice, reporting
from wordsens.errors import InputError
from wordsens.experiments.store import RecordStore, write_aside
from wordsens.fading import Fading, fading, pair_distances
from wordsens.maps.transformer import TransformerFeatures
from wordsens.text import Document, minimal_pairs, stream_documents
from wordsens.text.encoders import require_device
from wordsens.text.whole_words import reading_words


@dataclass(frozen=True, kw_only=True)
class AuditRequest:
    """What the command line asked for: its options, by their names."""

    model: str
    dataset: str
    text_column: str
    limit: int | None
    max_words: int
    output: str
    pool: str | None
    words_per_text: int
    removal: str | None
    swaps: bool
    threshold: float
    layer_texts: int
    out: str
    seed: int
    device: str


@dataclass(frozen=True)
class Audit:
    """Everything an audit prints."""

    summary: AuditSummary
    layers: list[LayerSensitivity]
    fading: list[Fading]
    failed: list[AuditRecord]
    threshold: float
    map_name: str
    context: int | None


def run_audit(request: AuditRequest, *, as_json: bool, quiet: bool) -> None:
    """Measure every text that has no record yet, then print the summary."""
    require_device(request.device)
    counts, total = _counted(request)
    phi = _map_of(request)
    plan = AuditPlan(
        model=request.model,
        map=phi.name,
        max_words=request.max_words,
        words_per_text=request.words_per_text,
        removal=_removal(phi, request.removal),
        swaps=request.swaps,
        seed=request.seed,
    )
    folder = Path(request.out)
    store = RecordStore(folder / "records", AuditRecord, on_set_aside=lambda found: notice(f"set aside: {found}"))
    _measure(phi, plan, store, request, total, quiet=quiet)
    cells = [plan.cell(document.text) for document in _documents(request)]
    order = {cell: at for at, cell in enumerate(cells)}
    records = sorted(store.read(cells), key=lambda record: order[record.cell])
    write_aside(folder / "audit.parquet", records)
    with reporting(2, "parts of the report", quiet=quiet) as report:
        layers = _layers(phi, request)
        report.update(1, now="minimal pairs")
        fits = fading(pair_distances(phi, minimal_pairs()), threshold=request.threshold)
        report.update(2, now="")
    failed = [record for record in records if not record.done]
    context = None if phi.reader is None else phi.reader.context
    done = Audit(summarise_audit(records, counts), layers, fits, failed, request.threshold, phi.name, context)
    if as_json:
        _print_json(done, folder, request)
    else:
        print_audit(done, folder)


def _map_of(request: AuditRequest) -> TransformerFeatures:
    """The model as the map that is audited."""
    if request.output == "probabilities":
        return TransformerFeatures.from_pretrained(request.model, output="probabilities", device=request.device)
    if request.pool is not None:
        return TransformerFeatures.from_pretrained(request.model, pool=request.pool, device=request.device)
    phi = TransformerFeatures.from_pretrained(request.model, device=request.device)
    try:
        return phi.at(pool="own")
    except InputError:
        return phi.at(pool="mean")


def _removal(phi: TransformerFeatures, wanted: str | None) -> str:
    has_mask = phi.reader is not None and phi.reader.tokenizer.mask_token_id is not None
    return wanted or ("mask" if has_mask else "delete")


def _documents(request: AuditRequest) -> Iterator[Document]:
    """The texts one at a time: a dataset may be larger than memory."""
    stream = stream_documents(request.dataset, text_column=request.text_column, skip_empty=True)
    with closing(stream):
        yield from islice(stream, request.limit)


def _counted(request: AuditRequest) -> tuple[Counter[str], int]:
    """How often each word occurs in the data, and how many texts there are."""
    counts: Counter[str] = Counter()
    total = 0
    for document in _documents(request):
        counts.update(counted(reading_words(document.text)))
        total += 1
    return counts, total


def _measure(
    phi: TransformerFeatures,
    plan: AuditPlan,
    store: RecordStore[AuditRecord],
    request: AuditRequest,
    total: int,
    *,
    quiet: bool,
) -> None:
    known = {path.name.split(".")[0] for path in store.folder.glob("*.parquet") if ".failed." not in path.name}
    left = sum(plan.cell(document.text) not in known for document in _documents(request))
    if left < total and not quiet:
        notice(f"{total - left} of {total} texts are in {store.folder} already")
    vocabulary = phi.vocabulary() if plan.swaps else None
    done, words, begin = 0, 0, time.monotonic()
    try:
        with reporting(left, "texts", quiet=quiet or not left) as report:
            for document in _documents(request):
                if plan.cell(document.text) in known:
                    continue
                record = attempt_text(phi, document, plan, vocabulary)
                store.write(record)
                known.add(record.cell)
                done += 1
                words += len(record.sensitivity)
                report.update(done, now=document.source)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"interrupted: {total - left + done} of {total} texts are finished in {store.folder}; "
            "the same command goes on from there"
        ) from None
    if done and not quiet:
        seconds = time.monotonic() - begin
        notice(f"{words} words in {seconds:.0f} s, {words / seconds:.2f} a second; peak {peak_memory_mb():.0f} MiB")


def _layers(phi: TransformerFeatures, request: AuditRequest) -> list[LayerSensitivity]:
    documents = list(islice(_documents(request), request.layer_texts))
    if not documents:
        return []
    return layer_sensitivities(
        phi.at(), documents, words=request.words_per_text, max_words=request.max_words, seed=request.seed
    )


def _print_json(audit: Audit, folder: Path, request: AuditRequest) -> None:
    document: dict[str, Any] = {
        "command": "audit",
        "version": __version__,
        "model": request.model,
        "map": audit.map_name,
        "seed": request.seed,
        **audit.summary.to_dict(),
        "layers": [asdict(layer) for layer in audit.layers],
        "fading": [
            {**asdict(fit), "means": {str(multiple): value for multiple, value in fit.means.items()}}
            for fit in audit.fading
        ],
        "failed": [{"source": record.source, "error": record.error} for record in audit.failed],
        "records": str(folder / "audit.parquet"),
    }
    json.dump(document, sys.stdout, ensure_ascii=False, allow_nan=False)
    sys.stdout.write("\n")
