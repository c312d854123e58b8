"""The options of `wordsens explain`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from wordsens.cli.model_choice import ModelOptions
from wordsens.cli.options import AsJson, Quiet, Seed, Threads
from wordsens.errors import InputError, require_count


@dataclass(frozen=True, kw_only=True)
class ExplainRequest(ModelOptions):
    """The options of `wordsens explain`. With --encode or --endpoint there is no MODEL: the first argument is TEXT."""

    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT [OTHER]", help="The text, and one that it is compared with.", show_default=False),
    ] = None
    classes: Annotated[
        bool, typer.Option("--classes", help="Explain the probability of a class: the model is a classifier.")
    ] = False
    target: Annotated[
        int | None, typer.Option("--class", help="Which class, from 0; default: the likeliest.", show_default=False)
    ] = None
    tries: Annotated[int, typer.Option(help="Other words tried in the place of each; 0: none.")] = 2
    vectors: Annotated[bool, typer.Option(help="Also move every word as a vector, where the model has gradients.")] = (
        True
    )
    html: Annotated[str | None, typer.Option(help="Write the explanation to an HTML file.", show_default=False)] = None
    seed: Seed = 0
    threads: Threads = 1
    as_json: AsJson = False
    quiet: Quiet = False

    def __post_init__(self) -> None:
        given = list(self.texts or [])
        if self.model is not None and (self.encode is not None or self.endpoint is not None):
            given.insert(0, self.model)
            object.__setattr__(self, "model", None)
        object.__setattr__(self, "texts", given)
        super().__post_init__()
        if len(given) not in (1, 2):
            raise InputError(f"give one text or two, in quotes; got {len(given)}")
        if self.classes and (self.model is None or len(given) == 2):
            raise InputError("--classes goes with the name or folder of a classifier and one text")
        if self.target is not None and not self.classes:
            raise InputError("--class goes with --classes; leave it out")
        require_count("tries", self.tries, least=0)
        require_count("threads", self.threads)
        folder = None if self.html is None else Path(self.html).expanduser()
        if folder is not None and (not folder.parent.is_dir() or folder.is_dir()):
            raise InputError(f"`html` (={self.html!r}) must be a file in a folder that exists")
