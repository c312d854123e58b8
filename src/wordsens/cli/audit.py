"""`wordsens audit`: its options, its work and its files."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from wordsens.cli.model_choice import (
    EFFORT,
    MODEL,
    TEXT,
    CommandOptions,
    Html,
    ModelOptions,
    TextOptions,
    require_met,
    requirements_option,
    unset,
    write_page,
)
from wordsens.cli.options import takes
from wordsens.cli.terminal import notice, reporting
from wordsens.errors import InputError, require_choice

_OUTPUTS = ("embedding", "probabilities")


@dataclass(frozen=True, kw_only=True)
class AuditOptions(ModelOptions, TextOptions, CommandOptions):
    """The options of `wordsens audit`."""

    max_words: Annotated[
        int,
        typer.Option(
            help="Tokens that a longer text keeps, special ones not counted.", rich_help_panel=TEXT
        ),
    ] = 126
    output: Annotated[
        str,
        typer.Option(
            help="What is watched: embedding, or a classifier's probabilities.",
            rich_help_panel=MODEL,
        ),
    ] = "embedding"
    words_per_text: Annotated[
        int,
        typer.Option(
            help="Words removed from each text: its negations first, others at random.",
            rich_help_panel=EFFORT,
        ),
    ] = 4
    removal: Annotated[
        str,
        typer.Option(
            help="How a word is removed: delete, or mask, which measures the mask token too."
        ),
    ] = "delete"
    pairs: Annotated[
        str | None,
        unset(
            "Pairs for the advice on length, a file as of `check --pairs`; default: negations in "
            "your own texts."
        ),
    ] = None
    threshold: Annotated[
        float,
        typer.Option(
            help="The cosine at or above which two texts count as the same, so that a change is "
            "lost."
        ),
    ] = 0.95
    requirements: Annotated[
        list[str] | None, requirements_option("'negation.removal >= .05' or 'all.removal <= .5'")
    ] = None
    out: Annotated[str | None, unset("Save the audit, for ws.Audit.load.")] = None
    html: Html = None

    def __post_init__(self) -> None:
        ModelOptions.__post_init__(self)
        CommandOptions.__post_init__(self)
        self.require_texts()
        require_choice("output", self.output, _OUTPUTS)
        if self.output != _OUTPUTS[0] and self.model is None:
            raise InputError(
                "--output probabilities needs the model itself; a function or an endpoint gives "
                "vectors, and no more"
            )
        self.require_files("out", "html")


@takes(AuditOptions, first=("texts", "limit", "pairs", "threshold", "requirements", "html"))
def audit(options: AuditOptions) -> None:
    """Find which kinds of words move a model on your texts, and how long a passage may be before a
    "not" is lost.

    In each text a few words are removed, one by one, negations first. Texts that are empty or have
    one word are left out, and the first line says so. Exit code 3 when a requirement fails.

    Example: wordsens audit minilm --texts reviews.parquet --limit 200 --html audit.html
    """
    from wordsens.evaluation.audit import audit
    from wordsens.text.pairs import read_pairs
    from wordsens.text.readers import read_documents

    for message in () if options.quiet else options.notices():
        notice(message)
    documents = read_documents(str(options.texts), limit=options.limit, **options.reading())
    pairs = None if options.pairs is None else read_pairs(options.pairs, encoding=options.encoding)
    with reporting(1, "of the audit", quiet=options.quiet) as report:
        found = audit(
            _loaded(options),
            documents,
            removal=options.removal,
            words_per_text=options.words_per_text,
            max_words=options.max_words,
            pairs=pairs,
            threshold=options.threshold,
            requirements=options.requirements or (),
            seed=options.seed,
            progress=lambda done, total: report.update(done / total, now=""),
        )
    if options.out is not None:
        found.save(Path(options.out).expanduser())
    if options.html is not None:
        title = f"Which words move {found.effects.model}?"
        write_page(options.html, "audit", title, found.view())
    options.print("audit", {"seed": options.seed, **found.to_dict()}, found.view())
    require_met(found.failures)


def _loaded(options: AuditOptions) -> Any:
    """The model of vectors, or the classifier as a map to its probabilities."""
    from wordsens.evaluation.pairs import prompted
    from wordsens.maps.transformer.features import TransformerFeatures

    if options.output == _OUTPUTS[0]:
        return prompted(options.load(), options.prompt_names or ())
    phi = TransformerFeatures.from_pretrained(
        options.model,
        pool=options.pool,
        output=options.output,
        device=options.device,
        revision=options.revision,
    )
    last = options.pool is None and phi.causal
    return phi.at(pool="last", output=options.output) if last else phi
