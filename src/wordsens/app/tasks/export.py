"""Files of a measurement: the report, its records, its figure."""

import io
import json
import tempfile
from pathlib import Path
from typing import Any

from wordsens.app.work.worker import Desk
from wordsens.experiments.run.commands import keep_command
from wordsens.experiments.sensitivity.cell import KIND
from wordsens.experiments.sensitivity.record import SensitivityRecord
from wordsens.experiments.store.store import RecordStore, write_aside
from wordsens.figures.words import words as words_figure
from wordsens.maps.registry import map_title
from wordsens.report.write import write_report


def export(desk: Desk, record: dict[str, Any], form: str, arguments: list[str]) -> dict[str, Any]:
    """The file as bytes: `form` is report (HTML), records (Parquet) or figure (PNG)."""
    desk.tick()
    made = SensitivityRecord(**record)
    with tempfile.TemporaryDirectory(prefix="wordsens-") as place:
        folder = Path(place) / "measured"
        if form == "report":
            RecordStore(folder / KIND.folder, SensitivityRecord).write(made)
            keep_command(folder, arguments)
            return {"file": write_report(folder, Path(place) / "report.html").read_bytes()}
        if form == "records":
            write_aside(Path(place) / "records.parquet", [made], KIND.record_type)
            return {"file": (Path(place) / "records.parquet").read_bytes()}
    return {"file": _figure(made)}


def _figure(record: SensitivityRecord) -> bytes:
    tokens, values = json.loads(str(record.tokens)), record.per_word or ()
    names = [tokens[row] for row in record.searched or range(len(values))]
    figure = words_figure(names, values, upper=record.upper_per_word, title=map_title(record.map))
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=200)
    return file.getvalue()
