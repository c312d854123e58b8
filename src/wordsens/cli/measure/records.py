"""The records of `wordsens measure --out`: one a text and map, which the same command does not measure again."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from wordsens.cli.measure.options import MeasureOptions
from wordsens.cli.measure.tables import RealSwaps
from wordsens.cli.terminal import typed
from wordsens.maps.base import FeatureMap
from wordsens.maps.registry import map_entry
from wordsens.sensitivity.result import Sensitivity
from wordsens.sensitivity.several_texts import on_demand
from wordsens.sweeps.measurement import SensitivityCell, save_measurement, saved_measurement
from wordsens.sweeps.store import Store, write_tables
from wordsens.text import Document
from wordsens.text.matrix import TextMatrix


@dataclass(frozen=True)
class Place:
    """The place of one measurement in a store: of a map on a text."""

    store: Store
    cell: SensitivityCell
    phi: FeatureMap
    text: TextMatrix
    started: str
    swaps: bool

    def load(self) -> tuple[Sensitivity, RealSwaps | None] | None:
        """The measurement that is there already, where it is all that was asked for."""
        saved = saved_measurement(self.store, self.cell, self.phi, self.text)
        if saved is None or not self.swaps:
            return None if saved is None else (saved[0], None)
        result, record = saved
        if record.swap is None or record.swapped_for is None:
            return None
        return result, RealSwaps(record.swap, tuple(json.loads(record.swapped_for)))

    def save(self, result: Sensitivity, swaps: RealSwaps | None) -> None:
        """Write the measurement."""
        named = None if swaps is None else (swaps.values, swaps.names)
        save_measurement(self.store, self.cell, self.started, self.phi, self.text, result, swaps=named)


@dataclass(frozen=True)
class MeasureRecords:
    """The records of one run of `measure`, each a sensitivity cell on a given text."""

    store: Store
    options: MeasureOptions

    @classmethod
    @contextmanager
    def opened(cls, options: MeasureOptions) -> Iterator["MeasureRecords"]:
        """The records in the folder `options.out`."""
        with Store(str(options.out)) as store:
            store.add_command(typed.get())
            yield cls(store, options)

    def place(self, name: str, document: Document, text: TextMatrix, phi: FeatureMap, words: list[int] | None) -> Place:
        """The place of the map of that name on a text, at these words or all."""
        options, entry, (n, d) = self.options, map_entry(name), text.rows.shape
        given = {"kind": "given", "content": document.text, "source": text.source, "label": document.label}
        if entry.family != "transformer":
            given |= {"encoder": options.encoder, "layer": options.chosen_layer}
            given |= {"keep_special_tokens": options.keep_special_tokens}
        keys = {name: getattr(options, name) for name in ("seed", "radius", "search", "starts", "steps", "device")}
        keys |= {key: options.map_options[key] for key in entry.options}
        keys |= {"map": name, "n": n, "d": d, "text": given, "dtype": entry.dtype}
        keys |= {"words": "all" if words is None else {"indices": words}}
        swaps = options.swaps and not on_demand(phi)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return Place(self.store, SensitivityCell.parse(keys), phi, text, now, swaps)

    def write_table(self) -> Path:
        """All measurements of the folder as one table."""
        records = [record for record in self.store.records(experiment="sensitivity") if record.text == "given"]
        return write_tables(records, self.store.folder, "measure")
