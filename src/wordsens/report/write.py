"""Writing a report: from folders to one file."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from wordsens.errors import InputError
from wordsens.experiments.store import write_whole
from wordsens.report import FORMATS
from wordsens.report.attention import attention_pairs
from wordsens.report.figures import run_figures
from wordsens.report.findings.of_runs import comparison, run_findings
from wordsens.report.load import Run, load_runs
from wordsens.report.markdown import markdown
from wordsens.report.page import Content, html_page
from wordsens.report.provenance import origin
from wordsens.report.tables import run_tables
from wordsens.report.texts import heat_texts


def report_content(runs: Sequence[Run], *, pictures: bool = True) -> Content:
    """Everything that the report of these runs says."""
    found = [(run.name, run_findings(run)) for run in runs]
    if len(runs) > 1 and (compared := comparison(runs)):
        found.insert(0, ("Side by side", compared))
    return Content(
        title=f"wordsens: {', '.join(run.name for run in runs)}",
        lead=_lead(runs),
        found=found,
        figures=run_figures(runs, pictures=pictures),
        pairs=attention_pairs(runs),
        shown=heat_texts(runs),
        tables=run_tables(runs),
        origins=[origin(run) for run in runs],
        several=len(runs) > 1,
    )


def _lead(runs: Sequence[Run]) -> str:
    done = sum(record.done for run in runs for record in run.records)
    where = (
        f"the folder {runs[0].name}"
        if len(runs) == 1
        else f"{len(runs)} folders: {', '.join(run.name for run in runs)}"
    )
    days = sorted({_day(record) for run in runs for record in run.records})
    when = days[0] if days[0] == days[-1] else f"between {days[0]} and {days[-1]}"
    return f"{done:,} measurement{'' if done == 1 else 's'} of {when}, in {where}."


def _day(record: Any) -> str:
    return str(record.started)[:10]


def write_report(folders: str | Path | Iterable[str | Path], path: str | Path) -> Path:
    """Write one report of the records in these folders, and give its path.

    Args:
        folders: what was `--out` of `wordsens measure`, `paper`, `audit` or `sweep`; one, or several side by side.
        path: of the file; its ending is the format: .html, one page that needs no network; .md, findings and tables.

    Raises:
        InputError: a folder is none, or holds no records that can be read; the path has another ending or lies nowhere.
        StoreError: the file cannot be written.
        MissingExtraError: jinja2 or matplotlib is not installed.
    """
    path = Path(path)
    form = require_form(path)
    content = report_content(
        load_runs([folders] if isinstance(folders, str | Path) else folders), pictures=form != "md"
    )
    write_content(content, path)
    return path


def require_form(path: Path) -> str:
    """The format of a report of that name, when it can be written there.

    Raises:
        InputError: another ending, or a folder that is not there.
    """
    if (form := path.suffix.removeprefix(".")) not in FORMATS:
        raise InputError(f"`path` (={str(path)!r}) must end with .html or .md")
    if not path.absolute().parent.is_dir():
        raise InputError(f"`path` (={str(path)!r}) lies in a folder that does not exist; make it first")
    return form


def write_content(content: Content, path: Path) -> None:
    """Write the report whole, in the format of the path's ending."""
    text = markdown(content) if path.suffix == ".md" else html_page(content)
    write_whole(path, text.encode())
