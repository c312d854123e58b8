"""The work of `wordsens sweep plot` and `fit`: the records of a sweep along one of its axes."""

from pathlib import Path

from wordsens import __version__
from wordsens.cli.running import open_store
from wordsens.cli.sweep.options import AxisOptions, FitOptions, PlotOptions
from wordsens.cli.sweep.source import Source, sweep_source
from wordsens.cli.terminal import notice, print_json, stdout, table
from wordsens.errors import InputError
from wordsens.experiments.along_axis import AxisSeries, series_along

PICTURES = (".pdf", ".png", ".svg")


def plot_sweep(options: PlotOptions) -> None:
    """Draw y against x and print where the picture is."""
    source, series = _series(options)
    x, y, file = options.x, options.y, options.file
    path = Path(file) if file else source.folder / "figures" / f"{y}-against-{x}.png"
    if path.suffix not in PICTURES:
        raise InputError(f"`file` (={file!r}) must end with {', '.join(PICTURES)}")
    from wordsens.figures import along

    figure = along(series, x, y, logarithmic=not options.linear)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    stdout().print(f"{len(series)} series  {path}", soft_wrap=True)


def fit_sweep(options: FitOptions) -> None:
    """Print y = constant x^exponent of each series, with an interval by text."""
    source, series = _series(options)
    x, y = options.x, options.y
    if options.as_json:
        document = {
            "command": "sweep fit",
            "version": __version__,
            "name": source.sweep.name,
            "x": x,
            "y": y,
            "series": [one.to_dict() for one in series],
        }
        print_json(document)
        return
    names = [name for name, _ in series[0].keys]
    made = table(
        *((name, "left") for name in names),
        (x, "right"),
        ("records", "right"),
        ("texts", "right"),
        ("exponent", "right"),
        ("95 % interval", "right"),
    )
    for one in series:
        made.add_row(
            *(str(value) for _, value in one.keys),
            f"{one.points[0].x}-{one.points[-1].x}",
            str(sum(point.count for point in one.points)),
            str(one.texts),
            "none" if one.fit is None else f"{one.fit.exponent:.3f} ± {one.fit.standard_error:.3f}",
            "none" if one.interval is None else f"{one.interval[0]:.3f} to {one.interval[1]:.3f}",
        )
    console = stdout()
    console.print(f"{source.sweep.name}: {y} ~ {x}^exponent", style="bold")
    console.print(made)
    along = list(dict.fromkeys(name for one in series for name in one.along))
    if along:
        console.print(f"{', '.join(along)} change with {x}.")
    console.print("± is the standard error of least squares; the interval is a bootstrap over texts (five or more).")


def _series(options: AxisOptions) -> tuple[Source, list[AxisSeries]]:
    source = sweep_source(options.spec, options.overrides or (), options.out)
    store = open_store(source.records, source.sweep.cell_kind.record_type, read_only=True)
    cells = source.sweep.cells()
    records = store.read(cell.content_hash() for cell in cells)
    if not any(record.done for record in records):
        raise InputError(f"`spec` (={options.spec!r}) has no finished record in {source.records}; run the sweep first")
    if len(records) < len(cells):
        notice(f"{len(cells) - len(records)} of the sweep's {len(cells)} cells have no record yet")
    by = None if options.by is None else [one.strip() for one in options.by.split(",") if one]
    return source, series_along(records, options.x, options.y, by)
