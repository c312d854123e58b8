"""Files of a measurement: the report, its records, its figure."""

import io
import json
import tempfile
from pathlib import Path
from typing import Any

from wordsens.app.work.worker import Desk
from wordsens.experiments.store import Record, Store, write_tables
from wordsens.maps.registry import map_title
from wordsens.plotting import words as words_figure
from wordsens.report.write import write_report


def export(desk: Desk, record: dict[str, Any], form: str, arguments: list[str]) -> dict[str, Any]:
    """The file as bytes: `form` is report (HTML), records (Parquet) or figure (PNG)."""
    desk.tick()
    made = Record(record)
    with tempfile.TemporaryDirectory(prefix="wordsens-") as place:
        folder = Path(place) / "measured"
        if form == "report":
            with Store(folder) as store:
                store.write(made)
                store.add_command(arguments)
            return {"file": write_report(folder, Path(place) / "report.html").read_bytes()}
        if form == "records":
            return {"file": write_tables([made], Path(place), "records").read_bytes()}
    return {"file": _figure(made)}


def _figure(record: Record) -> bytes:
    tokens, values = json.loads(str(record.tokens)), record.per_word or ()
    names = [tokens[row] for row in record.searched or range(len(values))]
    figure = words_figure(names, values, upper=record.upper_per_word, title=map_title(record.map))
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=200)
    return file.getvalue()
