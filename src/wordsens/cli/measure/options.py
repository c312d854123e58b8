"""The options of `wordsens measure`, each declared here and nowhere else. Loads no torch."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from wordsens.cli.options import AsJson, Device, EncoderName, Quiet, Seed, Threads, map_option
from wordsens.errors import InputError, require_choice, require_count, require_positive
from wordsens.maps.registry import DEFAULTS, MAP_NAMES, MODEL, checked_options, map_names
from wordsens.search.plan import EFFORTS, SearchPlan

DEFAULT_MAPS = "rf,raf,relu-raf"


@dataclass(frozen=True, kw_only=True)
class MeasureOptions:
    """The options of `wordsens measure`."""

    text: Annotated[str | None, typer.Argument(help="The text itself, in quotes.", show_default=False)] = None
    file: Annotated[str | None, typer.Option(help="A plain-text file with one text.", rich_help_panel="Text")] = None
    texts: Annotated[
        str | None,
        typer.Option(
            help="Many texts: a file, Parquet or CSV table, folder, or 'imdb' of the hub.", rich_help_panel="Text"
        ),
    ] = None
    text_column: Annotated[
        str, typer.Option(help="The column of a table that holds the text.", rich_help_panel="Text")
    ] = "text"
    encoding: Annotated[str, typer.Option(help="Of plain-text files.", rich_help_panel="Text")] = "utf-8"
    limit: Annotated[int | None, typer.Option(help="At most this many of --texts.", rich_help_panel="Text")] = None
    encoder: EncoderName = "minilm"
    layer: Annotated[
        int | None,
        typer.Option(
            help="Layer of the encoder (default: 0, the embedding layer's output) or of --map model (default: -1).",
            show_default=False,
            rich_help_panel="Text",
        ),
    ] = None
    max_words: Annotated[
        int | None, typer.Option(help="Keep the first words of a longer text.", rich_help_panel="Text")
    ] = None
    keep_special_tokens: Annotated[
        bool, typer.Option("--keep-special-tokens", help="Let [CLS] and [SEP] count as words.", rich_help_panel="Text")
    ] = False
    maps: Annotated[
        str,
        typer.Option(
            "--map",
            help=f"Any of {', '.join(MAP_NAMES)}, commas between; raf(heads=4) sets a parameter; module:Name is "
            "a map of your own.",
            rich_help_panel="Maps",
        ),
    ] = DEFAULT_MAPS
    depth: Annotated[int, map_option("depth")] = DEFAULTS["depth"]
    width: Annotated[int | None, map_option("width")] = DEFAULTS["width"]
    activation: Annotated[str, map_option("activation")] = DEFAULTS["activation"]
    temperature: Annotated[float, map_option("temperature")] = DEFAULTS["temperature"]
    model: Annotated[str, map_option("model")] = DEFAULTS["model"]
    pool: Annotated[str | None, map_option("pool")] = DEFAULTS["pool"]
    radius: Annotated[
        float | None,
        typer.Option(
            help="How far the word may move; default: sqrt(d), of --map model the word's own length.",
            show_default=False,
            rich_help_panel="Search",
        ),
    ] = None
    word: Annotated[
        list[int] | None,
        typer.Option(help="Search this word only, counted from 0; may be repeated.", rich_help_panel="Search"),
    ] = None
    sample: Annotated[
        int | None,
        typer.Option(
            help="Search a random sample of so many words; default: all, but 16 for rf and 16 / depth for drf on texts "
            "whose matrices are too large to build.",
            show_default=False,
            rich_help_panel="Search",
        ),
    ] = None
    search: Annotated[
        str,
        typer.Option(help="What the search spends: quick, normal or thorough.", rich_help_panel="Search"),
    ] = "normal"
    starts: Annotated[
        int | None,
        typer.Option(
            help="Starting points of the search, a word; default: what suits the map.",
            show_default=False,
            rich_help_panel="Search",
        ),
    ] = None
    steps: Annotated[
        int | None,
        typer.Option(
            help="Steps of the search, a start, at most; default: what suits the map.",
            show_default=False,
            rich_help_panel="Search",
        ),
    ] = None
    all_words: Annotated[bool, typer.Option("--all-words", help="Show every word, however long the text is.")] = False
    verbose: Annotated[
        bool,
        typer.Option("--verbose", "-v", help="Also each word's upper bound, the cost, and what all numbers mean."),
    ] = False
    small_radius: Annotated[
        bool,
        typer.Option(
            "--small-radius",
            help="Also the limit of S / radius as the radius shrinks: the Jacobian's largest singular value.",
            rich_help_panel="Theory",
        ),
    ] = False
    conditions: Annotated[
        bool,
        typer.Option(
            "--conditions",
            help="Also which conditions of the paper's theorems the text and the maps meet, in words.",
            rich_help_panel="Theory",
        ),
    ] = False
    swaps: Annotated[
        bool,
        typer.Option(
            "--swaps",
            help="Also the real word that moves the map most in the place of each searched word, of the encoder's "
            "vocabulary.",
            rich_help_panel="Search",
        ),
    ] = False
    out: Annotated[
        str | None,
        typer.Option(
            help="Keep a record of every text and map in this folder, for `wordsens report`; what is there is not "
            "measured again.",
            show_default=False,
        ),
    ] = None
    seed: Seed = 0
    device: Device = "cpu"
    threads: Threads = 1
    as_json: AsJson = False
    quiet: Quiet = False

    def __post_init__(self) -> None:
        require_count("threads", self.threads)
        if self.radius is not None:
            require_positive("radius", self.radius, remedy="leave it out for the map's default")
        require_choice("search", self.search, EFFORTS)
        for name, least in (("limit", 1), ("max_words", 2), ("sample", 1), ("starts", 1), ("steps", 0)):
            if (value := getattr(self, name)) is not None:
                require_count(name, value, least=least)
        if sum(given is not None for given in (self.text, self.file, self.texts)) != 1:
            raise InputError(
                'give exactly one of TEXT, --file and --texts; for example: wordsens measure "I love her much"'
            )
        if self.word and self.sample is not None:
            raise InputError("`--word` and `--sample` both choose the words; give one of them")
        if self.texts is None and (self.text_column != "text" or self.limit is not None):
            raise InputError("`--text-column` and `--limit` belong to --texts; drop them, or name a file of texts")
        if MODEL in self.map_names and len(self.map_names) > 1:
            raise InputError(
                "`--map` names model beside other maps, but a transformer has rows of its own; measure it alone"
            )
        if self.swaps and not self.of_model and self.chosen_layer:
            raise InputError(
                f"`--swaps` needs the encoder's layer 0, where a word has the same row whatever stands around it, but "
                f"--layer is {self.chosen_layer}; drop one of them"
            )
        _ = self.map_options

    @property
    def search_plan(self) -> SearchPlan:
        """The plan of every search."""
        return SearchPlan(self.search, starts=self.starts, steps=self.steps)

    @property
    def map_names(self) -> list[str]:
        """The maps, each once."""
        return map_names(self.maps)

    @property
    def of_model(self) -> bool:
        """True where a transformer is measured, which makes the rows of the texts itself."""
        return self.map_names == [MODEL]

    @property
    def chosen_layer(self) -> int:
        """Of the encoder, or of the transformer."""
        usual = DEFAULTS["model_layer"] if self.of_model else 0
        return usual if self.layer is None else self.layer

    @property
    def map_options(self) -> dict[str, Any]:
        """The options of the maps."""
        own = {"model_layer": self.chosen_layer} if self.of_model else {}
        names = ("depth", "width", "activation", "temperature", "model", "pool")
        return checked_options(**own, **{name: getattr(self, name) for name in names})
