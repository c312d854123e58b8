"""The records of `wordsens measure --out`: one a text and map, which the same command does not measure again."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from wordsens.cli.measure.options import MeasureOptions
from wordsens.cli.measure.outcome import RealSwaps
from wordsens.cli.running import open_store
from wordsens.cli.terminal import typed
from wordsens.experiments.run.commands import keep_command
from wordsens.experiments.run.provenance import Watch
from wordsens.experiments.sensitivity.cell import KIND
from wordsens.experiments.sensitivity.kept import keep_measurement, kept_measurement
from wordsens.experiments.sensitivity.record import SensitivityRecord
from wordsens.experiments.sensitivity.spec import SensitivityCell
from wordsens.experiments.store.store import RecordStore, write_aside
from wordsens.maps.contract import FeatureMap
from wordsens.maps.registry import map_entry
from wordsens.sensitivity.result import Sensitivity
from wordsens.sensitivity.sampled_words import on_demand
from wordsens.text import Document
from wordsens.text.matrix import TextMatrix


@dataclass(frozen=True)
class Place:
    """The place of one measurement in a store: of a map on a text."""

    store: RecordStore[SensitivityRecord]
    cell: SensitivityCell
    phi: FeatureMap
    text: TextMatrix
    watch: Watch
    swaps: bool

    def found(self) -> tuple[Sensitivity, RealSwaps | None] | None:
        """The measurement that is there already, where it is all that was asked for."""
        kept = kept_measurement(self.store, self.cell, self.phi, self.text)
        if kept is None or not self.swaps:
            return None if kept is None else (kept[0], None)
        result, record = kept
        if record.swap is None or record.swapped_for is None:
            return None
        return result, RealSwaps(record.swap, tuple(json.loads(record.swapped_for)))

    def keep(self, result: Sensitivity, swaps: RealSwaps | None) -> None:
        """Write the measurement."""
        named = None if swaps is None else (swaps.values, swaps.names)
        keep_measurement(self.store, self.cell, self.watch, self.phi, self.text, result, swaps=named)


@dataclass(frozen=True)
class MeasureRecords:
    """The records of one run of `measure`, each a sensitivity cell on a given text."""

    store: RecordStore[SensitivityRecord]
    options: MeasureOptions

    @classmethod
    @contextmanager
    def opened(cls, options: MeasureOptions) -> Iterator["MeasureRecords"]:
        """The records in the folder `options.out`; other runs are kept away from it meanwhile."""
        store = open_store(Path(str(options.out)) / KIND.folder, KIND.record_type)
        keep_command(store.folder.parent, typed.get())
        with store.held():
            yield cls(store, options)

    def place(self, name: str, document: Document, text: TextMatrix, phi: FeatureMap, words: list[int] | None) -> Place:
        """The place of the map of that name on a text, at these words or all."""
        options, entry, (n, d) = self.options, map_entry(name), text.rows.shape
        given = {"kind": "given", "content": document.text, "source": text.source, "label": document.label}
        if entry.family != "transformer":
            given |= {"encoder": options.encoder, "layer": options.chosen_layer}
            given |= {"keep_special_tokens": options.keep_special_tokens}
        keys = {name: getattr(options, name) for name in ("seed", "radius", "search", "starts", "steps", "device")}
        keys |= {key: getattr(options.map_options, key) for key in entry.options}
        keys |= {"map": name, "n": n, "d": d, "text": given, "dtype": entry.dtype}
        keys |= {"words": "all" if words is None else {"indices": words}}
        swaps = options.swaps and not on_demand(phi)
        return Place(self.store, SensitivityCell.parse(keys), phi, text, Watch(), swaps)

    def write_table(self) -> Path:
        """All measurements of the folder as one table."""
        records = [record for record in self.store.read() if record.text == "given"]
        path = Path(str(self.options.out)) / "measure.parquet"
        write_aside(path, records, KIND.record_type)
        return path
