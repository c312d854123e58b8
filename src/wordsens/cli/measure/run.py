"""The work of `wordsens measure`: texts to matrices, maps, search, and what is printed."""

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from wordsens import __version__
from wordsens.cli.measure.tables import Beside, Measured, print_many, print_one
from wordsens.cli.terminal import Reporter, notice, reporting
from wordsens.errors import InputError
from wordsens.experiments.map_choice import MapOptions, build_map, map_names, map_title
from wordsens.maps.contract import FeatureMap
from wordsens.maps.dense.features import DeepRandomFeatures
from wordsens.seeds import generator
from wordsens.sensitivity.jacobian import jacobian_sensitivity
from wordsens.sensitivity.one_word import Sensitivity, word_sensitivity
from wordsens.text import Document, embed, read_documents
from wordsens.text.encoders import require_device
from wordsens.text.matrix import TextMatrix
from wordsens.text.plain_files import text_file_rows
from wordsens.theory import check_conditions, predict

ON_DEMAND_WORDS = 16
"""How many words of a text rf searches by default where its matrix is not built; drf: so many over its depth."""


@dataclass(frozen=True, kw_only=True)
class MeasureRequest:
    """What the command line asked for: its options, by their names."""

    text: str | None
    file: str | None
    dataset: str | None
    text_column: str
    encoding: str
    limit: int | None
    maps: str
    encoder: str
    layer: int
    max_words: int | None
    keep_special_tokens: bool
    radius: float | None
    words: tuple[int, ...]
    sample: int | None
    depth: int
    width: int | None
    activation: str
    temperature: float
    starts: int | None
    steps: int | None
    small_radius: bool
    seed: int
    device: str


def run_measure(request: MeasureRequest, *, all_words: bool, conditions: bool, as_json: bool, quiet: bool) -> None:
    """Measure every text under every map, and print tables or one JSON document."""
    names = map_names(request.maps)
    require_device(request.device)
    measured, skipped = _measure_all(names, request, quiet=quiet)
    if as_json:
        _print_json(measured, skipped, request)
    elif request.dataset is None:
        print_one(measured[0], all_words=all_words, conditions=conditions)
    else:
        print_many(measured)


def _measure_all(
    names: Sequence[str], request: MeasureRequest, *, quiet: bool
) -> tuple[list[Measured], list[TextMatrix]]:
    """What was measured, and the texts that were left out."""
    texts = embed(
        _documents(request),
        encoder=request.encoder,
        layer=request.layer,
        max_words=request.max_words,
        special_tokens=request.keep_special_tokens,
        device=request.device,
    )
    kept, skipped = _long_enough(texts, request.dataset)
    if skipped and not quiet:
        notice(f"{len(skipped)} of {len(texts)} texts have one word only and are left out")
    measured = []
    with reporting(len(kept), "texts" if len(kept) > 1 else "search", quiet=quiet) as report:
        for done, text in enumerate(kept):
            progress = partial(_tell, report, done, text.source if len(kept) > 1 else "")
            measured.append(_measured(text, names, request, progress))
        if len(kept) > 1:
            report.update(len(kept), now="")
    return measured, skipped


def _tell(report: Reporter, texts: int, text: str, name: str, share: float) -> None:
    """Report that `texts` are measured, and that share of the next one, whose map is called `name`."""
    report.update(texts + share, now=f"{text} {map_title(name)}".strip())


def _measured(
    text: TextMatrix, names: Sequence[str], request: MeasureRequest, progress: Callable[[str, float], None]
) -> Measured:
    """One text under every map; `progress` is told the map and the share that is done."""
    n, d = text.rows.shape
    options = MapOptions(
        depth=request.depth,
        width=request.width,
        activation=request.activation,
        temperature=request.temperature,
    )
    results, seconds, beside = [], [], []
    for index, name in enumerate(names):

        def tell(done: int, total: int, name: str = name, index: int = index) -> None:
            progress(name, (index + done / max(total, 1)) / len(names))

        started = time.perf_counter()
        phi = build_map(name, n, d, options=options, seed=request.seed, device=request.device)
        result = word_sensitivity(
            phi,
            text,
            words=_searched_words(phi, n, request),
            radius=request.radius,
            seed=request.seed,
            starts=request.starts,
            steps=request.steps,
            progress=tell,
        )
        results.append(result)
        seconds.append(time.perf_counter() - started)
        beside.append(_beside(phi, text, result, request))
    return Measured(text, tuple(results), tuple(seconds), tuple(beside))


def _beside(phi: FeatureMap, text: TextMatrix, result: Sensitivity, request: MeasureRequest) -> Beside:
    """Theory on the same map and text: its predictions are about the radius sqrt(d)."""
    words = result.words.tolist()
    # Hundreds of products with the Jacobian: a map that is sampled on demand would remember them all.
    built = not (isinstance(phi, DeepRandomFeatures) and phi.gaussian == "lazy")
    asked = request.small_radius and built
    limit = jacobian_sensitivity(phi, text, words, seed=request.seed).tolist() if asked else None
    return Beside(
        predicted=predict(phi, text, words=len(words)) if request.radius is None else None,
        conditions=check_conditions(phi, text),
        small_radius=None if limit is None else tuple(limit),
    )


def _searched_words(phi: FeatureMap, n: int, request: MeasureRequest) -> list[int] | None:
    """The words to search: those named, a sample, or None for all.

    A map whose matrices are sampled on demand remembers every query, so all words of a long text would not fit.
    """
    if request.words:
        return list(request.words)
    count = request.sample
    if count is None and isinstance(phi, DeepRandomFeatures) and phi.gaussian == "lazy":
        count = max(2, ON_DEMAND_WORDS // phi.depth)
    if count is None or count >= n:
        return None
    return sorted(torch.randperm(n, generator=generator(request.seed, "sample"))[:count].tolist())


def _documents(request: MeasureRequest) -> list[Document]:
    if request.text is not None:
        return [Document(request.text, source="the command line")]
    if request.file is not None:
        rows = text_file_rows(Path(request.file), request.encoding)
        return [Document(str(row.text), source=row.where) for row in rows]
    assert request.dataset is not None
    return read_documents(
        request.dataset,
        text_column=request.text_column,
        encoding=request.encoding,
        labels=False,
        limit=request.limit,
        skip_empty=True,
    )


def _long_enough(texts: Sequence[TextMatrix], dataset: str | None) -> tuple[list[TextMatrix], list[TextMatrix]]:
    """The texts of two words or more, and the others; a single text goes on: the library explains its error."""
    if dataset is None:
        return list(texts), []
    kept = [text for text in texts if len(text) > 1]
    if not kept:
        raise InputError(f"`dataset` (={dataset!r}) has no text of two words or more; give longer texts")
    return kept, [text for text in texts if len(text) == 1]


def _print_json(measured: Sequence[Measured], skipped: Sequence[TextMatrix], request: MeasureRequest) -> None:
    document: dict[str, Any] = {
        "command": "measure",
        "version": __version__,
        "encoder": request.encoder,
        "layer": request.layer,
        "seed": request.seed,
        "device": request.device,
        "texts": [one.to_dict() for one in measured],
        "skipped": [text.source for text in skipped],
    }
    json.dump(document, sys.stdout, ensure_ascii=False, allow_nan=False)
    sys.stdout.write("\n")
