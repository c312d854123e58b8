"""What an audit asks of one text, and what it found: one row of the table."""

import hashlib
import json
from dataclasses import asdict, dataclass

from wordsens.experiments.record import Record
from wordsens.experiments.spec import hash_identity


@dataclass(frozen=True, kw_only=True)
class AuditPlan:
    """Everything that can change what is measured of a text.

    Attributes:
        model: its name.
        map: the map's name: layer, pooling or output.
        max_words: tokens that a text keeps.
        words_per_text: whole words that are measured: negations first, others drawn at random.
        removal: "mask" or "delete".
        swaps: whether the best real swap is looked for.
        seed: of the draw and of the search.
    """

    model: str
    map: str
    max_words: int
    words_per_text: int
    removal: str
    swaps: bool
    seed: int

    def identity(self, text: str) -> str:
        """Canonical JSON of the plan and of the text's content."""
        digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
        return json.dumps({"audit": 1, **asdict(self), "text": digest}, sort_keys=True)

    def cell(self, text: str) -> str:
        """The name of the text's record in the store."""
        return hash_identity(self.identity(text))


@dataclass(frozen=True, kw_only=True)
class AuditRecord(Record):
    """What was measured of one text. `value` is the largest sensitivity. Tuples have one entry a measured word.

    Attributes:
        source: where the text came from.
        label: of the text, where it has one.
        tokens: rows of the text, special tokens included.
        words: whole words of the text.
        measured: the measured words, a JSON list of strings.
        rows: a JSON list: how many tokens each has.
        places: each word's place, 0 the first word of the text and 1 the last.
        sensitivity: attained, a lower bound of the sup over perturbations of the word's rows by up to their own norms.
        removal: relative change of the features when the word is masked or deleted.
        swap: relative change by the best real swap found; NaN for words of several tokens; empty where not asked for.
        swapped_for: a JSON list of strings, likewise.
        evaluations: perturbed texts that the search evaluated.
        peak_memory_mb: the largest resident memory of the process up to then, in MiB.
        started, wordsens_version, torch_version, machine: of the run.
    """

    source: str
    label: int | None = None
    tokens: int
    words: int
    measured: str
    rows: str
    places: tuple[float, ...]
    sensitivity: tuple[float, ...]
    removal: tuple[float, ...]
    swap: tuple[float, ...]
    swapped_for: str
    evaluations: int
    peak_memory_mb: float
    started: str
    wordsens_version: str
    torch_version: str
    machine: str
