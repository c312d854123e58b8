"""`wordsens measure`: texts to matrices, maps, search, and what is printed. Loads no torch before
it runs."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from wordsens.cli.options import (
    AsJson,
    Device,
    EncoderName,
    Quiet,
    Seed,
    Threads,
    option,
    takes,
)
from wordsens.cli.stopping import stopped_by_sigterm
from wordsens.cli.terminal import notice, print_json, reporting, stdout, typed
from wordsens.display.terminal import print_view
from wordsens.errors import (
    InputError,
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
    option_help,
)
from wordsens.search.plan import EFFORTS, SearchPlan
from wordsens.version import __version__

if TYPE_CHECKING:
    from wordsens.maps.base import FeatureMap
    from wordsens.sensitivity.measured import MeasuredMap, MeasuredText
    from wordsens.sensitivity.result import Sensitivity
    from wordsens.sweeps.measurement import SensitivityCell
    from wordsens.sweeps.store import Store
    from wordsens.text import Document
    from wordsens.text.matrix import TextMatrix

DEFAULT_MAPS = "rf,raf,relu-raf"
_text, _search = partial(option, panel="Text"), partial(option, panel="Search")

# Their help is their maps' (`MeasureCommand`); None is the map's default.
MAP_FLAGS = ("depth", "width", "activation", "temperature", "model", "pool")
_of_maps = partial(option, "", panel="Maps")


@dataclass(frozen=True, kw_only=True)
class MeasureOptions:
    """The options of `wordsens measure`."""

    text: Annotated[
        str | None, typer.Argument(help="The text itself, in quotes.", show_default=False)
    ] = None
    file: Annotated[str | None, _text("A plain-text file with one text.")] = None
    texts: Annotated[
        str | None, _text("Many texts: a file, Parquet or CSV table, folder, or 'imdb' of the hub.")
    ] = None
    text_column: Annotated[str, _text("The column of a table that holds the text.")] = "text"
    encoding: Annotated[str, _text("Of plain-text files.")] = "utf-8"
    limit: Annotated[int | None, _text("At most this many of --texts.")] = None
    encoder: EncoderName = "minilm"
    layer: Annotated[
        int | None,
        _text(
            "Layer of the encoder (default: 0, the embedding layer's output) or of --map model "
            "(default: -1)."
        ),
    ] = None
    max_words: Annotated[int | None, _text("Keep the first words of a longer text.")] = None
    keep_special_tokens: Annotated[
        bool, _text("Let [CLS] and [SEP] count as words.", "--keep-special-tokens")
    ] = False
    maps: Annotated[
        str,
        option(
            f"Any of {', '.join(MAPS)}, commas between; raf(heads=4) sets a parameter; "
            "module:Name is a map of "
            "your own.",
            "--map",
            panel="Maps",
        ),
    ] = DEFAULT_MAPS
    depth: Annotated[int | None, _of_maps()] = None
    width: Annotated[int | None, _of_maps()] = None
    activation: Annotated[str | None, _of_maps()] = None
    temperature: Annotated[float | None, _of_maps()] = None
    model: Annotated[str | None, _of_maps()] = None
    pool: Annotated[str | None, _of_maps()] = None
    radius: Annotated[
        float | None,
        _search(
            "How far the word may move; default: sqrt(d), of --map model the word's own length."
        ),
    ] = None
    word: Annotated[
        list[int] | None, _search("Search this word only, counted from 0; may be repeated.")
    ] = None
    sample: Annotated[
        int | None,
        _search(
            "Search a random sample of so many words; default: all, but 16 for rf and 16 / depth "
            "for drf on texts "
            "whose matrices are too large to build."
        ),
    ] = None
    search: Annotated[str, _search("What the search spends: quick, normal or thorough.")] = "normal"
    starts: Annotated[
        int | None, _search("Starting points of the search, a word; default: what suits the map.")
    ] = None
    steps: Annotated[
        int | None, _search("Steps of the search, a start, at most; default: what suits the map.")
    ] = None
    swaps: Annotated[
        bool,
        _search(
            "Also the word of the encoder's vocabulary that moves the map most in the place of "
            "each searched word, "
            "whether or not a writer would put it there.",
            "--swaps",
        ),
    ] = False
    small_radius: Annotated[
        bool,
        option(
            "Also the limit of S / radius as the radius shrinks: the Jacobian's largest singular "
            "value.",
            "--small-radius",
            panel="Theory",
        ),
    ] = False
    profile: Annotated[
        bool,
        option(
            "Also one table of all measures: the mean, the small-radius limit, rows exchanged, "
            "Lipschitz bounds.",
            "--profile",
            panel="Theory",
        ),
    ] = False
    conditions: Annotated[
        bool,
        option(
            "Also which conditions of the paper's theorems the text and the maps meet, in words.",
            "--conditions",
            panel="Theory",
        ),
    ] = False
    all_words: Annotated[
        bool, option("Show every word, however long the text is.", "--all-words")
    ] = False
    verbose: Annotated[
        bool,
        option(
            "Also each word's upper bound, the cost, and what all numbers mean.", "--verbose", "-v"
        ),
    ] = False
    out: Annotated[
        str | None,
        option(
            "Keep a record of every text and map in this folder, for `wordsens report`; what is "
            "there is not measured "
            "again."
        ),
    ] = None
    seed: Seed = 0
    device: Device = "cpu"
    threads: Threads = 1
    as_json: AsJson = False
    quiet: Quiet = False

    def __post_init__(self) -> None:
        require_count("threads", self.threads)
        if self.radius is not None:
            require_positive("radius", self.radius, remedy="leave it out for the map's default")
        require_choice("search", self.search, EFFORTS)
        for name, least in (
            ("limit", 1),
            ("max_words", 2),
            ("sample", 1),
            ("starts", 1),
            ("steps", 0),
        ):
            if (value := getattr(self, name)) is not None:
                require_count(name, value, least=least)
        if sum(given is not None for given in (self.text, self.file, self.texts)) != 1:
            raise InputError(
                'give exactly one of TEXT, --file and --texts; for example: wordsens measure "I '
                'love her much"'
            )
        if self.word and self.sample is not None:
            raise InputError("`--word` and `--sample` both choose the words; give one of them")
        if self.texts is None and (self.text_column != "text" or self.limit is not None):
            raise InputError(
                "`--text-column` and `--limit` belong to --texts; drop them, or name a file of "
                "texts"
            )
        families = [map_entry(name).family for name in self.map_names]
        if TRAINED in families and len(families) > 1:
            raise InputError(
                "`--map` names model beside other maps, but a transformer has rows of its own; "
                "measure it alone"
            )
        if self.swaps and not self.of_model and self.chosen_layer:
            raise InputError(
                "`--swaps` needs the encoder's layer 0, where a word has the same row whatever "
                "stands around it, but "
                f"--layer is {self.chosen_layer}; drop one of them"
            )
        for name in self.map_names:
            map_options(name, **self.given_options)

    @property
    def search_plan(self) -> SearchPlan:
        """The plan of every search."""
        return SearchPlan(self.search, starts=self.starts, steps=self.steps)

    @property
    def map_names(self) -> list[str]:
        """The maps, each once."""
        return map_names(self.maps)

    @property
    def of_model(self) -> bool:
        """True where a transformer is measured, which makes the rows of the texts itself."""
        return map_entry(self.map_names[0]).family == TRAINED

    @property
    def chosen_layer(self) -> int:
        """Of the encoder, or of the transformer."""
        return self.model_options["model_layer"] if self.of_model else self.layer or 0

    @property
    def model_options(self) -> dict[str, Any]:
        """The options of the transformer that is measured."""
        return map_options(self.map_names[0], **self.given_options)

    @property
    def given_options(self) -> dict[str, Any]:
        """The options of the maps that are given."""
        flags = {name: getattr(self, name) for name in MAP_FLAGS} | {"model_layer": self.layer}
        return {name: value for name, value in flags.items() if value is not None}


class MeasureCommand(TyperCommand):
    """The command, with a help of its maps' options that comes from the maps and loads torch."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        for parameter in self.params:
            parameter.help = parameter.help or option_help(parameter.name)  # pyright: ignore[reportAttributeAccessIssue]
        super().format_help(ctx, formatter)


