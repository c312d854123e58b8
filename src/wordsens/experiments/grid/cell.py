"""The base of every cell's spec: an identity of exactly what can change the result, and its hash."""

import json
from typing import Any, ClassVar

from wordsens.experiments.grid.cell_keys import with_kind_of_device
from wordsens.experiments.grid.strict_model import StrictModel
from wordsens.experiments.store.record import hash_identity


class Cell(StrictModel):
    """One measurement: the keys of a spec, and the name of its record. A kind adds its keys, `device` among them.

    Attributes:
        KIND: the name of the kind, in the identity; None leaves it out, as the oldest kind does.
        SCHEMA: raised when the meaning of a key, or the way a cell is computed, changes: old records are then not
            reused.
    """

    KIND: ClassVar[str | None] = None
    SCHEMA: ClassVar[int] = 1

    def identity_keys(self) -> dict[str, Any]:
        """The keys that can change the result: all, with the kind of the device, unless a kind says otherwise."""
        return with_kind_of_device(self.model_dump(mode="json"))

    def identity(self) -> str:
        """Canonical JSON of what can change the result."""
        kind = {} if self.KIND is None else {"kind": self.KIND}
        keys = {**kind, "schema": self.SCHEMA, **self.identity_keys()}
        return json.dumps(keys, sort_keys=True, separators=(",", ":"))

    def content_hash(self) -> str:
        """The cell's name in the store: SHA-256 of `identity`, the first 32 hexadecimal digits."""
        return hash_identity(self.identity())
