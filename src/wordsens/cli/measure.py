"""`wordsens measure`: texts to matrices, maps, search, and what is printed. Loads no torch before
it runs."""

import json
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

import wordsens as ws
from wordsens.cli.command import (
    Answer,
    CommandRun,
    Device,
    EncoderName,
    Seed,
    Threads,
    command,
    cpu_threads,
    option,
)
from wordsens.cli.terminal import typed
from wordsens.errors import (
    InputError,
    argument,
    require_choice,
    require_count,
    require_device,
    require_positive,
)
from wordsens.files import named_path
from wordsens.maps.registry import (
    MAPS,
    TRAINED,
    build_map,
    map_entry,
    map_names,
    map_options,
    map_title,
)
from wordsens.search.plan import EFFORTS, SearchPlan

if TYPE_CHECKING:
    from wordsens.sensitivity.measured import MeasuredMap
    from wordsens.sweeps.measurement import SensitivityCell
    from wordsens.sweeps.store import Store

_text, _search = partial(option, panel="Text"), partial(option, panel="Search")
_theory = partial(option, panel="Theory")
_OF_MAPS = ("depth", "width", "activation", "temperature", "model", "pool", "model_layer")
_of_maps = option("", panel="Maps")  # the help is that of the maps that take it

Swaps = tuple[tuple[float, ...], tuple[str, ...]]
"""For each searched word the change by the best real word in its place, and that word."""


