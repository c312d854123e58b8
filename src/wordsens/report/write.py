"""Writing a report: from folders to one page, or one Markdown file."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from wordsens.display.html import html_page
from wordsens.display.markdown import markdown
from wordsens.display.view import Picture, View
from wordsens.errors import InputError
from wordsens.maps.registry import MAPS, base_name, plain_name
from wordsens.plotting import of_experiment
from wordsens.plotting.page import picture
from wordsens.plotting.records import along_axes
from wordsens.report import FORMATS
from wordsens.report.comparison import comparison
from wordsens.report.load import Part, Run, load_runs
from wordsens.report.provenance import provenance_section
from wordsens.report.tables import failed_table, part_view
from wordsens.report.texts import text_sections
from wordsens.sweeps.measurement import GIVEN
from wordsens.sweeps.store import write_whole
from wordsens.version import __version__


def report_view(runs: Sequence[Run], *, pictures: bool = True) -> View:
    """Everything that the report of these runs says: findings, tables, figures, texts, and how the
    numbers were made."""
    several = len(runs) > 1
    parts: list[Any] = []
    if several and len(compared := comparison(runs)):
        parts.append(compared)
    if len(failed := failed_table(runs)):
        parts.append(failed)
    for run in runs:
        views = [part_view(part, run) for part in run.parts if part.done]
        parts += [
            replace(view, headline=f"{run.name}: {view.headline}") if several else view
            for view in views
        ]
    if pictures and (drawn := list(_pictures(runs))):
        parts.append(View("Figures", tuple(drawn)))
    return View("", (*parts, *text_sections(runs), provenance_section(runs)))


_FAMILIES = {
    "dense": "fully connected layers",
    "attention": "attention",
    "stack": "random transformers",
}


def heading(runs: Sequence[Run]) -> str:
    """What was measured, in words: the models or maps; of several runs also their names."""
    named: dict[str, None] = {}
    for record in (record for run in runs for record in run.records if record.done):
        model = record.columns.get("model")
        name = str(model or record.columns.get("map") or record.experiment)
        family = "" if model or base_name(name) not in MAPS else MAPS[base_name(name)].family
        named[_FAMILIES.get(family) or plain_name(name)] = None
    *others, last = [*list(named)[:3], *([f"{len(named) - 3} more"] if len(named) > 3 else [])] or [
        "a model"
    ]
    listed = f"{', '.join(others)} and {last}" if others else last
    return f"How far one word moves {listed}" + (
        f": {' beside '.join(run.name for run in runs)}" * (len(runs) > 1)
    )


def _pictures(runs: Sequence[Run]) -> Iterator[Picture]:
    """The figures of every run, that with all maps first; those of one kind stand next to each
    other."""
    drawn = [
        (file, run.name, figure)
        for run in runs
        for part in run.parts
        if part.done
        for file, figure in _figures(part).items()
    ]
    files = list(dict.fromkeys(file for file, _, _ in drawn))
    for at, (_, run, figure) in enumerate(sorted(drawn, key=lambda one: files.index(one[0]))):
        name = figure.get_suptitle().replace("$", "").replace(r"\gamma", "γ")
        yield picture(figure, title=f"{name} ({run})" if len(runs) > 1 else name, prefix=f"f{at}")


def _figures(part: Part) -> dict[str, Any]:
    """The figures of one experiment's records; of S also along the axes of a sweep. None where they
    allow none."""
    if part.name != "sensitivity":
        return _allowed(of_experiment, part.done)
    records = [record for record in part.done if record.text != GIVEN]
    if len({record.n for record in records}) < 2:
        return {}
    return _allowed(of_experiment, records) | _allowed(
        along_axes, records, besides=("n", "d", "depth")
    )


def _allowed(
    draw: Callable[..., dict[str, Any]], records: Sequence[Any], **options: Any
) -> dict[str, Any]:
    try:
        return draw(records, **options)
    except InputError:  # more series than a figure tells apart
        return {}


def write_report(folders: str | Path | Iterable[str | Path], path: str | Path) -> Path:
    """Write one report of the records in these folders, and give its path.

    Args:
        folders: what was `--out` of `wordsens measure`, `paper`, `audit` or `sweep`; one, or
            several side by side.
        path: of the file; its ending is the format: .html, one page that needs no network; .md,
            findings and tables.

    Raises:
        InputError: a folder is none, or holds no records that can be read; the path has another
            ending or lies nowhere.
        StoreError: the file cannot be written.
        MissingExtraError: jinja2 or matplotlib is not installed.
    """
    path = Path(path)
    form = require_form(path)
    runs = load_runs([folders] if isinstance(folders, str | Path) else folders)
    write_view(report_view(runs, pictures=form != "md"), path, heading(runs))
    return path


def require_form(path: Path) -> str:
    """The format of a report of that name, when it can be written there.

    Raises:
        InputError: another ending, or a folder that is not there.
    """
    if (form := path.suffix.removeprefix(".")) not in FORMATS:
        raise InputError(f"`path` (={str(path)!r}) must end with .html or .md")
    if not path.absolute().parent.is_dir():
        raise InputError(
            f"`path` (={str(path)!r}) lies in a folder that does not exist; make it first"
        )
    return form


def write_view(view: View, path: Path, title: str) -> None:
    """Write it whole, in the format of the path's ending."""
    text = (
        markdown(view, heading=title)
        if path.suffix == ".md"
        else html_page(view, title=f"{title} · wordsens", heading=title, version=__version__)
    )
    write_whole(path, text.encode())