@takes(MeasureOptions, first=("maps", "texts", "radius", "swaps", "out"))
def measure(options: MeasureOptions) -> None:
    """Measure how far one word can move what a map sees: S per word, with the most sensitive one
    marked.

    S is how far the features move, over their size, when a word's vector moves by at most the
    radius in the worst direction that was found: 0.5 is half their length. It is a lower bound;
    with --verbose an upper bound stands beside it.

    Example: wordsens measure "I love her much" --map rf,raf,relu-raf
    """
    require_device(options.device)
    if options.out is None:
        _print(*_measure_all(options, None), None, options)
        return
    from wordsens.sweeps.store import Store, write_tables

    with stopped_by_sigterm(), Store(options.out) as store:
        store.add_command(typed.get())
        measured, skipped = _measure_all(options, store)
        records: Any = store.frame(experiment="sensitivity")
        given = records[records["text"] == "given"] if len(records) else records
        _print(measured, skipped, write_tables(given, store.folder, "measure"), options)


def _print(
    texts: "list[MeasuredText]",
    skipped: "list[TextMatrix]",
    table: Path | None,
    options: MeasureOptions,
) -> None:
    if options.as_json:
        document = {
            "command": "measure",
            "version": __version__,
            "encoder": options.model_options["model"] if options.of_model else options.encoder,
            "layer": options.chosen_layer,
            "seed": options.seed,
            "device": options.device,
            "texts": [text.to_dict() for text in texts],
            "skipped": [text.source for text in skipped],
            "records": None if table is None else str(table),
        }
        print_json(document)
        return
    if options.texts is not None:
        from wordsens.sensitivity.measured import texts_view

        view = texts_view(texts, verbose=options.verbose)
    else:
        shown = {name: getattr(options, name) for name in ("all_words", "verbose", "conditions")}
        view = texts[0].view(**shown)
    print_view(view, stdout())
    if table is not None:
        stdout().print(
            f"\nrecords  {table}\nreport   wordsens report {options.out}", soft_wrap=True
        )


