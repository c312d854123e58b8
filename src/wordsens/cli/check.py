"""`wordsens check`: its options, its work and its files."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import wordsens as ws
from wordsens.cli.command import (
    GATE,
    Answer,
    CommandRun,
    Html,
    Junit,
    Seed,
    Threads,
    command,
    cpu_threads,
    option,
    output_file,
    requirements_option,
    unmet,
)
from wordsens.cli.groups import ModelOptions, TextOptions, write_junit, write_page
from wordsens.cli.terminal import stdout
from wordsens.display.markdown import markdown
from wordsens.display.terminal import print_view
from wordsens.display.view import View
from wordsens.errors import InputError
from wordsens.files import replace_file

if TYPE_CHECKING:
    from wordsens.text.pairs import Pair

_of_pairs, _more = partial(option, panel="Pairs"), partial(option, panel="More output")
_of_gate = partial(option, panel=GATE)

_SHOWN = 8
"""Near misses of a kind that are printed; --write-pairs writes all."""


@command("check", first=("threshold", "texts", "pairs", "guard", "requirements"))
def check(
    chosen: ModelOptions,
    pairs: Annotated[
        str | None,
        _of_pairs(
            "Your own pairs: CSV, TSV, JSON lines or Parquet with first, second, same (true or "
            "false), and kind if you like."
        ),
    ] = None,
    texts: Annotated[
        str | None,
        _of_pairs(
            "Make pairs with opposite meanings (enable/disable, not, numbers, order) from these "
            "English texts.",
            "--texts",
            "--from",
        ),
    ] = None,
    *,
    reading: TextOptions,
    write_pairs: Annotated[
        Path | None,
        _of_pairs(
            "Write the pairs to this file, to read, correct and give to --pairs.", rule=output_file
        ),
    ] = None,
    kinds: Annotated[
        list[str] | None, _of_pairs("Only this kind of opposite; may be repeated.", "--kind")
    ] = None,
    threshold: Annotated[
        float | None,
        option(
            "The cosine at or above which two texts count as the same; default: the threshold "
            "that accepts the share --keep of the near-duplicates."
        ),
    ] = None,
    keep: Annotated[float, option("The share of near-duplicates that the threshold keeps.")] = 0.9,
    all_pairs: Annotated[bool, _more("Print every pair, worst first.", "--all-pairs")] = False,
    verbose: Annotated[
        bool,
        _more(
            "Also show every kind of near-duplicate, and every pair behind a failed requirement.",
            "--verbose",
        ),
    ] = False,
    csv: Annotated[
        Path | None, _more("Write every pair with its cosine to a CSV file.", rule=output_file)
    ] = None,
    html: Html = None,
    guard: Annotated[
        bool,
        _more(
            "Also judge every pair with the guard, and give false hits and recall with it.",
            "--guard",
        ),
    ] = False,
    requirements: Annotated[
        list[str] | None,
        requirements_option(
            "'negation.false_hits <= .2', 'all.auc >= .4', 'recall >= .9', "
            "'false_hits <= .1' (all opposites) or 'guarded_false_hits <= .05' (with --guard)"
        ),
    ] = None,
    baseline: Annotated[
        str | None, _of_gate("Fail if an AUC has dropped significantly since this file was saved.")
    ] = None,
    save_baseline: Annotated[
        Path | None, _of_gate("Save the similarities, for --baseline.", rule=output_file)
    ] = None,
    allow_package_pairs: Annotated[
        bool,
        _of_gate(
            "If --pairs contains no near-duplicates, use the package's near-duplicates for the "
            "requirements that need them.",
            "--allow-package-pairs",
        ),
    ] = False,
    junit: Junit = None,
    markdown_file: Annotated[
        Path | None,
        _of_gate("Write the answer and the table as Markdown.", "--markdown", rule=output_file),
    ] = None,
    seed: Seed = 0,
    threads: Threads = 1,
    run: CommandRun,
) -> Answer:
    """Test whether a model notices that one word reverses the meaning of a text. A gate for CI:
    exit code 3 if a requirement fails.

    Pairs with opposite meanings (not, enable/disable, ...) are scored and compared with pairs of
    near-duplicates. The threshold keeps 90 % of the near-duplicates; false hits are the share of
    opposites that it accepts.

    Example: wordsens check minilm --threshold .92 --require 'entity.false_hits <= .6' --require
    'recall >= .6'
    """
    if pairs is not None and texts is not None:
        raise InputError(
            "--pairs and --texts exclude each other; write near misses with --write-pairs, and add "
            "yours"
        )
    from wordsens.evaluation.check import read_requirements, require_options
    from wordsens.evaluation.pairs import choose_pairs
    from wordsens.findings.check import cases

    require_options(threshold, keep, seed)
    given = None
    if pairs is not None:
        given = ws.read_pairs(pairs, encoding=reading.encoding)
    elif texts is not None:
        given = ws.near_misses(reading.read(texts, run.notice), seed=seed)
        if not run.as_json:
            print_view(_near_misses_view(given), stdout())
    known, _ = choose_pairs(given, kinds)
    if write_pairs is not None:
        written = known if texts is None else given or []
        ws.write_pairs(written, write_pairs)
        where = f"{len(written)} pairs are in {write_pairs}"
        run.notice(f"{where}; read and correct them, then give it to --pairs")
    read_requirements(requirements or (), known)  # refused before a model is loaded
    with cpu_threads(threads), run.progress("of the pairs") as progress:
        found = ws.check(
            chosen.load(),
            given,
            kinds,
            threshold=threshold,
            keep=keep,
            requirements=requirements or (),
            baseline=baseline,
            prompt_names=chosen.prompt_names or (),
            guard=guard,
            allow_package_pairs=allow_package_pairs,
            seed=seed,
            progress=progress,
        )
    if save_baseline is not None:
        found.save_baseline(save_baseline)
    write_junit(junit, "check", found.model, cases(found))
    if markdown_file is not None:
        verdict = f"**wordsens check: {'passed' if found.passed else 'FAILED'}**\n\n"
        gated = bool(found.requirements or found.drops)
        text = verdict * gated + markdown(found.view(pairs="none"))
        replace_file(markdown_file, text.encode())
    if csv is not None:
        import pandas as pd

        replace_file(csv, pd.DataFrame(found.all_pairs()).to_csv(index=False).encode())
    if html is not None:
        from wordsens.plotting.page import with_picture

        title = f"Does {found.model} tell opposites from near-duplicates?"
        page = with_picture(found.view(pairs="all", verbose=True), found.plot())
        write_page(html, "check", title, page)
    document = {
        "model": found.model,
        "identity": found.scored.identities[0],
        "keep": found.keep,
        "seed": seed,
        **found.to_dict(all_pairs=all_pairs),
        "guarded": None if found.scored.verdicts is None else found.guarded(),
    }
    view = found.view(pairs="all" if all_pairs else "none", verbose=verbose)
    return Answer(document=document, view=view, verbose=all_pairs, error=unmet(found.failures))


def _near_misses_view(pairs: "Sequence[Pair]") -> View:
    """The near misses of each kind: some of them, and how many there are."""
    sections = []
    for kind in dict.fromkeys(pair.kind for pair in pairs):
        of_kind = [pair for pair in pairs if pair.kind == kind]
        lines = [
            f"  {' / '.join(part or '-' for part in pair.changed)}: {pair.second}"
            for pair in of_kind[:_SHOWN]
        ]
        if len(of_kind) > _SHOWN:
            lines.append(
                f"  and {len(of_kind) - _SHOWN} more; --write-pairs FILE writes all of them"
            )
        made = f"{len(of_kind)} near miss{'es' * (len(of_kind) != 1)} made"
        sections.append(View(f"{kind}: {made}", tuple(lines)))
    return View("", (*sections, ""))
