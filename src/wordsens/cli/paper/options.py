"""The options of `wordsens paper`, each declared here and nowhere else. Loads no torch."""

from dataclasses import dataclass
from typing import Annotated

import typer

from wordsens.cli.executor_options import PlaceOptions, Witnesses
from wordsens.cli.options import Device, EncoderName, Seed
from wordsens.errors import InputError, require_choice, require_count
from wordsens.search.plan import EFFORTS

SCALE_NAMES = ("quick", "laptop", "full")
FIGURE_NAMES = (
    "sensitivity", "generalization", "attention", "departures", "correlations", "several-words", "similarity",
    "control",
)  # fmt: skip
OF_ALL = FIGURE_NAMES[:-1]
"""The figures of `all`: those that train networks take a minute more, and are asked for by name."""
DEFAULT_FIGURES = ("sensitivity",)
ALL = "all"
MEAN = "mean"
LABEL_NAMES = ("sentiment", "linear", "random")


@dataclass(frozen=True, kw_only=True)
class PaperOptions(PlaceOptions):
    """The options of `wordsens paper`."""

    figures: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FIGURE",
            help="sensitivity: S against n for random, deep random and attention features (the default). "
            "generalization: does a model that just learned a text notice one changed word? "
            "attention [FIRST SECOND]: the attention of two texts that differ in a word. "
            "departures: as published against as defined, switch by switch. "
            "correlations: S against the words' mean cosine. "
            "several-words: from how many words on a map notices. "
            "similarity: is a flipped meaning less alike than a synonym? "
            "control: small networks trained with their sensitivity held up or down (not part of all). "
            "all: every figure, and the report.",
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
    model: Annotated[
        str,
        typer.Option(help="minilm, a folder, or a name on the Hugging Face hub.", rich_help_panel="Of attention"),
    ] = "minilm"
    layer: Annotated[int, typer.Option(help="1 to the last, -1.", rich_help_panel="Of attention")] = 1
    head: Annotated[str, typer.Option(help="0, 1, ..., or mean over the heads.", rich_help_panel="Of attention")] = MEAN
    prompt: Annotated[
        list[str] | None,
        typer.Option(
            help="Given twice: prompts for a causal language model; default: a pair of our own.",
            show_default=False,
            rich_help_panel="Of attention",
        ),
    ] = None
    answer: Annotated[
        list[str] | None,
        typer.Option(
            help="Whose probability behind each prompt is shown; may be repeated; default: positive and negative.",
            show_default=False,
            rich_help_panel="Of attention",
        ),
    ] = None
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
        of_attention = {"model": "minilm", "layer": 1, "head": MEAN, "prompt": None, "answer": None}
        for name, usual in of_attention.items():
            if "attention" not in self.names and getattr(self, name) != usual:
                raise InputError(
                    f"`{name}` (={getattr(self, name)!r}) is an option of attention; draw that, or drop it"
                )
        if self.prompt is not None and len(self.prompt) != 2:
            raise InputError(f"`prompt` is given {len(self.prompt)} times; give two prompts that differ in a word")
        _ = self.one_head, self.pair

    @property
    def names(self) -> list[str]:
        """The figures, each once."""
        given = self._split[0] or DEFAULT_FIGURES
        found = [require_choice("figure", one, (*FIGURE_NAMES, ALL)) for one in given]
        return (
            list(dict.fromkeys([*OF_ALL, *(one for one in found if one != ALL)]))
            if ALL in found
            else list(dict.fromkeys(found))
        )

    @property
    def everything(self) -> bool:
        """True where every figure is wanted, and the report."""
        return ALL in self._split[0]

    @property
    def pair(self) -> tuple[str, str] | None:
        """The texts behind `attention`; None for our own."""
        texts = self._split[1]
        if texts and len(texts) != 2:
            raise InputError(
                f"`attention` is followed by {len(texts)} text{'' if len(texts) == 1 else 's'} ({', '.join(texts)}); "
                "give two texts in quotes that differ in a word, or none"
            )
        return (texts[0], texts[1]) if texts else None

    @property
    def one_head(self) -> int | None:
        """The head; None for the mean over the heads."""
        if self.head == MEAN:
            return None
        if not self.head.isdecimal():
            raise InputError(f"`head` (={self.head!r}) must be 0, 1, ..., or mean")
        return int(self.head)

    @property
    def _split(self) -> tuple[list[str], list[str]]:
        """The names of figures, and the texts that stand behind `attention`."""
        given = list(self.figures or ())
        if "attention" not in given:
            return given, []
        at = given.index("attention") + 1
        return given[:at], given[at:]
