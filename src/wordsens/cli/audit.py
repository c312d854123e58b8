"""`wordsens audit`: its options, its work and its files."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import wordsens as ws
from wordsens.cli.command import (
    EFFORT,
    MODEL,
    TEXT,
    Answer,
    CommandRun,
    Html,
    Seed,
    Threads,
    command,
    cpu_threads,
    option,
    output_file,
    requirements_option,
    unmet,
)
from wordsens.cli.groups import ModelOptions, TextOptions, Texts, write_page
from wordsens.errors import InputError, require_choice

_OUTPUTS = ("embedding", "probabilities")


@command("audit", first=("texts", "limit", "pairs", "threshold", "requirements", "html"))
def audit(
    chosen: ModelOptions,
    texts: Texts = None,
    *,
    reading: TextOptions,
    max_words: Annotated[
        int,
        option("Cut longer texts after this many tokens, special ones not counted.", panel=TEXT),
    ] = 126,
    output: Annotated[
        str,
        option(
            "What is measured: embedding, or probabilities (those of a classifier).",
            panel=MODEL,
            rule=partial(require_choice, choices=_OUTPUTS),
        ),
    ] = "embedding",
    words_per_text: Annotated[
        int,
        option(
            "Words removed from each text: its negations first, others at random.", panel=EFFORT
        ),
    ] = 4,
    way: Annotated[
        str,
        option(
            "How a word is removed: delete it, or mask it (replace it by the mask token; the "
            "effect of that token is then part of the result).",
            "--removal",
        ),
    ] = "delete",
    pairs: Annotated[
        str | None,
        option(
            "Pairs for the advice on passage length: a file in the format of `check --pairs`. "
            "Default: pairs made from the negations in your own texts."
        ),
    ] = None,
    threshold: Annotated[
        float,
        option(
            "The cosine at or above which two texts count as the same, so that a change is lost."
        ),
    ] = 0.95,
    requirements: Annotated[
        list[str] | None, requirements_option("'negation.removal >= .05' or 'all.removal <= .5'")
    ] = None,
    out: Annotated[
        Path | None, option("Save the audit, for ws.Audit.load.", rule=output_file)
    ] = None,
    html: Html = None,
    seed: Seed = 0,
    threads: Threads = 1,
    run: CommandRun,
) -> Answer:
    """Find which kinds of words change a model's output most on your texts, and how long a passage
    can be before deleting a "not" hardly changes its embedding.

    A few words of each text are deleted, one at a time, negations first. Texts that are empty or
    have one word are left out, and the first line says so. Exit code 3 if a requirement fails.

    Example: wordsens audit minilm --texts reviews.parquet --limit 200 --html audit.html
    """
    from wordsens.findings.audit import page

    if output != _OUTPUTS[0] and chosen.model is None:
        raise InputError(
            "--output probabilities needs the model itself; a function or an endpoint gives "
            "vectors, and no more"
        )
    documents = reading.read(texts, run.notice, skip_empty=False)
    advised = None if pairs is None else ws.read_pairs(pairs, encoding=reading.encoding)
    with cpu_threads(threads), run.progress("of the audit") as progress:
        found = ws.audit(
            _loaded(chosen, output),
            documents,
            removal=way,
            words_per_text=words_per_text,
            max_words=max_words,
            pairs=advised,
            threshold=threshold,
            requirements=requirements or (),
            seed=seed,
            progress=progress,
        )
    if out is not None:
        found.save(out)
    view = found.view()
    write_page(html, "audit", f"Which words move {found.effects.model}?", page(found))
    document = {"seed": seed, **found.to_dict()}
    return Answer(document=document, view=view, error=unmet(found.failures))


def _loaded(chosen: ModelOptions, output: str) -> Any:
    """The model of vectors, or the classifier as a map to its probabilities."""
    from wordsens.evaluation.pairs import prompted
    from wordsens.maps.transformer.features import TransformerFeatures

    if output == _OUTPUTS[0]:
        return prompted(chosen.load(), chosen.prompt_names or ())
    phi = TransformerFeatures.from_pretrained(
        chosen.model,
        pool=chosen.pool,
        output=output,
        device=chosen.device,
        revision=chosen.revision,
    )
    last = chosen.pool is None and phi.causal
    return phi.at(pool="last", output=output) if last else phi
