"""The results of a run: one SQLite database, `results.sqlite`, in the run's folder. One transaction
a finished cell."""

import io
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordsens.errors import InputError, MissingExtraError, WordsensError, without_secrets
from wordsens.files import named_path, replace_file
from wordsens.version import __version__

if TYPE_CHECKING:
    from pandas import DataFrame
    from torch import Tensor

FILE = "results.sqlite"
_FORMAT = 1

_TABLES = """
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
"""
_OF_TEXTS = (
    "encoder",
    "layer",
    "keep_special_tokens",
    "padded_below",
    "text_content",
    "mean_cosine",
    "distinct",
    "where",
)
"""Keys of some kinds of text: columns of every record whose cell has a text."""

_COLUMNS = "key, experiment, code, status, error, seconds, started, spec, provenance, result"


class StoreError(WordsensError, OSError):
    """Results cannot be read or written: no space, no permission, a folder that went away."""


class Record:
    """One row of the table of results: each column is an attribute. A column that is not there is
    an AttributeError.

    Every record has: cell (its key), experiment, status ("done" or "failed"), error, value,
    seconds, started (UTC), the columns of `provenance`, and the cell's spec, as the mapping `spec`
    and key by key (`spec_columns`). The measure of an experiment adds its own.
    """

    __slots__ = ("columns",)

    def __init__(self, columns: Mapping[str, Any]):
        self.columns = dict(columns)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "columns":
            raise AttributeError(name)
        try:
            return self.columns[name]
        except KeyError:
            raise AttributeError(f"the record has no column {name!r}") from None

    def __reduce__(self) -> Any:
        return Record, (self.columns,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and self.columns == other.columns

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return f"Record(cell={self.columns.get('cell')!r}, status={self.columns.get('status')!r})"

    @property
    def done(self) -> bool:
        """True where the cell gave a value."""
        return self.columns["status"] == "done"

    def replace(self, **changes: Any) -> "Record":
        """The record with other values in some columns."""
        return Record({**self.columns, **changes})


def spec_columns(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a spec as columns: those of the text too, of which `text` keeps the kind; a key
    that the cell has as well, `layer` of a network, is `text_layer` there.

    `words` and `word` of a spec are `word_choice`: the columns of those names say what was
    searched.

    >>> spec_columns({"n": 4, "text": {"kind": "correlated", "mean_cosine": 0.3}, "words": {"sample": 2}})
    {'n': 4, 'text': 'correlated', 'mean_cosine': 0.3, 'word_choice': '{"sample": 2}'}
    """  # noqa: E501
    columns: dict[str, Any] = {}
    for key, value in spec.items():
        if key == "text" and isinstance(value, dict):
            names = {"kind": "text"} | {
                name: f"text_{name}" for name in value if name == "content" or name in spec
            }
            columns |= {names.get(str(name), str(name)): one for name, one in value.items()}
        elif key in ("words", "word"):
            columns["word_choice"] = value if isinstance(value, str) else json.dumps(value)
        else:
            columns[key] = json.dumps(value) if isinstance(value, dict) else _plain(value)
    return columns


def record_of(
    cell: Any,
    status: str,
    columns: Mapping[str, Any],
    *,
    started: str,
    seconds: float,
    error: str | None = None,
) -> Record:
    """The record of a cell that was measured in this process."""
    from wordsens.sweeps.spec import provenance

    head = {
        "cell": cell.key(),
        "experiment": cell.experiment,
        "status": status,
        "error": error,
        "value": None,
    }
    spec, origin = cell.spec(), provenance(cell)
    fields = [name for name in type(cell).model_fields if name not in ("words", "word")]
    unused = dict.fromkeys([*fields, *(_OF_TEXTS if "text" in fields else ())])
    result = {**unused, **spec_columns(spec), **cell.described(), **columns}
    return Record(
        {
            **head,
            "seconds": seconds,
            "started": started,
            **origin,
            **_read_back(result),
            "spec": spec,
        }
    )


class Store:
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
        if read_only:
            if not path.is_file():
                raise InputError(
                    f"`folder` (={str(folder)!r}) holds no {FILE}; give the --out of a run"
                )
            self._connection = _open_to_read(path)
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"`out` (={str(folder)!r}) cannot be used as a folder for results "
                f"({error.strerror}); name another one"
            ) from error
        with _sqlite(self.folder), ExitStack() as unopened:
            self._connection = unopened.enter_context(closing(sqlite3.connect(path, timeout=60.0)))
            self._connection.execute("PRAGMA journal_mode=WAL")
            # A transaction survives the death of the process; a crash of the machine may cost the
            # last ones.
            self._connection.execute("PRAGMA synchronous=NORMAL")
            _require_format(self._connection, path)
            self._connection.executescript(_TABLES)
            self._connection.execute(f"PRAGMA user_version={_FORMAT}")
            unopened.pop_all()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def write(self, record: Record, arrays: "Mapping[str, Tensor] | bytes | None" = None) -> None:
        """Add a record in one transaction; a finished cell is never replaced by a failed one.

        `arrays`: the tensors from which the value can be computed again, or `packed` ones.

        Raises:
            StoreError: it cannot be written; what was written before is whole.
        """
        columns, spec = record.columns, record.spec
        origin = (
            "wordsens_version",
            "commit",
            "code",
            "libraries",
            "machine",
            "threads",
            "peak_memory_mb",
        )
        apart = {*origin, "cell", "experiment", "status", "error", "seconds", "started", "spec"}
        apart |= {name for name, value in spec_columns(spec).items() if columns.get(name) == value}
        values = (
            *(
                columns[name]
                for name in ("cell", "experiment", "code", "status", "error", "seconds", "started")
            ),
            json.dumps(spec),
            json.dumps({name: columns[name] for name in origin}),
            json.dumps({name: value for name, value in columns.items() if name not in apart}),
            arrays if arrays is None or isinstance(arrays, bytes) else packed(arrays),
        )
        with _sqlite(self.folder), self._connection:
            self._connection.execute(
                f"INSERT OR REPLACE INTO cells ({_COLUMNS}, arrays) SELECT "
                f"{', '.join('?' * len(values))} "
                "WHERE ? = 'done' OR NOT EXISTS (SELECT 1 FROM cells WHERE key = ? AND status = "
                "'done')",
                (*values, columns["status"], columns["cell"]),
            )

    def records(
        self, keys: Iterable[str] | None = None, experiment: str | None = None
    ) -> list[Record]:
        """The records in the order in which they were written.

        Args:
            keys: of the cells wanted. None for all, of each experiment those of the version of the
                code that wrote the last of them: two versions are not mixed.
            experiment: only those of this experiment.
        """
        codes, wanted = self._last_codes(), None if keys is None else set(keys)
        with _sqlite(self.folder):
            loaded = [
                _record(row)
                for row in self._connection.execute(f"SELECT {_COLUMNS} FROM cells ORDER BY rowid")
                if (row[2] == codes[row[1]] if wanted is None else row[0] in wanted)
                and (experiment is None or row[1] == experiment)
            ]
        names = dict.fromkeys(dict.fromkeys(name for record in loaded for name in record.columns))
        return [Record({**names, **record.columns}) for record in loaded]

    def statuses(self, keys: Iterable[str]) -> dict[str, str]:
        """The status of each of these cells that has a record."""
        wanted = set(keys)
        with _sqlite(self.folder):
            rows = self._connection.execute("SELECT key, status FROM cells").fetchall()
        return {key: status for key, status in rows if key in wanted}

    def arrays(self, key: str) -> "dict[str, Tensor] | None":
        """The tensors of a cell; None where none were kept."""
        with _sqlite(self.folder):
            row = self._connection.execute(
                "SELECT arrays FROM cells WHERE key = ?", (key,)
            ).fetchone()
        if row is None or row[0] is None:
            return None
        from safetensors.torch import load

        return load(row[0])

    def with_arrays(self) -> set[str]:
        """The keys of the cells whose tensors were kept."""
        with _sqlite(self.folder):
            return {
                key
                for (key,) in self._connection.execute(
                    "SELECT key FROM cells WHERE arrays IS NOT NULL"
                )
            }

    def other_versions(self, experiment: str, code: str) -> int:
        """The number of finished cells of the experiment that another version of the code
        measured."""
        query = "SELECT COUNT(*) FROM cells WHERE experiment = ? AND code != ? AND status = 'done'"
        with _sqlite(self.folder):
            return self._connection.execute(query, (experiment, code)).fetchone()[0]

    def last_code(self, experiment: str) -> str | None:
        """The version of the code that wrote the experiment's last record; None without any."""
        return self._last_codes().get(experiment)

    def _last_codes(self) -> dict[str, str]:
        """Of each experiment the version of the code that wrote its last record."""
        query = (
            "SELECT experiment, code, MAX(rowid) FROM cells GROUP BY "
            "experiment"
        )  # SQLite: code of that row
        with _sqlite(self.folder):
            return {experiment: code for experiment, code, _ in self._connection.execute(query)}

    def add_command(self, arguments: Sequence[str]) -> None:
        """Note a command, its words as they were typed; of addresses no password and no key."""
        if arguments:
            words = json.dumps([without_secrets(one) for one in arguments])
            now = datetime.now(UTC).isoformat(timespec="seconds")
            with _sqlite(self.folder), self._connection:
                self._connection.execute(
                    "INSERT OR IGNORE INTO commands VALUES (?, ?, ?)", (words, now, __version__)
                )

    def commands(self) -> list[dict[str, Any]]:
        """The commands that wrote here: `arguments`, `started` and `version` of each."""
        with _sqlite(self.folder):
            rows = self._connection.execute(
                "SELECT arguments, started, version FROM commands ORDER BY rowid"
            )
            return [
                {"arguments": json.loads(one), "started": at, "version": by} for one, at, by in rows
            ]


def packed(arrays: "Mapping[str, Tensor]") -> bytes:
    """The tensors as one safetensors file."""
    from safetensors.torch import save

    return save({name: tensor.detach().cpu().contiguous() for name, tensor in arrays.items()})


def read_records(folder: str | Path, experiment: str | None = None) -> "DataFrame":
    """The results in a folder as a DataFrame, one row a cell, failed ones too (`status`).

    Args:
        folder: the --out of a run.
        experiment: only the records of this experiment.

    >>> read_records("out")[["map", "n", "value"]]  # doctest: +SKIP
    """
    with Store(folder, read_only=True) as store:
        return as_frame(store.records(experiment=experiment))


def as_frame(records: Iterable[Any]) -> "DataFrame":
    """The records as a DataFrame with the columns of all, the spec as JSON; whole numbers with
    holes stay whole."""
    import pandas as pd

    rows = [{**record.columns, "spec": json.dumps(record.spec)} for record in records]
    columns = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        kinds = {type(value) for value in values}
        columns[name] = pd.array(values, dtype="Int64") if kinds == {int, type(None)} else values
    return pd.DataFrame(columns)


def as_records(records: Any, *experiments: str) -> list[Record]:
    """Records of a DataFrame that `read_records` gave, or a part of it; records are given back as
    they are.

    Raises:
        InputError: one is not of these experiments; where none is named, any will do.
    """
    loaded = (
        _of_frame(records)
        if hasattr(records, "to_dict") and hasattr(records, "columns")
        else list(records)
    )
    if others := [
        record.experiment
        for record in loaded
        if experiments and record.experiment not in experiments
    ]:
        raise InputError(
            f"`records` are of {others[0]}; this takes those of {' or '.join(experiments)}"
        )
    return loaded


def _of_frame(frame: "DataFrame") -> list[Record]:
    import pandas as pd

    if missing := {"cell", "experiment", "status", "spec"} - set(frame.columns):
        raise InputError(
            f"`records` has no column {', '.join(sorted(missing))}; give the rows of read_records "
            "whole"
        )
    loaded = []
    for row in frame.to_dict("records"):
        plain = {
            name: None if pd.api.types.is_scalar(value) and pd.isna(value) else value
            for name, value in row.items()
        }
        plain["spec"] = json.loads(str(plain["spec"]))
        loaded.append(Record({name: _plain(value) for name, value in plain.items()}))
    return loaded


def json_text(value: Any) -> str:
    """A list as a column of text holds it."""
    return json.dumps(value, ensure_ascii=False)


def file_name(experiment: str) -> str:
    """The experiment's name in the names of files: `module:NAME` of one's own has no colon
    there."""
    return experiment.replace(":", "-")


def write_tables(records: Iterable[Any], folder: Path, name: str) -> Path:
    """Write the records as `name`.parquet and `name`.csv, and give the path of the former.

    Raises:
        StoreError: they cannot be written.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ModuleNotFoundError as error:
        raise MissingExtraError("pyarrow", "records", "writing tables") from error
    frame = as_frame(records)
    whole = io.BytesIO()
    pq.write_table(pa.table({column: _column(frame[column]) for column in frame}), whole)
    write_whole(folder / f"{name}.parquet", whole.getvalue())
    text = frame.map(lambda value: json.dumps(value) if isinstance(value, tuple) else value).to_csv(
        index=False
    )
    write_whole(folder / f"{name}.csv", text.encode(errors="replace"))
    return folder / f"{name}.parquet"


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


def _column(values: Any) -> Any:
    """An Arrow column; values of several types as JSON."""
    import pyarrow as pa

    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if value is None else json.dumps(value) for value in values])


def _record(row: tuple[Any, ...]) -> Record:
    key, experiment, _, status, error, seconds, started, spec, origin, result = row
    head = {"cell": key, "experiment": experiment, "status": status, "error": error, "value": None}
    keys = json.loads(spec)
    columns = {**spec_columns(keys), **json.loads(result)}
    origin = {"seconds": seconds, "started": started, **json.loads(origin)}
    return Record({**head, **origin, **_read_back(columns), "spec": keys})


def _read_back(columns: Mapping[str, Any]) -> dict[str, Any]:
    """The columns as they are when read from the database: lists as tuples."""
    return {name: _plain(value) for name, value in columns.items()}


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):  # NumPy's, of a DataFrame or a Parquet file
        value = value.tolist()
    return tuple(map(_plain, value)) if isinstance(value, list | tuple) else value


def _require_format(connection: sqlite3.Connection, path: Path) -> None:
    (written,) = connection.execute("PRAGMA user_version").fetchone()
    if written not in (0, _FORMAT):
        raise InputError(
            f"{path} has format {written}; this version of wordsens reads format {_FORMAT}"
        )


def _open_to_read(path: Path) -> sqlite3.Connection:
    """Where no run is at work and none was killed there is no WAL, and SQLite need not write beside
    the file to share it: the folder may be read-only.
    """
    uri = f"file:{str(path.absolute()).replace('%', '%25').replace('?', '%3f').replace('#', '%23')}"
    mode = "mode=ro" if path.with_name(f"{FILE}-wal").exists() else "immutable=1"
    with _sqlite(path.parent), ExitStack() as unopened:
        connection = unopened.enter_context(
            closing(sqlite3.connect(f"{uri}?{mode}", uri=True, timeout=60.0))
        )
        _require_format(connection, path)
        unopened.pop_all()
        return connection


@contextmanager
def _sqlite(folder: Path) -> Iterator[None]:
    """SQLite's errors as ours, on one line."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"{FILE} in {folder} cannot be used: {error}") from error