def _measure_all(
    options: MeasureOptions, store: "Store | None"
) -> "tuple[list[MeasuredText], list[TextMatrix]]":
    """The texts of two words or more under every map, and the others, which are left out."""
    from wordsens.models.embedding import embed
    from wordsens.sensitivity.measured import MeasuredText

    documents = _documents(options)
    if options.of_model:
        phi = build_map(
            options.map_names[0],
            1,
            1,
            seed=options.seed,
            device=options.device,
            **options.given_options,
        )
        matrices = phi.embed(documents, max_words=options.max_words)
    else:
        matrices = embed(
            documents,
            encoder=options.encoder,
            layer=options.chosen_layer,
            max_words=options.max_words,
            special_tokens=options.keep_special_tokens,
            device=options.device,
        )
    long_enough = [pair for pair in zip(documents, matrices, strict=True) if len(pair[1]) > 1]
    skipped = [text for text in matrices if len(text) == 1]
    if not long_enough and options.texts is None:
        raise InputError(
            "the text has one word; word sensitivity compares words, so give a text of two words "
            "or more"
        )
    if not long_enough:
        raise InputError(
            f"`texts` (={options.texts!r}) has no text of two words or more; give longer texts"
        )
    if skipped and not options.quiet:
        notice(f"{len(skipped)} of {len(matrices)} texts have one word only and are left out")
    count, names, measured = len(long_enough), options.map_names, []
    with reporting(count, "texts" if count > 1 else "search", quiet=options.quiet) as report:
        for document, text in long_enough:
            maps = []
            for name in names:

                def tell(
                    done: int,
                    total: int,
                    name: str = name,
                    text: Any = text,
                    before: int = len(maps),
                ) -> None:
                    now = f"{text.source if count > 1 else ''} {map_title(name)}".strip()
                    report.update(
                        len(measured) + (before + done / max(total, 1)) / len(names), now=now
                    )

                maps.append(_measured(name, document, text, options, store, tell))
            measured.append(MeasuredText(tuple(maps)))
        if count > 1:
            report.update(count, now="")
    return measured, skipped


def _documents(options: MeasureOptions) -> "list[Document]":
    from wordsens.text import Document, read_documents
    from wordsens.text.tables import file_text

    if options.text is not None:
        return [Document(options.text, source="the command line")]
    if options.file is not None:
        path = named_path("file", options.file, home=False)
        return [Document(file_text(path, options.encoding), source=path.name)]
    keys = {name: getattr(options, name) for name in ("text_column", "encoding", "limit")}
    return read_documents(str(options.texts), **keys, labels=False, skip_empty=True)