@command("measure", first=("maps", "texts", "radius", "swaps", "out"))
def measure(
    text: Annotated[
        str | None, typer.Argument(help="The text itself, in quotes.", show_default=False)
    ] = None,
    *,
    file: Annotated[str | None, _text("A plain-text file with one text.")] = None,
    texts: Annotated[
        str | None,
        _text("Many texts: a file, Parquet or CSV table, folder, or 'imdb' from the hub."),
    ] = None,
    text_column: Annotated[str, _text("The column of a table that holds the text.")] = "text",
    encoding: Annotated[str, _text("Encoding of plain-text files.")] = "utf-8",
    limit: Annotated[int | None, _text("Use at most this many texts.", rule=require_count)] = None,
    encoder: EncoderName = "minilm",
    model_layer: Annotated[
        int | None,
        _text(
            "Layer of the encoder (default: 0, the embedding layer's output) or of --map model "
            "(default: -1).",
            "--layer",
        ),
    ] = None,
    max_words: Annotated[
        int | None,
        _text("Cut longer texts after this many words.", rule=partial(require_count, least=2)),
    ] = None,
    keep_special_tokens: Annotated[
        bool, _text("Count [CLS] and [SEP] as words.", "--keep-special-tokens")
    ] = False,
    maps: Annotated[
        str,
        option(
            f"Any of {', '.join(MAPS)}, commas between; raf(heads=4) sets a parameter; "
            "module:Name is a map of your own.",
            "--map",
            panel="Maps",
        ),
    ] = "rf,raf,relu-raf",
    depth: Annotated[int | None, _of_maps] = None,
    width: Annotated[int | None, _of_maps] = None,
    activation: Annotated[str | None, _of_maps] = None,
    temperature: Annotated[float | None, _of_maps] = None,
    model: Annotated[str | None, _of_maps] = None,
    pool: Annotated[str | None, _of_maps] = None,
    radius: Annotated[
        float | None,
        _search(
            "How far the word's vector may move; default: sqrt(d), or with --map model the "
            "vector's own length.",
            rule=partial(require_positive, remedy="leave it out for the map's default"),
        ),
    ] = None,
    words: Annotated[
        list[int] | None,
        _search("Search this word only, counted from 0; may be repeated.", "--word"),
    ] = None,
    sample: Annotated[
        int | None,
        _search(
            "Search a random sample of this many words; default: all. If the matrices of rf or "
            "drf are too large to build for the text, the default is 16 (rf) or 16 / depth (drf).",
            rule=require_count,
        ),
    ] = None,
    search: Annotated[
        str,
        _search(
            "Search effort: quick, normal or thorough.",
            rule=partial(require_choice, choices=EFFORTS),
        ),
    ] = "normal",
    starts: Annotated[
        int | None,
        _search(
            "Starting points per word; default: depends on the map.",
            rule=require_count,
        ),
    ] = None,
    steps: Annotated[
        int | None,
        _search(
            "Maximum number of steps per starting point; default: depends on the map.",
            rule=require_count,
        ),
    ] = None,
    swaps: Annotated[
        bool,
        _search(
            "Also find, for each searched word, the word of the encoder's vocabulary that changes "
            "the features most when it replaces it. The result need not make sense.",
            "--swaps",
        ),
    ] = False,
    small_radius: Annotated[
        bool,
        _theory(
            "Also give the limit of S / radius as the radius shrinks: the Jacobian's largest "
            "singular value.",
            "--small-radius",
        ),
    ] = False,
    profile: Annotated[
        bool,
        _theory(
            "Also show a table of all measures: mean change, small-radius limit, sensitivity to "
            "replacing rows by other rows, Lipschitz bounds.",
            "--profile",
        ),
    ] = False,
    conditions: Annotated[
        bool,
        _theory(
            "Also say which conditions of the paper's theorems the text and the maps meet.",
            "--conditions",
        ),
    ] = False,
    all_words: Annotated[
        bool, option("Show every word, however long the text is.", "--all-words")
    ] = False,
    verbose: Annotated[
        bool,
        option(
            "Also show each word's upper bound, the cost, and what the numbers mean.",
            "--verbose",
            "-v",
        ),
    ] = False,
    out: Annotated[
        str | None,
        option(
            "Save one record per text and map in this folder, for `wordsens report`; existing "
            "records are not measured again."
        ),
    ] = None,
    seed: Seed = 0,
    device: Device = "cpu",
    threads: Threads = 1,
    run: CommandRun,
) -> Answer:
    """Measure how much changing one word's vector can change the output of a feature map: the word
    sensitivity S of each word. The most sensitive word is marked.

    S is the largest change of the features that the search finds when one word's vector moves by at
    most the radius, divided by the norm of the features. 0.5 means a change of half the norm. It is
    a lower bound; --verbose adds a certified upper bound.

    Example: wordsens measure "I love her much" --map rf,raf,relu-raf
    """
    if sum(source is not None for source in (text, file, texts)) != 1:
        raise InputError(
            'give exactly one of TEXT, --file and --texts; for example: wordsens measure "I '
            'love her much"'
        )
    if words and sample is not None:
        raise InputError("--word and --sample both choose the words; give one of them")
    if texts is None and (text_column != "text" or limit is not None):
        raise InputError(
            "--text-column and --limit belong to --texts; drop them, or name a file of texts"
        )
    flags = (depth, width, activation, temperature, model, pool, model_layer)
    given = {name: value for name, value in zip(_OF_MAPS, flags, strict=True) if value is not None}
    names, layer = map_names(maps), model_layer or 0
    of_model = TRAINED in [map_entry(name).family for name in names]
    if of_model and len(names) > 1:
        raise InputError(
            "--map names model beside other maps, but a transformer has rows of its own; "
            "measure it alone"
        )
    if swaps and not of_model and layer:
        raise InputError(
            "--swaps needs the encoder's layer 0, where a word has the same row whatever stands "
            f"around it, but --layer is {layer}; drop one of them"
        )
    taken = {key for name in names for key in map_entry(name).options} | {"model_layer"}
    for key in given:
        if key not in taken:
            raise InputError(f"{argument(key)} is an option of other maps than {maps}; drop it")
    options_of_maps = [map_options(name, **given) for name in names]
    require_device(device)

    from wordsens.sensitivity.measured import MeasuredText, texts_view
    from wordsens.sensitivity.several_texts import sampled_words
    from wordsens.sweeps.store import Store, write_tables

    build = partial(build_map, seed=seed, device=device, **given)
    plan = SearchPlan(search, starts=starts, steps=steps)
    rows = {"encoder": encoder, "layer": layer, "keep_special_tokens": keep_special_tokens}
    keys = {"seed": seed, "radius": radius, "device": device, **given}
    keys |= {"search": search, "starts": starts, "steps": steps}
    with cpu_threads(threads), nullcontext() if out is None else Store(out) as store:
        if store is not None:
            store.add_command(typed.get())
        documents = _documents(text, file, texts, text_column, encoding=encoding, limit=limit)
        if of_model:
            matrices = build(names[0], 1, 1).embed(documents, max_words=max_words)
        else:
            matrices = ws.embed(
                documents,
                encoder=encoder,
                layer=layer,
                max_words=max_words,
                special_tokens=keep_special_tokens,
                device=device,
            )
        readable = [pair for pair in zip(documents, matrices, strict=True) if len(pair[1]) > 1]
        skipped = [matrix for matrix in matrices if len(matrix) == 1]
        if not readable:
            raise InputError(
                "the text has one word; word sensitivity compares words, so give a text of two "
                "words or more"
                if texts is None
                else f"--texts (={texts!r}) has no text of two words or more; give longer texts"
            )
        if skipped:
            left_out = f"{len(skipped)} of {len(matrices)} texts have one word only"
            run.notice(f"{left_out} and are left out")
        count, measured = len(readable), []
        with run.progress("texts" if count > 1 else "search", count) as report:
            for document, matrix in readable:
                results = []
                for name in names:
                    start = len(measured) + len(results) / len(names)
                    now = f"{matrix.source if count > 1 else ''} {map_title(name)}".strip()
                    phi = build(name, *matrix.rows.shape)
                    indices = words or sampled_words(phi, len(matrix), seed, sample)
                    saved = None
                    if store is not None:
                        cell = _cell(
                            name, document, matrix, indices, {} if of_model else rows, keys
                        )
                        saved = store, cell

                    def tell(done: int, total: int, start: float = start, now: str = now) -> None:
                        share = done / max(total, 1) / len(names)
                        report(start + share, count, now)

                    results.append(
                        _measured(
                            phi,
                            matrix,
                            indices,
                            radius,
                            seed,
                            plan=plan,
                            saved=saved,
                            swaps=partial(_swaps, rows=rows, device=device, seed=seed)
                            if swaps
                            else None,
                            small_radius=small_radius,
                            profile=profile,
                            progress=tell,
                        )
                    )
                measured.append(MeasuredText(tuple(results)))
            report(count, count)
        table = None
        if store is not None:
            records: Any = store.frame(experiment="sensitivity")
            given_texts = records[records["text"] == "given"] if len(records) else records
            table = write_tables(given_texts, store.folder, "measure")
    document = {
        "encoder": options_of_maps[0]["model"] if of_model else encoder,
        "layer": options_of_maps[0]["model_layer"] if of_model else layer,
        "seed": seed,
        "device": device,
        "texts": [each.to_dict() for each in measured],
        "skipped": [matrix.source for matrix in skipped],
        "records": None if table is None else str(table),
    }
    if texts is not None:
        view = texts_view(measured, verbose=verbose)
    else:
        view = measured[0].view(all_words=all_words, verbose=verbose, conditions=conditions)
    files = [] if table is None else ["", f"records  {table}", f"report   wordsens report {out}"]
    return Answer(document=document, view=view, lines=files)


