"""The records of a run: one SQLite database, `results.sqlite`, in the run's folder. One transaction
per finished cell. Users, studies and figures read it as a DataFrame."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordsens.errors import InputError, WordsensError, argument, require_extra, without_secrets
from wordsens.files import named_path, replace_file
from wordsens.sweeps.spec import Cell, provenance
from wordsens.version import __version__

if TYPE_CHECKING:
    from pandas import DataFrame
    from torch import Tensor

FILE = "results.sqlite"
_FORMAT = 1

# A transaction survives the death of the process; a crash of the machine may cost the last ones.
_SET_UP = f"""
PRAGMA journal_mode=WAL;
PRAGMA synchronous=NORMAL;
CREATE TABLE IF NOT EXISTS cells (
    key TEXT PRIMARY KEY, experiment TEXT NOT NULL, code TEXT NOT NULL, status TEXT NOT NULL,
    error TEXT,
    seconds REAL NOT NULL, started TEXT NOT NULL, spec TEXT NOT NULL, provenance TEXT NOT NULL,
    result TEXT NOT NULL,
    arrays BLOB
);
CREATE TABLE IF NOT EXISTS commands (
    arguments TEXT PRIMARY KEY, started TEXT NOT NULL, version TEXT NOT NULL
);
PRAGMA user_version={_FORMAT};
"""
_HEAD = ("cell", "experiment", "code", "status", "error", "seconds", "started", "spec")
_COLUMNS = "key, experiment, code, status, error, seconds, started, spec, provenance, result"

# Keys of some kinds of text: columns of every record whose cell has a text.
_OF_TEXTS = (
    "encoder",
    "layer",
    "keep_special_tokens",
    "padded_below",
    "text_content",
    "mean_cosine",
    "distinct",
)

# A record: its columns by name. Every record has: cell (its key), experiment, status ("done" or
# "failed"), error, value, seconds, started (UTC), the columns of `provenance`, the cell's spec as
# JSON (`spec`) and key by key (`spec_columns`). The measure of a study adds its own.
Row = dict[str, Any]


class StoreError(WordsensError, OSError):
    """Results cannot be read or written: no space, no permission, a folder that went away."""


def spec_columns(spec: Mapping[str, Any]) -> Row:
    """The keys of a spec as columns: those of the text too, of which `text` keeps the kind; a key
    that the cell has as well, `layer` of a network, is `text_layer` there.

    `words` and `word` of a spec are `word_choice`: the columns of those names say what was
    searched.

    >>> spec_columns({"n": 4, "text": {"kind": "correlated", "mean_cosine": 0.3}, "words": {"sample": 2}})
    {'n': 4, 'text': 'correlated', 'mean_cosine': 0.3, 'word_choice': '{"sample": 2}'}
    """  # noqa: E501
    columns: Row = {}
    for key, value in spec.items():
        if key == "text" and isinstance(value, dict):
            for name, part in value.items():
                doubled = name == "content" or name in spec
                named = "text" if name == "kind" else f"text_{name}" if doubled else name
                columns[named] = _plain(part)
        elif key in ("words", "word"):
            columns["word_choice"] = value if isinstance(value, str) else json.dumps(value)
        else:
            columns[key] = json.dumps(value) if isinstance(value, dict) else _plain(value)
    return columns


def record_of(
    cell: Cell,
    status: str,
    columns: Mapping[str, Any],
    *,
    started: str,
    seconds: float,
    error: str | None = None,
) -> Row:
    """The record of a cell that was measured in this process."""
    spec = cell.spec()
    fields = [name for name in type(cell).model_fields if name not in ("words", "word")]
    unused = dict.fromkeys([*fields, *(_OF_TEXTS if "text" in fields else ())])
    return {
        "cell": cell.key(),
        "experiment": cell.experiment,
        "status": status,
        "error": error,
        "value": None,
        "seconds": seconds,
        "started": started,
        **provenance(cell),
        **unused,
        **spec_columns(spec),
        **cell.described(),
        **columns,
        "spec": json.dumps(spec),
    }


class Store(AbstractContextManager["Store"]):
    """The database of one folder.

    Args:
        folder: of the run; made when it does not exist.
        read_only: nothing is made or written.

    Raises:
        InputError: the folder cannot be used, holds no results (read_only), or those of an earlier
            format.
    """

    def __init__(self, folder: str | Path, *, read_only: bool = False):
        self.folder = named_path("out", folder, home=False)
        path = self.folder / FILE
        if read_only and not path.is_file():
            raise InputError(
                f"{argument('folder')} (={str(folder)!r}) holds no {FILE}; give the --out of a run"
            )
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"{argument('out')} (={str(folder)!r}) cannot be used as a folder for results "
                f"({error.strerror}); name another one"
            ) from error
        with _sqlite(self.folder), ExitStack() as unopened:
            where = _read_only_address(path) if read_only else str(path)
            opened = sqlite3.connect(where, uri=read_only, timeout=60.0)
            self._connection = unopened.enter_context(closing(opened))
            (written,) = opened.execute("PRAGMA user_version").fetchone()
            if written not in (0, _FORMAT):
                raise InputError(
                    f"{path} has format {written}; this version of wordsens reads format {_FORMAT}"
                )
            if not read_only:
                opened.executescript(_SET_UP)
            unopened.pop_all()

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def write(self, record: Row, arrays: "Mapping[str, Tensor] | bytes | None" = None) -> None:
        """Add a record in one transaction; a finished cell is never replaced by a failed one.

        `arrays`: the tensors from which the value can be computed again, or `packed` ones.

        Raises:
            StoreError: it cannot be written; what was written before is whole.
        """
        others = {name: value for name, value in record.items() if name not in _HEAD}
        whole = arrays if arrays is None or isinstance(arrays, bytes) else packed(arrays)
        values = (*(record[name] for name in _HEAD), "{}", json.dumps(others), whole)
        with _sqlite(self.folder), self._connection:
            self._connection.execute(
                f"INSERT OR REPLACE INTO cells ({_COLUMNS}, arrays) SELECT "
                f"{', '.join('?' * len(values))} "
                "WHERE ? = 'done' OR NOT EXISTS (SELECT 1 FROM cells WHERE key = ? AND status = "
                "'done')",
                (*values, record["status"], record["cell"]),
            )

    def rows(self, keys: Iterable[str] | None = None, experiment: str | None = None) -> list[Row]:
        """The records in the order in which they were written.

        Args:
            keys: of the cells wanted. None for all, of each experiment those of the version of the
                code that wrote the last of them: two versions are not mixed.
            experiment: only those of this experiment.
        """
        codes, wanted = self.codes(), None if keys is None else set(keys)
        rows = [
            _record(row)
            for row in self._select(f"SELECT {_COLUMNS} FROM cells ORDER BY rowid")
            if (row[2] == codes[row[1]] if wanted is None else row[0] in wanted)
            and (experiment is None or row[1] == experiment)
        ]
        columns = dict.fromkeys(name for row in rows for name in row)
        return [columns | row for row in rows]

    def frame(
        self, keys: Iterable[str] | None = None, experiment: str | None = None
    ) -> "DataFrame":
        """`rows` as a DataFrame."""
        return as_frame(self.rows(keys, experiment))

    def finished(self, *, with_arrays: bool = False) -> set[str]:
        """The keys of the cells that have a value, or a value and their arrays."""
        query = "SELECT key FROM cells WHERE status = 'done'"
        return {key for (key,) in self._select(query + " AND arrays NOTNULL" * with_arrays)}

    def arrays(self, key: str) -> "dict[str, Tensor] | None":
        """The tensors of a cell; None where none were kept."""
        from safetensors.torch import load

        query = "SELECT arrays FROM cells WHERE key = ? AND arrays NOTNULL"
        contents = [load(content) for (content,) in self._select(query, key)]
        return contents[0] if contents else None

    def other_versions(self, experiment: str, code: str) -> int:
        """The number of finished cells of the experiment that another version of the code
        measured."""
        query = "SELECT COUNT(*) FROM cells WHERE experiment = ? AND code != ? AND status = 'done'"
        return self._select(query, experiment, code)[0][0]

    def codes(self) -> dict[str, str]:
        """For each experiment the version of the code that wrote its last record."""
        # SQLite gives the code of the row with the largest rowid.
        query = "SELECT experiment, code, MAX(rowid) FROM cells GROUP BY experiment"
        return {experiment: code for experiment, code, _ in self._select(query)}

    def add_command(self, arguments: Sequence[str]) -> None:
        """Note a command, its words as they were typed; of addresses no password and no key."""
        if arguments:
            words = json.dumps([without_secrets(word) for word in arguments])
            now = datetime.now(UTC).isoformat(timespec="seconds")
            with _sqlite(self.folder), self._connection:
                self._connection.execute(
                    "INSERT OR IGNORE INTO commands VALUES (?, ?, ?)", (words, now, __version__)
                )

    def commands(self) -> list[dict[str, Any]]:
        """The commands that wrote here: `arguments`, `started` and `version` of each."""
        rows = self._select("SELECT arguments, started, version FROM commands ORDER BY rowid")
        return [{"arguments": json.loads(a), "started": b, "version": c} for a, b, c in rows]

    def _select(self, query: str, *values: Any) -> list[Any]:
        with _sqlite(self.folder):
            return self._connection.execute(query, values).fetchall()


def read_records(folder: str | Path, experiment: str | None = None) -> "DataFrame":
    """The records in a folder as a DataFrame, one row per cell, failed ones too (`status`).

    Args:
        folder: the --out of a run.
        experiment: only the records of this experiment.

    >>> read_records("out")[["map", "n", "value"]]  # doctest: +SKIP
    """
    with Store(folder, read_only=True) as store:
        return store.frame(experiment=experiment)


def as_frame(rows: Iterable[Row]) -> "DataFrame":
    """The records as a DataFrame with the columns of all; whole numbers with holes stay whole."""
    import pandas as pd

    rows, columns = list(rows), {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        kinds = {type(value) for value in values}
        columns[name] = pd.array(values, dtype="Int64") if kinds == {int, type(None)} else values
    return pd.DataFrame(columns)


def packed(arrays: "Mapping[str, Tensor | None]") -> bytes:
    """The tensors, those that there are, as one safetensors file."""
    from safetensors.torch import save

    known = {name: tensor for name, tensor in arrays.items() if tensor is not None}
    return save({name: tensor.detach().cpu().contiguous() for name, tensor in known.items()})


def json_text(value: Any) -> str:
    """A list as a column of text holds it."""
    return json.dumps(value, ensure_ascii=False)


def write_tables(records: "DataFrame", folder: Path, name: str) -> Path:
    """Write the records as `name`.parquet and `name`.csv, and give the path of the former. The name
    of a user's own study, `module:NAME`, has no colon there.

    Raises:
        StoreError: they cannot be written.
    """
    require_extra("records", "writing tables", "pyarrow")
    path = folder / f"{name.replace(':', '-')}.parquet"
    mixed = [name for name in records if len(set(map(type, records[name].dropna()))) > 1]
    text = {name: records[name].map(json.dumps, na_action="ignore") for name in mixed}
    write_whole(path, records.assign(**text).to_parquet(index=False))
    cells = records.map(lambda cell: json.dumps(cell) if isinstance(cell, tuple) else cell)
    write_whole(path.with_suffix(".csv"), cells.to_csv(index=False).encode(errors="replace"))
    return path


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that is never seen half-written: aside, flushed to disk, and renamed.

    Raises:
        StoreError: that cannot be done; nothing is left of the file then.
    """
    try:
        replace_file(path, content)
    except OSError as error:
        raise StoreError(
            f"{path.name} cannot be written to {path.parent} ({error.strerror or error})"
        ) from error


def _record(row: tuple[Any, ...]) -> Row:
    key, experiment, code, status, error, seconds, started, spec, origin, result = row
    # Earlier versions kept the provenance apart, and no column that the spec has.
    columns = {**spec_columns(json.loads(spec)), **json.loads(origin), **json.loads(result)}
    head = {"cell": key, "experiment": experiment, "status": status, "error": error, "value": None}
    others = {"seconds": seconds, "started": started, "code": code, "spec": spec}
    return {**head, **{name: _plain(value) for name, value in columns.items()}, **others}


def _plain(value: Any) -> Any:
    """Lists as tuples, which can be grouped by."""
    return tuple(map(_plain, value)) if isinstance(value, list | tuple) else value


def _read_only_address(path: Path) -> str:
    """Where no run is at work and none was killed there is no WAL, and SQLite need not write beside
    the file to share it: the folder may be read-only.
    """
    mode = "mode=ro" if path.with_name(f"{FILE}-wal").exists() else "immutable=1"
    quoted = str(path.absolute()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return f"file:{quoted}?{mode}"


@contextmanager
def _sqlite(folder: Path) -> Iterator[None]:
    """SQLite's errors as ours, on one line."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"{FILE} in {folder} cannot be used: {error}") from error
