"""The options of `wordsens paper`, each declared here and nowhere else. Loads no torch."""

from dataclasses import dataclass
from typing import Annotated

import typer

from wordsens.cli.executor_options import PlaceOptions, Witnesses
from wordsens.cli.options import Device, EncoderName, Seed
from wordsens.errors import InputError, require_choice, require_count
from wordsens.search.plan import EFFORTS

SCALE_NAMES = ("quick", "laptop", "full")
FIGURE_NAMES = ("sensitivity", "generalization")
DEFAULT_FIGURES = ("sensitivity",)
LABEL_NAMES = ("sentiment", "linear", "random")


@dataclass(frozen=True, kw_only=True)
class PaperOptions(PlaceOptions):
    """The options of `wordsens paper`."""

    figures: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FIGURE",
            help="sensitivity: S against n for random, deep random and attention features (the default). "
            "generalization: does a model that just learned a text notice one changed word?",
            show_default=False,
        ),
    ] = None
    scale: Annotated[
        str,
        typer.Option(help="quick: about 3 minutes on two cores; laptop: hours at most; full: the paper's sizes."),
    ] = "quick"
    search: Annotated[
        str | None,
        typer.Option(
            help="What each search spends: quick, normal or thorough; default: what the scale says.",
            show_default=False,
        ),
    ] = None
    data: Annotated[
        str | None,
        typer.Option(
            help="Real texts: a file, table, folder, or 'imdb' of the hub; default: the shipped reviews.",
            show_default=False,
            rich_help_panel="Text",
        ),
    ] = None
    text_column: Annotated[
        str, typer.Option(help="The column of --data that holds the text.", rich_help_panel="Text")
    ] = "text"
    label_column: Annotated[
        str | None,
        typer.Option(
            help="The column of --data that holds the label; default: label.",
            show_default=False,
            rich_help_panel="Text",
        ),
    ] = None
    split: Annotated[
        str | None,
        typer.Option(help="Of --data; default: its training texts.", show_default=False, rich_help_panel="Text"),
    ] = None
    limit: Annotated[
        int | None,
        typer.Option(help="At most this many texts of --data.", show_default=False, rich_help_panel="Text"),
    ] = None
    labels: Annotated[
        str,
        typer.Option(
            help="Of generalization on --data: sentiment (the texts' own), linear (the sign of a linear function) or "
            "random.",
            rich_help_panel="Text",
        ),
    ] = LABEL_NAMES[0]
    out: Annotated[str, typer.Option(help="The folder for records and figures.")] = "paper"
    style: Annotated[
        str | None,
        typer.Option(
            help="A .mplstyle file for the figures in place of ours, or a name that matplotlib knows.",
            show_default=False,
        ),
    ] = None
    encoder: EncoderName = "minilm"
    seed: Seed = 0
    device: Device = "cpu"
    witnesses: Witnesses = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice("scale", self.scale, SCALE_NAMES)
        if self.search is not None:
            require_choice("search", self.search, EFFORTS)
        require_choice("labels", self.labels, LABEL_NAMES)
        if self.limit is not None:
            require_count("limit", self.limit)
        of_data = {"text_column": "text", "label_column": None, "split": None, "limit": None, "labels": LABEL_NAMES[0]}
        for name, usual in of_data.items():
            if self.data is None and getattr(self, name) != usual:
                raise InputError(
                    f"`{name}` (={getattr(self, name)!r}) is for the texts of --data; name them, or drop it"
                )
        if self.as_json and len(self.names) > 1:
            raise InputError(
                f"`figure` names {' and '.join(self.names)}, but --json prints one document; name one figure"
            )

    @property
    def names(self) -> list[str]:
        """The figures, each once."""
        return list(
            dict.fromkeys(require_choice("figure", one, FIGURE_NAMES) for one in self.figures or DEFAULT_FIGURES)
        )