def _documents(
    text: str | None,
    file: str | None,
    texts: str | None,
    text_column: str,
    *,
    encoding: str,
    limit: int | None,
) -> "list[ws.Document]":
    from wordsens.text.tables import file_text

    if text is not None:
        return [ws.Document(text, source="the command line")]
    if file is not None:
        path = named_path("file", file, home=False)
        return [ws.Document(file_text(path, encoding), source=path.name)]
    return ws.read_documents(
        str(texts),
        text_column=text_column,
        encoding=encoding,
        limit=limit,
        labels=False,
        skip_empty=True,
    )


def _measured(
    phi: "ws.FeatureMap",
    text: "ws.TextMatrix",
    words: list[int] | None,
    radius: float | None,
    seed: int,
    *,
    plan: SearchPlan,
    saved: "tuple[Store, SensitivityCell] | None",
    swaps: Callable[..., Swaps] | None,
    small_radius: bool,
    profile: bool,
    progress: Callable[[int, int], None],
) -> "MeasuredMap":
    """One text under one map: from the store where that has all that is wanted, else measured."""
    from wordsens.sensitivity.measured import MeasuredMap
    from wordsens.sensitivity.profile import profile_of
    from wordsens.sweeps.measurement import save_measurement, saved_measurement
    from wordsens.theory import check_conditions, predict

    began, started = time.perf_counter(), datetime.now(UTC).isoformat(timespec="seconds")
    # Each entry of a vocabulary and each product with the Jacobian is a query, and a map that is
    # sampled on demand would remember them all.
    affordable = phi.affordable_words is None
    result, swapped = None, None
    if saved is not None and (stored := saved_measurement(*saved, phi, text)) is not None:
        result, record = stored
        if swaps is not None and affordable:
            if record["swap"] is None:
                result = None
            else:
                swapped = record["swap"], tuple(json.loads(str(record["swapped_for"])))
    if result is None:
        result = ws.word_sensitivity(phi, text, words, radius, seed, search=plan, progress=progress)
        swapped = swaps(phi, text, result) if swaps is not None and affordable else None
        if saved is not None:
            save_measurement(*saved, started, phi, text, result, swaps=swapped)
    searched, limit = result.words.tolist(), None
    if small_radius and affordable:
        limit = tuple(ws.jacobian_sensitivity(phi, text, searched, seed).per_word.tolist())
    return MeasuredMap(
        text=text,
        result=result,
        seconds=time.perf_counter() - began,
        # A prediction is of radius sqrt(d).
        predicted=predict(phi, text, words=len(searched)) if radius is None else None,
        conditions=check_conditions(phi, text),
        small_radius=limit,
        swaps=swapped,
        profile=profile_of(phi, text, result) if profile else None,
    )


