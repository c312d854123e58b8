"""Writing a report: from folders to one page, or one Markdown file."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from wordsens.display.html import html_page
from wordsens.display.markdown import markdown
from wordsens.display.view import Picture, View
from wordsens.errors import InputError, argument
from wordsens.plotting import of_experiment
from wordsens.plotting.page import picture
from wordsens.plotting.records import along_axes
from wordsens.report import FORMATS
from wordsens.report.load import Part, Run, load_runs
from wordsens.report.provenance import provenance_section
from wordsens.report.tables import failed_table, part_view
from wordsens.report.texts import texts_section
from wordsens.sweeps.measurement import GIVEN
from wordsens.sweeps.store import write_whole
from wordsens.version import __version__


def report_view(runs: Sequence[Run], *, pictures: bool = True) -> View:
    """Everything that the report of these runs says: findings, figures, tables, texts, and how the
    numbers were made."""
    parts: list[Any] = [failed_table(runs)]
    for run in runs:
        for part in run.parts:
            drawn = _pictures(part, f"f{len(parts)}") if pictures else []
            parts.append(part_view(part, drawn, run.name * (len(runs) > 1)))
    return View("", (*parts, texts_section(runs), provenance_section(runs)))


def heading(runs: Sequence[Run]) -> str:
    """The names of the runs."""
    return f"Word sensitivity: {' and '.join(run.name for run in runs)}"


def _pictures(part: Part, prefix: str) -> list[Picture]:
    """The figures of one experiment's records, of S also along the axes of a sweep; none where the
    records allow none."""
    texts = part.frame.get("text")
    records: Any = part.frame if texts is None else part.frame[texts != GIVEN]
    try:
        figures = of_experiment(records)
        if part.name == "sensitivity":
            figures |= along_axes(records, besides=("n", "d", "depth"))
    except InputError:  # nothing to draw, or more series than a figure tells apart
        return []
    return [
        picture(figure, prefix=f"{prefix}-{number}")
        for number, figure in enumerate(figures.values())
    ]


def write_report(folders: str | Path | Iterable[str | Path], path: str | Path) -> Path:
    """Write one report of the records in these folders, and return its path.

    Args:
        folders: one or several folders that `wordsens measure`, `paper` or `sweep` wrote (`--out`).
        path: of the file; its ending is the format: .html, one page that needs no network; .md,
            findings and tables.

    Raises:
        InputError: one of `folders` is no folder, or holds no records that can be read; the path
            has another ending, or its folder does not exist.
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
        raise InputError(f"{argument('path')} (={str(path)!r}) must end with .html or .md")
    if not path.absolute().parent.is_dir():
        raise InputError(
            f"{argument('path')} (={str(path)!r}) lies in a folder that does not exist; make it "
            "first"
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
