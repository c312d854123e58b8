"""`wordsens check`: its arguments. The work is done in `run`, which loads torch."""

from typing import Annotated

import typer

from wordsens.cli.model_choice import Encode, EndpointModel, EndpointUrl, ModelRequest, Name, Pool, Revision
from wordsens.cli.options import AsJson, Device, Quiet, Seed, Threads
from wordsens.errors import InputError, require_choice, require_count

POOLS = ("own", "mean", "cls", "last", "max")
_PAIRS, _GATE, _MORE = "Pairs", "Gate", "Further answers"


def check(
    model: Name = None,
    encode: Encode = None,
    endpoint: EndpointUrl = None,
    endpoint_model: EndpointModel = None,
    revision: Revision = None,
    pool: Pool = None,
    pairs: Annotated[
        str | None,
        typer.Option(
            help="Your own pairs: CSV, TSV, JSON lines or Parquet with kind, first, second, same.",
            show_default=False,
            rich_help_panel=_PAIRS,
        ),
    ] = None,
    texts: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="Make near misses (enable/disable, not, numbers, order) from these English texts: a file, table or "
            "folder.",
            show_default=False,
            rich_help_panel=_PAIRS,
        ),
    ] = None,
    text_column: Annotated[
        str, typer.Option(help="The column of --from that holds the text.", rich_help_panel=_PAIRS)
    ] = "text",
    limit: Annotated[
        int | None, typer.Option(help="At most this many texts of --from.", rich_help_panel=_PAIRS)
    ] = None,
    write_pairs: Annotated[
        str | None,
        typer.Option(
            help="Write the pairs to this file, to read, mend and give to --pairs.",
            show_default=False,
            rich_help_panel=_PAIRS,
        ),
    ] = None,
    kinds: Annotated[
        list[str] | None,
        typer.Option("--kind", help="Only this kind of opposite; may be repeated.", rich_help_panel=_PAIRS),
    ] = None,
    budget: Annotated[
        float, typer.Option(help="The share of opposites that a threshold may let through, of each kind.")
    ] = 0.01,
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Your own threshold on the cosine: how many opposites pass it.",
            show_default=False,
            rich_help_panel=_MORE,
        ),
    ] = None,
    layers: Annotated[
        bool,
        typer.Option("--layers", help="Also compare layer by layer, before and after pooling.", rich_help_panel=_MORE),
    ] = False,
    requirements: Annotated[
        list[str] | None,
        typer.Option(
            "--require",
            help="Such as 'negation.auc >= .5' or 'all.recall >= .2'; may be repeated. Exit code 3 when one fails.",
            rich_help_panel=_GATE,
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            help="Fail on a significant drop of an AUC since this file was saved.",
            show_default=False,
            rich_help_panel=_GATE,
        ),
    ] = None,
    save_baseline: Annotated[
        str | None,
        typer.Option(help="Save what was measured, for --baseline.", show_default=False, rich_help_panel=_GATE),
    ] = None,
    junit: Annotated[
        str | None,
        typer.Option(help="Write the requirements as JUnit XML.", show_default=False, rich_help_panel=_GATE),
    ] = None,
    markdown: Annotated[
        str | None,
        typer.Option(help="Write the answer and the table as Markdown.", show_default=False, rich_help_panel=_GATE),
    ] = None,
    seed: Seed = 0,
    device: Device = "cpu",
    threads: Threads = 1,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Does a meaning that flips with one word show in a model's embeddings? A gate for CI: exit code 3 when it fails.

    Opposites (not, enable/disable, who did what to whom, amounts, order, names, may/must) are compared with
    paraphrases of few common words. AUC is the chance that an opposite is farther apart than a paraphrase: 1 is
    perfect, 0 hopeless.

    Example: wordsens check minilm --require 'negation.auc >= .5' --threshold .92
    """
    require_count("threads", threads)
    if pairs is not None and texts is not None:
        raise InputError("--pairs and --from exclude each other; write near misses with --write-pairs, and add yours")
    if limit is not None:
        require_count("limit", limit)
    if pool is not None:
        require_choice("pool", pool, POOLS)
    asked = ModelRequest(
        name=model,
        encode=encode,
        endpoint=endpoint,
        endpoint_model=endpoint_model,
        revision=revision,
        pool=pool,
        device=device,
    )

    from wordsens.cli.check.run import CheckRequest, run_check
    from wordsens.cli.cpu_threads import cpu_threads

    request = CheckRequest(
        model=asked,
        pairs=pairs,
        texts=texts,
        text_column=text_column,
        limit=limit,
        write_pairs=write_pairs,
        kinds=kinds,
        budget=budget,
        threshold=threshold,
        layers=layers,
        requirements=requirements or [],
        baseline=baseline,
        save_baseline=save_baseline,
        junit=junit,
        markdown=markdown,
        seed=seed,
        as_json=as_json,
        quiet=quiet,
    )
    with cpu_threads(threads):
        run_check(request)
