"""`wordsens calibrate`: its options and its work."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import wordsens as ws
from wordsens.cli.command import (
    Answer,
    CommandRun,
    Html,
    Seed,
    Threads,
    command,
    cpu_threads,
    option,
    output_file,
)
from wordsens.cli.groups import ModelOptions, TextOptions, write_page
from wordsens.errors import InputError, RequirementError, require_choice
from wordsens.text.tables import table_rows, write_rows


@command("calibrate", first=("texts", "pairs", "budget", "guard", "distance"))
def calibrate(
    chosen: ModelOptions,
    pairs: Annotated[
        str | None,
        option(
            "Your pairs: CSV, TSV, JSON lines or Parquet with first, second, same (true or "
            "false), and kind if you like; default without --texts: the package's."
        ),
    ] = None,
    *,
    texts: Annotated[
        str | None,
        option(
            "Your questions without labels, no two of which share an answer: one per line of a "
            ".txt file or row of a table."
        ),
    ] = None,
    reading: TextOptions,
    write_pairs: Annotated[
        Path | None,
        option(
            "With --texts: write the pairs of --pairs to this file, followed by the twenty "
            "unlabelled pairs whose labels would be most informative. Fill in the column `same` "
            "and give the file to --pairs.",
            rule=output_file,
        ),
    ] = None,
    budget: Annotated[
        float,
        option(
            "The largest share of opposites that may be accepted as the same (--pairs), or of new "
            "questions that may get another question's answer (--texts)."
        ),
    ] = 0.02,
    confidence: Annotated[float, option("Confidence level of the guarantee.")] = 0.95,
    guard: Annotated[
        bool,
        option("A pair that the guard calls different does not pass; English only.", "--guard"),
    ] = False,
    distance: Annotated[
        str | None,
        option(
            "Also print the threshold as the distance that a vector store uses: l2 (squared, 2 - "
            "2c) or cosine (1 - c), where c is the cosine.",
            rule=partial(require_choice, choices=("l2", "cosine")),
        ),
    ] = None,
    html: Html = None,
    seed: Seed = 0,
    threads: Threads = 1,
    run: CommandRun,
) -> Answer:
    """Find the lowest threshold whose share of wrong answers stays within a budget. Exit code 3 if
    no threshold does.

    With --texts (no labels needed), one half of your questions fills a cache and the other half is
    looked up in it. At most the budgeted share of new questions gets the answer to another
    question.

    With --pairs (labelled), at most the budgeted share of opposites (enable/disable, another
    amount, ...) is accepted as the same. The result also gives the share of near-duplicates that
    the threshold accepts.

    Example: wordsens calibrate minilm --texts questions.csv --guard
    """
    if write_pairs is not None and texts is None:
        raise InputError("--write-pairs goes with --texts; leave it out")
    written = () if write_pairs is None or not write_pairs.exists() else table_rows(write_pairs)
    if any(row.get("same") for _, row in written):
        raise InputError(
            f"--write-pairs (={str(write_pairs)!r}) has labels, which would be lost; give another "
            "file"
        )
    options: dict[str, Any] = {
        "confidence": confidence,
        "guard": guard,
        "prompt_names": chosen.prompt_names or (),
    }
    labelled = None
    if pairs is not None:
        labelled = ws.read_pairs(pairs, encoding=reading.encoding, unlabelled=texts is None)
    if texts is not None:
        documents = reading.read(texts, run.notice, by_line=True)
        with cpu_threads(threads), run.progress("of the texts") as progress:
            found = ws.collisions(
                chosen.load(),
                documents,
                budget,
                pairs=labelled,
                seed=seed,
                progress=progress,
                **options,
            )
        cosines, identity = found.score == "cosine", found.identity
        if write_pairs is not None:
            known = [
                {"same": pair.same, "first": pair.first, "second": pair.second, **pair.columns}
                for pair in labelled or ()
            ]
            write_rows([*known, *found.to_label()], write_pairs, "write_pairs")
            run.notice(f"fill in the column same of {write_pairs}, and give it to --pairs")
    else:
        with cpu_threads(threads), run.progress("of the pairs") as progress:
            found = ws.calibrate(chosen.load(), labelled, budget, progress=progress, **options)
        cosines, identity = found.scored.cosines, found.scored.identities[0]
    if distance is not None and not cosines:
        raise InputError(
            f"{found.model} gives no cosines, and its threshold is no distance; leave --distance "
            "out"
        )
    view = found.view(distance or "")
    if html is not None:
        from wordsens.plotting.page import with_picture

        title = f"A threshold of {found.model} for a budget of wrong answers"
        write_page(html, "calibrate", title, with_picture(view, found.plot()))
    document = {"model": found.model, "identity": identity, **found.to_dict()}
    error = RequirementError(found.answer[0]) if found.threshold is None else None
    return Answer(document=document, view=view, error=error)
