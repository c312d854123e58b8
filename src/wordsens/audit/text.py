"""Measuring one text: a few words' sensitivity, their removal, their best swap."""

import datetime
import json
import platform
import resource
import sys
import time
from dataclasses import replace

import torch

from wordsens import __version__
from wordsens.audit.categories import kind_of
from wordsens.audit.record import AuditPlan, AuditRecord
from wordsens.errors import InputError, WordsensError
from wordsens.maps.transformer import TransformerFeatures
from wordsens.removals import removal_effects
from wordsens.seeds import generator
from wordsens.swap_vocabulary import Vocabulary
from wordsens.swaps import best_swaps
from wordsens.text.document import Document
from wordsens.text_matrix import TextMatrix
from wordsens.whole_words import whole_word_sensitivity


def attempt_text(
    phi: TransformerFeatures, document: Document, plan: AuditPlan, vocabulary: Vocabulary | None = None
) -> AuditRecord:
    """The record of one text; where it cannot be measured, one with status "failed" and the reason."""
    begin, started = time.perf_counter(), datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    try:
        record = _measured(phi, document, plan, vocabulary, started)
    except WordsensError as error:
        record = _record(document, plan, started, status="failed", error=str(error))
    return replace(record, seconds=time.perf_counter() - begin)


def chosen_words(text: TextMatrix, count: int, *, seed: int, source: str) -> list[int]:
    """Which whole words are measured: negations first, then a random draw, in the order of the text."""
    words = list(text.whole_words or ())
    order = torch.randperm(len(words), generator=generator(seed, "audited words", source)).tolist()
    order.sort(key=lambda at: kind_of(words[at].text) != "negation")
    return sorted(order[:count])


def _measured(
    phi: TransformerFeatures, document: Document, plan: AuditPlan, vocabulary: Vocabulary | None, started: str
) -> AuditRecord:
    (text,) = phi.embed(document, max_words=plan.max_words)
    whole = text.whole_words or ()
    if len(whole) < 2:
        raise InputError(f"{document.source} has {len(whole)} words; an audit compares words, so it is left out")
    chosen = chosen_words(text, plan.words_per_text, seed=plan.seed, source=document.source)
    # Polishing in the model's own precision gains little (docs/transformers.md) and costs as much as the search; the
    # witnesses are evaluated in it all the same.
    found = whole_word_sensitivity(phi, text, chosen, plan.seed, steps=0, generations=0)
    removed = removal_effects(phi, document, chosen, way=plan.removal, max_words=plan.max_words)
    swap: tuple[float, ...] = ()
    swapped: list[str] = []
    if vocabulary is not None:
        single = [whole[at].rows[0] for at in chosen if len(whole[at].rows) == 1]
        best = best_swaps(phi, text, vocabulary, single, plan.seed) if single else None
        values = dict(zip(single, best.per_word.tolist(), strict=True)) if best else {}
        names = dict(zip(single, best.swapped_for, strict=True)) if best else {}
        alone = [whole[at].rows[0] if len(whole[at].rows) == 1 else -1 for at in chosen]
        swap = tuple(values.get(row, float("nan")) for row in alone)
        swapped = [names.get(row, "") for row in alone]
    return _record(
        document,
        plan,
        started,
        status="done",
        value=found.value,
        tokens=len(text),
        words=len(whole),
        measured=json.dumps([whole[at].text for at in chosen], ensure_ascii=False),
        rows=json.dumps([len(whole[at].rows) for at in chosen]),
        places=tuple(at / (len(whole) - 1) for at in chosen),
        sensitivity=tuple(found.per_word.tolist()),
        removal=tuple(removed.change.tolist()),
        swap=swap,
        swapped_for=json.dumps(swapped, ensure_ascii=False),
        evaluations=found.evaluations,
    )


def _record(document: Document, plan: AuditPlan, started: str, **values: object) -> AuditRecord:
    empty: dict[str, object] = {
        "tokens": 0, "words": 0, "measured": "[]", "rows": "[]", "places": (), "sensitivity": (), "removal": (),
        "swap": (), "swapped_for": "[]", "evaluations": 0,
    }  # fmt: skip
    made: dict[str, object] = {**empty, **values}
    return AuditRecord(
        cell=plan.cell(document.text),
        spec=plan.identity(document.text),
        seconds=0.0,
        source=document.source,
        label=document.label,
        peak_memory_mb=peak_memory_mb(),
        started=started,
        wordsens_version=__version__,
        torch_version=str(torch.__version__),
        machine=f"{platform.system()} {platform.machine()}",
        **made,  # pyright: ignore[reportArgumentType]
    )


def peak_memory_mb() -> float:
    """The largest resident memory of this process so far, in MiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20) if sys.platform == "darwin" else peak / 1024
