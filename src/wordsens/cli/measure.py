"""`wordsens measure`: the word sensitivity of a text, or of each text of a dataset, under chosen maps."""

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wordsens import __version__
from wordsens.cli.options import AsJson, Device, EncoderName, Quiet, Seed
from wordsens.cli.terminal import notice, reporting
from wordsens.errors import InputError, require_count, require_positive

if TYPE_CHECKING:
    from wordsens.sensitivity import Sensitivity
    from wordsens.text import Document
    from wordsens.text_matrix import TextMatrix


@dataclass(frozen=True)
class Measured:
    """One text with what every map gave on it."""

    text: "TextMatrix"
    results: "list[Sensitivity]"
    seconds: list[float]

    def to_dict(self) -> dict[str, Any]:
        return {
            "source": self.text.source,
            "label": self.text.label,
            "n": len(self.text),
            "d": self.text.rows.shape[1],
            "tokens": list(self.text.tokens or ()),
            "results": [
                {**result.to_dict(), "seconds": seconds}
                for result, seconds in zip(self.results, self.seconds, strict=True)
            ],
        }


def measure(
    text: Annotated[str | None, typer.Argument(help="The text itself, in quotes.", show_default=False)] = None,
    file: Annotated[str | None, typer.Option(help="A plain-text file with one text.")] = None,
    dataset: Annotated[
        str | None,
        typer.Option(help="Many texts: a file, Parquet or CSV table, folder, or 'imdb' of the hub."),
    ] = None,
    text_column: Annotated[str, typer.Option(help="The column of a table that holds the text.")] = "text",
    limit: Annotated[int | None, typer.Option(help="At most this many texts of a dataset.")] = None,
    maps: Annotated[
        str,
        typer.Option(
            "--map",
            help="Any of rf, drf, raf, relu-raf, relu-unnormalized-raf, sigmoid-raf, linear-raf; commas between.",
        ),
    ] = "rf,raf,relu-raf",
    encoder: EncoderName = "minilm",
    layer: Annotated[int, typer.Option(help="Layer of the encoder; 0 is the embedding layer's output.")] = 0,
    max_words: Annotated[int | None, typer.Option(help="Keep the first words of a longer text.")] = None,
    keep_special_tokens: Annotated[
        bool, typer.Option("--keep-special-tokens", help="Let [CLS] and [SEP] count as words.")
    ] = False,
    radius: Annotated[
        float | None, typer.Option(help="How far the word may move; default: sqrt(d).", show_default=False)
    ] = None,
    word: Annotated[
        list[int] | None, typer.Option(help="Search this word only, counted from 0; may be repeated.")
    ] = None,
    depth: Annotated[int, typer.Option(help="Layers of drf.")] = 4,
    width: Annotated[int | None, typer.Option(help="Features of rf and drf; default: n d.", show_default=False)] = None,
    activation: Annotated[
        str, typer.Option(help="Of rf and drf: relu, leaky_relu, identity, tanh, gelu or erf.")
    ] = "relu",
    temperature: Annotated[float, typer.Option(help="Divides the scores of the attention maps.")] = 1.0,
    starts: Annotated[
        int | None,
        typer.Option(help="Starting points of the search, a word; default: what suits the map.", show_default=False),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(help="Steps of the search, a start, at most; default: what suits the map.", show_default=False),
    ] = None,
    all_words: Annotated[bool, typer.Option("--all-words", help="Show every word, however long the text is.")] = False,
    seed: Seed = 0,
    device: Device = "cpu",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """How far one word can move what a map sees: S per word, with the most sensitive one marked.

    S = sup over the word i and ‖Delta‖ <= radius of ‖phi(X^i(Delta)) - phi(X)‖ / ‖phi(X)‖. The number is attained by a
    perturbation that was found: a lower bound of the sup.

    Example: wordsens measure "I love her much" --map rf,raf,relu-raf
    """
    _require_options(radius=radius, limit=limit, max_words=max_words, starts=starts, steps=steps)
    if sum(given is not None for given in (text, file, dataset)) != 1:
        raise InputError(
            'give exactly one of TEXT, --file and --dataset; for example: wordsens measure "I love her much"'
        )
    if dataset is None and (text_column != "text" or limit is not None):
        raise InputError("`--text-column` and `--limit` belong to --dataset; drop them, or name a dataset")

    from wordsens.experiments.map_choice import MapOptions, build_map, map_names
    from wordsens.sensitivity import word_sensitivity
    from wordsens.text import embed
    from wordsens.text.encoders import require_device

    names = map_names(maps)
    require_device(device)
    options = MapOptions(depth=depth, width=width, activation=activation, temperature=temperature)
    texts = embed(
        _documents(text, file, dataset, text_column=text_column, limit=limit),
        encoder=encoder,
        layer=layer,
        max_words=max_words,
        special_tokens=keep_special_tokens,
        device=device,
    )
    kept, skipped = _long_enough(texts, dataset)
    if skipped and not quiet:
        notice(f"{len(skipped)} of {len(texts)} texts have one word only and are left out")
    measured = []
    begin = time.monotonic()
    with reporting(len(kept), "texts", quiet=quiet or len(kept) == 1) as report:
        for done, one in enumerate(kept, start=1):
            results, seconds = [], []
            for name in names:
                started = time.perf_counter()
                n, d = one.rows.shape
                phi = build_map(name, n, d, options=options, seed=seed, device=device)
                results.append(
                    word_sensitivity(phi, one, words=word or None, radius=radius, seed=seed, starts=starts, steps=steps)
                )
                seconds.append(time.perf_counter() - started)
            measured.append(Measured(one, results, seconds))
            report.update(done, now=one.source, remaining=(time.monotonic() - begin) / done * (len(kept) - done))
    if as_json:
        _print_json(measured, skipped, encoder=encoder, layer=layer, seed=seed, device=device)
    else:
        from wordsens.cli.measure_tables import print_many, print_one

        if dataset is None:
            print_one(measured[0], all_words=all_words)
        else:
            print_many(measured)


def _require_options(
    *,
    radius: float | None,
    limit: int | None,
    max_words: int | None,
    starts: int | None,
    steps: int | None,
) -> None:
    """Refuse what can be refused before anything heavy is loaded."""
    if radius is not None:
        require_positive("radius", radius, remedy="leave it out for sqrt(d)")
    if limit is not None:
        require_count("limit", limit)
    if max_words is not None:
        require_count("max-words", max_words, least=2)
    if starts is not None:
        require_count("starts", starts)
    if steps is not None:
        require_count("steps", steps, least=0)


def _documents(
    text: str | None, file: str | None, dataset: str | None, *, text_column: str, limit: int | None
) -> "list[Document]":
    from wordsens.text import Document, read_documents
    from wordsens.text.plain_files import text_file_rows

    if text is not None:
        return [Document(text, source="the command line")]
    if file is not None:
        return [Document(str(row.text), source=row.where) for row in text_file_rows(Path(file), "utf-8")]
    assert dataset is not None
    return read_documents(dataset, text_column=text_column, labels=False, limit=limit, skip_empty=True)


def _long_enough(texts: "Sequence[TextMatrix]", dataset: str | None) -> "tuple[list[TextMatrix], list[TextMatrix]]":
    """The texts of two words or more, and the others; a single text goes on, so that the library explains its error."""
    kept = [text for text in texts if len(text) > 1]
    if dataset is None:
        return list(texts), []
    if not kept:
        raise InputError(f"`dataset` (={dataset!r}) has no text of two words or more; give longer texts")
    return kept, [text for text in texts if len(text) == 1]


def _print_json(
    measured: Sequence[Measured],
    skipped: "Sequence[TextMatrix]",
    *,
    encoder: str,
    layer: int,
    seed: int,
    device: str,
) -> None:
    document = {
        "command": "measure",
        "version": __version__,
        "encoder": encoder,
        "layer": layer,
        "seed": seed,
        "device": device,
        "texts": [one.to_dict() for one in measured],
        "skipped": [text.source for text in skipped],
    }
    json.dump(document, sys.stdout, ensure_ascii=False, allow_nan=False)
    sys.stdout.write("\n")