def _swaps(
    phi: "ws.FeatureMap",
    text: "ws.TextMatrix",
    result: "ws.Sensitivity",
    *,
    rows: Mapping[str, Any],
    device: str,
    seed: int,
) -> Swaps:
    from wordsens.maps.transformer.features import TransformerFeatures, loaded_model

    if isinstance(phi, TransformerFeatures):
        vocabulary = phi.vocabulary()
    else:
        encoder = loaded_model(rows["encoder"], device=device)
        vocabulary = encoder.vocabulary(special_tokens=rows["keep_special_tokens"], rescale=True)
    swaps = ws.best_swaps(phi, text, result.words, seed, vocabulary=vocabulary)
    return tuple(swaps.per_word.tolist()), swaps.swapped_for


def _cell(
    name: str,
    document: "ws.Document",
    text: "ws.TextMatrix",
    words: list[int] | None,
    rows: Mapping[str, Any],
    keys: Mapping[str, Any],
) -> "SensitivityCell":
    """The cell of a sweep that is the measurement of that map on a text, at these words or all."""
    from wordsens.sweeps.measurement import SensitivityCell

    entry, (n, d) = map_entry(name), text.rows.shape
    source = {
        "kind": "given",
        "content": document.text,
        "source": text.source,
        "label": document.label,
    }
    of_maps = set(_OF_MAPS) - set(entry.options)
    cell = {key: value for key, value in keys.items() if key not in of_maps}
    cell |= {"map": name, "n": n, "d": d, "text": {**source, **rows}}
    cell |= {"dtype": "float32" if entry.family == TRAINED else "float64"}
    return SensitivityCell.parse(cell | {"words": "all" if words is None else {"indices": words}})
