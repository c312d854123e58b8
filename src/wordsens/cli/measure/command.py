"""`wordsens measure`: its arguments. The work is done in `measure_run`, which loads torch."""

from typing import Annotated

import typer

from wordsens.cli.options import AsJson, Device, EncoderName, Quiet, Seed, Threads
from wordsens.errors import InputError, require_count, require_positive


def measure(
    text: Annotated[str | None, typer.Argument(help="The text itself, in quotes.", show_default=False)] = None,
    file: Annotated[str | None, typer.Option(help="A plain-text file with one text.", rich_help_panel="Text")] = None,
    dataset: Annotated[
        str | None,
        typer.Option(
            help="Many texts: a file, Parquet or CSV table, folder, or 'imdb' of the hub.", rich_help_panel="Text"
        ),
    ] = None,
    text_column: Annotated[
        str, typer.Option(help="The column of a table that holds the text.", rich_help_panel="Text")
    ] = "text",
    encoding: Annotated[str, typer.Option(help="Of plain-text files.", rich_help_panel="Text")] = "utf-8",
    limit: Annotated[
        int | None, typer.Option(help="At most this many texts of a dataset.", rich_help_panel="Text")
    ] = None,
    maps: Annotated[
        str,
        typer.Option(
            "--map",
            help="Any of rf, drf, raf, relu-raf, relu-unnormalized-raf, sigmoid-raf, linear-raf; commas between.",
            rich_help_panel="Maps",
        ),
    ] = "rf,raf,relu-raf",
    encoder: EncoderName = "minilm",
    layer: Annotated[
        int, typer.Option(help="Layer of the encoder; 0 is the embedding layer's output.", rich_help_panel="Text")
    ] = 0,
    max_words: Annotated[
        int | None, typer.Option(help="Keep the first words of a longer text.", rich_help_panel="Text")
    ] = None,
    keep_special_tokens: Annotated[
        bool, typer.Option("--keep-special-tokens", help="Let [CLS] and [SEP] count as words.", rich_help_panel="Text")
    ] = False,
    radius: Annotated[
        float | None,
        typer.Option(help="How far the word may move; default: sqrt(d).", show_default=False, rich_help_panel="Search"),
    ] = None,
    word: Annotated[
        list[int] | None,
        typer.Option(help="Search this word only, counted from 0; may be repeated.", rich_help_panel="Search"),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(
            help="Search a random sample of so many words; default: all, but 16 for rf and 16 / depth for drf on texts "
            "whose matrices are too large to build.",
            show_default=False,
            rich_help_panel="Search",
        ),
    ] = None,
    depth: Annotated[int, typer.Option(help="Layers of drf.", rich_help_panel="Maps")] = 4,
    width: Annotated[
        int | None,
        typer.Option(help="Features of rf and drf; default: n d.", show_default=False, rich_help_panel="Maps"),
    ] = None,
    activation: Annotated[
        str, typer.Option(help="Of rf and drf: relu, leaky_relu, identity, tanh, gelu or erf.", rich_help_panel="Maps")
    ] = "relu",
    temperature: Annotated[
        float, typer.Option(help="Divides the scores of the attention maps.", rich_help_panel="Maps")
    ] = 1.0,
    starts: Annotated[
        int | None,
        typer.Option(
            help="Starting points of the search, a word; default: what suits the map.",
            show_default=False,
            rich_help_panel="Search",
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            help="Steps of the search, a start, at most; default: what suits the map.",
            show_default=False,
            rich_help_panel="Search",
        ),
    ] = None,
    all_words: Annotated[bool, typer.Option("--all-words", help="Show every word, however long the text is.")] = False,
    small_radius: Annotated[
        bool,
        typer.Option(
            "--small-radius",
            help="Also the limit of S / radius as the radius shrinks: the Jacobian's largest singular value.",
            rich_help_panel="Theory",
        ),
    ] = False,
    conditions: Annotated[
        bool,
        typer.Option(
            "--conditions",
            help="Also which conditions of the paper's theorems the text and the maps meet, in words.",
            rich_help_panel="Theory",
        ),
    ] = False,
    seed: Seed = 0,
    device: Device = "cpu",
    threads: Threads = 1,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """How far one word can move what a map sees: S per word, with the most sensitive one marked.

    S = sup over the word i and ‖Delta‖ <= radius of ‖phi(X^i(Delta)) - phi(X)‖ / ‖phi(X)‖.

    Each number is attained by a perturbation that was found: a lower bound of the sup.

    Example: wordsens measure "I love her much" --map rf,raf,relu-raf
    """
    require_count("threads", threads)
    _require_options(radius=radius, limit=limit, max_words=max_words, sample=sample, starts=starts, steps=steps)
    if sum(given is not None for given in (text, file, dataset)) != 1:
        raise InputError(
            'give exactly one of TEXT, --file and --dataset; for example: wordsens measure "I love her much"'
        )
    if word and sample is not None:
        raise InputError("`--word` and `--sample` both choose the words; give one of them")
    if dataset is None and (text_column != "text" or limit is not None):
        raise InputError("`--text-column` and `--limit` belong to --dataset; drop them, or name a dataset")

    from wordsens.cli.cpu_threads import cpu_threads
    from wordsens.cli.measure.run import MeasureRequest, run_measure

    request = MeasureRequest(
        text=text,
        file=file,
        dataset=dataset,
        text_column=text_column,
        encoding=encoding,
        limit=limit,
        maps=maps,
        encoder=encoder,
        layer=layer,
        max_words=max_words,
        keep_special_tokens=keep_special_tokens,
        radius=radius,
        words=tuple(word or ()),
        sample=sample,
        depth=depth,
        width=width,
        activation=activation,
        temperature=temperature,
        starts=starts,
        steps=steps,
        small_radius=small_radius,
        seed=seed,
        device=device,
    )
    with cpu_threads(threads):
        run_measure(request, all_words=all_words, conditions=conditions, as_json=as_json, quiet=quiet)


def _require_options(
    *,
    radius: float | None,
    limit: int | None,
    max_words: int | None,
    sample: int | None,
    starts: int | None,
    steps: int | None,
) -> None:
    """Refuse what can be refused before anything heavy is loaded."""
    if radius is not None:
        require_positive("radius", radius, remedy="leave it out for sqrt(d)")
    if limit is not None:
        require_count("limit", limit)
    if max_words is not None:
        require_count("max_words", max_words, least=2)
    if sample is not None:
        require_count("sample", sample)
    if starts is not None:
        require_count("starts", starts)
    if steps is not None:
        require_count("steps", steps, least=0)
