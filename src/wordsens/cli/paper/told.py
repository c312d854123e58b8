"""Experiments of `wordsens paper` whose kind of cell has a summary: they differ in their preset and figures alone."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.text import Text

from wordsens.cli.paper.run import Experiment, save_figure, source_of
from wordsens.cli.terminal import stdout, table
from wordsens.experiments.kinds import kind_named
from wordsens.experiments.summary import Summary
from wordsens.figures.panels import FigureData
from wordsens.figures.still import still_figure
from wordsens.figures.style_file import in_style

_WORDS = ("texts", "protocol", "task", "control", "weights")
"""Columns of words; the others are numbers."""


def told_experiment(
    name: str, preset: Callable[..., Any], figures: Mapping[str, Callable[[Sequence[Any]], FigureData | None]]
) -> Experiment:
    """The experiment of that kind of cell.

    Args:
        name: of the kind.
        preset: function of (scale, source, seed, labels, search) that gives the sweep.
        figures: for each name of a file, a function of the finished records that gives the figure's data.
    """
    summarise = kind_named(name).summarise
    assert summarise is not None, "these kinds have a summary"

    def draw(records: Sequence[Any], folder: Path, style: str | None) -> list[Path]:
        written: list[Path] = []
        for file, make in figures.items():
            if (data := make(records)) is not None:
                with in_style(style):
                    written += save_figure(still_figure(data), folder, file)
        return written

    return Experiment(
        name=name,
        spec=f"{name}.yaml",
        preset=lambda options: preset(
            options.scale,
            source_of(options),
            seed=options.seed,
            labels=options.labels if options.data is not None else None,
            search=options.search,
        ),
        draw=draw,
        summarise=lambda records: [summarise(records)],
        findings=lambda series: [claim.sentence for one in series for claim in one.claims],
        show=show_summary,
    )


def show_summary(series: Sequence[Summary]) -> None:
    """Print the table, map by map, the sentences and the note."""
    console = stdout()
    for summary in series:
        named = [(one, name) for one in summary.sections for name in dict.fromkeys(row[0] for row in one.rows)]
        for one, name in named:
            console.print(Text(f"{one.title}: {name}"), style="bold")
            made = table(*((heading, "left" if heading in _WORDS else "right") for heading in one.headings[1:]))
            for row in one.rows:
                if row[0] == name:
                    made.add_row(*(Text(_shown(value)) for value in row[1:]))
            console.print(made)
            console.print()
        for claim in summary.claims:
            console.print(Text(claim.sentence))
        console.print()
        console.print(Text(summary.note))


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.3g}" if isinstance(value, float) else str(value)
