"""The work of `wordsens measure`: texts to matrices, maps, search, and what is printed."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from wordsens.cli.measure.options import MeasureOptions
from wordsens.cli.measure.tables import Comparison, Measured, RealSwaps, print_many, print_one
from wordsens.cli.stopping import stopped_by_sigterm
from wordsens.cli.terminal import Reporter, notice, print_json, reporting, stdout
from wordsens.errors import InputError, require_device
from wordsens.files import named_path
from wordsens.maps.base import FeatureMap
from wordsens.maps.registry import MODEL, build_map, map_title
from wordsens.maps.transformer.features import TransformerFeatures, loaded_model
from wordsens.sensitivity.jacobian import jacobian_sensitivity
from wordsens.sensitivity.one_word import word_sensitivity
from wordsens.sensitivity.result import Sensitivity
from wordsens.sensitivity.several_texts import on_demand, sampled_words
from wordsens.sensitivity.swaps import best_swaps
from wordsens.text import Document, embed, read_documents
from wordsens.text.matrix import TextMatrix
from wordsens.text.tables import file_text
from wordsens.theory import check_conditions, predict
from wordsens.version import __version__

if TYPE_CHECKING:
    from wordsens.cli.measure.records import MeasureRecords


def run_measure(options: MeasureOptions) -> None:
    """Measure every text under every map, and print tables or one JSON document."""
    require_device(options.device)
    if options.out is None:
        _print(*_measure_all(options, None), None, options)
        return
    from wordsens.cli.measure.records import MeasureRecords

    with stopped_by_sigterm(), MeasureRecords.opened(options) as records:
        measured, skipped = _measure_all(options, records)
        _print(measured, skipped, records.write_table(), options)


def _print(
    measured: Sequence[Measured], skipped: Sequence[TextMatrix], table: Path | None, options: MeasureOptions
) -> None:
    if options.as_json:
        _print_json(measured, skipped, table, options)
        return
    if options.texts is None:
        print_one(measured[0], all_words=options.all_words, verbose=options.verbose, conditions=options.conditions)
    else:
        print_many(measured, verbose=options.verbose)
    if table is not None:
        stdout().print(f"\nrecords  {table}", soft_wrap=True, markup=False)


def _measure_all(options: MeasureOptions, records: "MeasureRecords | None") -> tuple[list[Measured], list[TextMatrix]]:
    """The measured texts, and those that were left out."""
    documents = _documents(options)
    if options.of_model:
        phi = build_map(MODEL, 1, 1, seed=options.seed, device=options.device, **options.map_options)
        texts = phi.embed(documents, max_words=options.max_words)
    else:
        texts = embed(
            documents,
            encoder=options.encoder,
            layer=options.chosen_layer,
            max_words=options.max_words,
            special_tokens=options.keep_special_tokens,
            device=options.device,
        )
    saved, skipped = _long_enough(list(zip(documents, texts, strict=True)), options.texts)
    if skipped and not options.quiet:
        notice(f"{len(skipped)} of {len(texts)} texts have one word only and are left out")
    measured: list[Measured] = []
    with reporting(len(saved), "texts" if len(saved) > 1 else "search", quiet=options.quiet) as report:
        for done, (document, text) in enumerate(saved):
            progress = partial(_tell, report, done, text.source if len(saved) > 1 else "")
            measured.append(_measured(document, text, options, records, progress))
        if len(saved) > 1:
            report.update(len(saved), now="")
    return measured, skipped


def _tell(report: Reporter, texts: int, text: str, name: str, share: float) -> None:
    """Report that `texts` are measured, and that share of the next one, whose map is called `name`."""
    report.update(texts + share, now=f"{text} {map_title(name)}".strip())


def _measured(
    document: Document,
    text: TextMatrix,
    options: MeasureOptions,
    records: "MeasureRecords | None",
    progress: Callable[[str, float], None],
) -> Measured:
    """One text under every map; `progress` is told the map and the share that is done."""
    n, d = text.rows.shape
    names = options.map_names
    results, seconds, comparisons = [], [], []
    for index, name in enumerate(names):

        def tell(done: int, total: int, name: str = name, index: int = index) -> None:
            progress(name, (index + done / max(total, 1)) / len(names))

        started = time.perf_counter()
        phi = build_map(name, n, d, seed=options.seed, device=options.device, **options.map_options)
        words = options.word or sampled_words(phi, n, options.seed, options.sample)
        place = None if records is None else records.place(name, document, text, phi, words)
        measured = None if place is None else place.load()
        if measured is None:
            result = word_sensitivity(
                phi,
                text,
                words=words,
                radius=options.radius,
                seed=options.seed,
                search=options.search_plan,
                progress=tell,
            )
            measured = result, _swaps(phi, text, result, options)
            if place is not None:
                place.save(*measured)
        result, swaps = measured
        results.append(result)
        seconds.append(time.perf_counter() - started)
        comparisons.append(_comparison(phi, text, result, swaps, options))
    return Measured(text, tuple(results), tuple(seconds), tuple(comparisons))


def _swaps(phi: FeatureMap, text: TextMatrix, result: Sensitivity, options: MeasureOptions) -> RealSwaps | None:
    """The best real word in the place of each searched word, where that was asked for.

    Every entry is a query, and a map that is sampled on demand would remember them all.
    """
    if not options.swaps or on_demand(phi):
        return None
    if isinstance(phi, TransformerFeatures):
        vocabulary = phi.vocabulary()
    else:
        encoder = loaded_model(options.encoder, torch.float32, options.device)
        vocabulary = encoder.vocabulary(special_tokens=options.keep_special_tokens, rescale=True)
    results = best_swaps(phi, text, result.words, options.seed, vocabulary=vocabulary)
    return RealSwaps(tuple(results.per_word.tolist()), results.swapped_for)


def _comparison(
    phi: FeatureMap, text: TextMatrix, result: Sensitivity, swaps: RealSwaps | None, options: MeasureOptions
) -> Comparison:
    """Theory on the same map and text: its predictions are about the radius sqrt(d)."""
    words = result.words.tolist()
    # Hundreds of products with the Jacobian: a map that is sampled on demand would remember them all.
    wants_limit = options.small_radius and not on_demand(phi)
    limit = jacobian_sensitivity(phi, text, words, options.seed).per_word.tolist() if wants_limit else None
    return Comparison(
        predicted=predict(phi, text, words=len(words)) if options.radius is None else None,
        conditions=check_conditions(phi, text),
        small_radius=None if limit is None else tuple(limit),
        swaps=swaps,
    )


def _documents(options: MeasureOptions) -> list[Document]:
    if options.text is not None:
        return [Document(options.text, source="the command line")]
    if options.file is not None:
        path = named_path("file", options.file, home=False)
        return [Document(file_text(path, options.encoding), source=path.name)]
    assert options.texts is not None
    return read_documents(
        options.texts,
        text_column=options.text_column,
        encoding=options.encoding,
        labels=False,
        limit=options.limit,
        skip_empty=True,
    )


def _long_enough(
    texts: list[tuple[Document, TextMatrix]], source: str | None
) -> tuple[list[tuple[Document, TextMatrix]], list[TextMatrix]]:
    """The texts of two words or more, and the others; InputError where the only text is one of these."""
    if source is None:
        if len(texts[0][1]) < 2:
            raise InputError(
                "the text has one word; word sensitivity compares words, so give a text of two words or more"
            )
        return texts, []
    saved = [pair for pair in texts if len(pair[1]) > 1]
    if not saved:
        raise InputError(f"`texts` (={source!r}) has no text of two words or more; give longer texts")
    return saved, [text for _, text in texts if len(text) == 1]


def _print_json(
    measured: Sequence[Measured], skipped: Sequence[TextMatrix], table: Path | None, options: MeasureOptions
) -> None:
    document: dict[str, Any] = {
        "command": "measure",
        "version": __version__,
        "encoder": options.model if options.of_model else options.encoder,
        "layer": options.chosen_layer,
        "seed": options.seed,
        "device": options.device,
        "texts": [one.to_dict() for one in measured],
        "skipped": [text.source for text in skipped],
        "records": None if table is None else str(table),
    }
    print_json(document)