def _measured(
    name: str,
    document: "Document",
    text: "TextMatrix",
    options: MeasureOptions,
    store: "Store | None",
    progress: Callable[[int, int], None],
) -> "MeasuredMap":
    """One text under the map of that name: from the store where that has all that is wanted, else
    measured."""
    from wordsens.sensitivity.jacobian import jacobian_sensitivity
    from wordsens.sensitivity.measured import MeasuredMap
    from wordsens.sensitivity.one_word import word_sensitivity
    from wordsens.sensitivity.profile import profile_of
    from wordsens.sensitivity.several_texts import sampled_words
    from wordsens.theory import check_conditions, predict

    began, started = time.perf_counter(), datetime.now(UTC).isoformat(timespec="seconds")
    n, d = text.rows.shape
    phi = build_map(name, n, d, seed=options.seed, device=options.device, **options.given_options)
    words = options.word or sampled_words(phi, n, options.seed, options.sample)
    # Each entry of a vocabulary and each product with the Jacobian is a query, and a map that is
    # sampled on demand would remember them all.
    wants_swaps, wants_limit = (
        wanted and phi.affordable_words is None for wanted in (options.swaps, options.small_radius)
    )
    result, swaps, cell = None, None, None
    if store is not None:
        from wordsens.sweeps.measurement import saved_measurement

        cell = _cell(name, document, text, words, options)
        if (stored := saved_measurement(store, cell, phi, text)) is not None:
            result, record = stored
            if wants_swaps:
                swaps = (
                    None
                    if record["swap"] is None
                    else (record["swap"], tuple(json.loads(str(record["swapped_for"]))))
                )
                result = None if swaps is None else result
    if result is None:
        result = word_sensitivity(
            phi,
            text,
            words,
            options.radius,
            options.seed,
            search=options.search_plan,
            progress=progress,
        )
        swaps = _swaps(phi, text, result, options) if wants_swaps else None
        if store is not None and cell is not None:
            from wordsens.sweeps.measurement import save_measurement

            save_measurement(store, cell, started, phi, text, result, swaps=swaps)
    searched = result.words.tolist()
    limit = (
        jacobian_sensitivity(phi, text, searched, options.seed).per_word.tolist()
        if wants_limit
        else None
    )
    return MeasuredMap(
        text=text,
        result=result,
        seconds=time.perf_counter() - began,
        predicted=predict(phi, text, words=len(searched))
        if options.radius is None
        else None,  # of radius sqrt(d)
        conditions=check_conditions(phi, text),
        small_radius=None if limit is None else tuple(limit),
        swaps=swaps,
        profile=profile_of(phi, text, result) if options.profile else None,
    )


def _swaps(
    phi: "FeatureMap", text: "TextMatrix", result: "Sensitivity", options: MeasureOptions
) -> tuple[tuple[float, ...], tuple[str, ...]]:
    """The relative change by the best real word in the place of each searched word, and that
    word."""
    from wordsens.maps.transformer.features import TransformerFeatures, loaded_model
    from wordsens.sensitivity.replacements import best_swaps

    if isinstance(phi, TransformerFeatures):
        vocabulary = phi.vocabulary()
    else:
        encoder = loaded_model(options.encoder, device=options.device)
        vocabulary = encoder.vocabulary(special_tokens=options.keep_special_tokens, rescale=True)
    swaps = best_swaps(phi, text, result.words, options.seed, vocabulary=vocabulary)
    return tuple(swaps.per_word.tolist()), swaps.swapped_for


def _cell(
    name: str,
    document: "Document",
    text: "TextMatrix",
    words: list[int] | None,
    options: MeasureOptions,
) -> "SensitivityCell":
    """The cell of a sweep that is the measurement of the map of that name on a text, at these words
    or all."""
    from wordsens.sweeps.measurement import SensitivityCell

    entry, (n, d) = map_entry(name), text.rows.shape
    given: dict[str, Any] = {
        "kind": "given",
        "content": document.text,
        "source": text.source,
        "label": document.label,
    }
    if entry.family != TRAINED:
        given |= {
            "encoder": options.encoder,
            "layer": options.chosen_layer,
            "keep_special_tokens": options.keep_special_tokens,
        }
    keys = {
        name: getattr(options, name)
        for name in ("seed", "radius", "search", "starts", "steps", "device")
    }
    taken = {key: value for key, value in options.given_options.items() if key in entry.options}
    dtype = "float32" if entry.family == TRAINED else "float64"
    keys |= taken | {"map": name, "n": n, "d": d, "text": given, "dtype": dtype}
    return SensitivityCell.parse(keys | {"words": "all" if words is None else {"indices": words}})
