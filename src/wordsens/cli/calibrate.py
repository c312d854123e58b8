"""`wordsens calibrate`: its options and its work."""

from functools import partial
from typing import Annotated

import wordsens as ws
from wordsens.cli.command import Answer, CommandRun, Html, Threads, command, cpu_threads, option
from wordsens.cli.groups import Encoding, ModelOptions, write_page
from wordsens.errors import InputError, RequirementError, require_choice


@command("calibrate", first=("pairs", "budget", "guard", "distance", "html"))
def calibrate(
    chosen: ModelOptions,
    pairs: Annotated[
        str | None,
        option(
            "Your pairs: CSV, TSV, JSON lines or Parquet with first, second, same (true or "
            "false), and kind if you like; default: the package's."
        ),
    ] = None,
    *,
    encoding: Encoding = "utf-8",
    budget: Annotated[float, option("The share of opposites that may pass as the same.")] = 0.02,
    confidence: Annotated[float, option("With which the budget holds.")] = 0.95,
    guard: Annotated[
        bool, option("A pair that the guard calls different does not pass.", "--guard")
    ] = False,
    distance: Annotated[
        str | None,
        option(
            "Also the threshold as the distance of a vector store: l2 (squared, 2 - 2c) or cosine "
            "(1 - c).",
            rule=partial(require_choice, choices=("l2", "cosine")),
        ),
    ] = None,
    html: Html = None,
    threads: Threads = 1,
    run: CommandRun,
) -> Answer:
    """Find the threshold that keeps a budget of false hits, and what it costs. Exit code 3 where
    there is none.

    The smallest similarity from which on, at 95 % confidence, at most the budget of opposites
    (enable/disable, another amount, ...) pass as the same, for pairs that are drawn like yours; and
    the share of near-duplicates that it keeps.

    Example: wordsens calibrate minilm --pairs pairs.csv --budget .02 --guard --distance cosine
    """
    scored = None if pairs is None else ws.read_pairs(pairs, encoding=encoding)
    with cpu_threads(threads), run.progress("of the pairs") as progress:
        found = ws.calibrate(
            chosen.load(),
            scored,
            budget,
            confidence=confidence,
            guard=guard,
            prompt_names=chosen.prompt_names or (),
            progress=progress,
        )
    if distance is not None and not found.scored.cosines:
        raise InputError(
            f"{found.model} gives no cosines, and its threshold is no distance; leave --distance "
            "out"
        )
    view = found.view(distance or "")
    if html is not None:
        from wordsens.plotting.page import with_picture

        title = f"A threshold of {found.model} for a budget of false hits"
        write_page(html, "calibrate", title, with_picture(view, found.plot()))
    document = {"model": found.model, "identity": found.scored.identities[0], **found.to_dict()}
    error = RequirementError(found.answer[0]) if found.threshold is None else None
    return Answer(document=document, view=view, error=error)
