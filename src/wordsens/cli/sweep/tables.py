"""The work of `wordsens sweep export` and `merge`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wordsens import __version__
from wordsens.cli.running import open_store
from wordsens.cli.sweep.source import SPEC_FILE, sweep_source
from wordsens.cli.terminal import notice, print_json, stdout
from wordsens.errors import InputError
from wordsens.experiments.grid.sweep import Sweep
from wordsens.experiments.grid.sweep_file import load_sweep
from wordsens.experiments.kinds import KIND_NAMES, kind_named
from wordsens.experiments.store.merge import Merged, merge_into
from wordsens.experiments.store.shard import write_table_aside, write_whole
from wordsens.experiments.store.table_files import SUFFIXES, csv_of, jsonl_of


def export_sweep(spec: str, file: str, out: str | None, *, everything: bool, as_json: bool, quiet: bool) -> None:
    """Write the records as one table."""
    path = Path(file)
    if path.suffix not in SUFFIXES:
        raise InputError(f"`file` (={file!r}) must end with {', '.join(SUFFIXES)}")
    if not path.absolute().parent.is_dir():
        raise InputError(f"`file` (={file!r}) lies in a folder that does not exist; make it first")
    source = sweep_source(spec, (), out)
    store = open_store(source.records, source.sweep.cell_kind.record_type, read_only=True)
    names = None if everything else [cell.content_hash() for cell in source.sweep.cells()]
    records = store.table(names)
    if path.suffix == ".parquet":
        write_table_aside(path, records)
    else:
        write_whole(path, lambda out: (csv_of if path.suffix == ".csv" else jsonl_of)(records, out))
    missing = 0 if names is None else len(names) - records.num_rows
    if missing and not quiet:
        notice(f"{missing} of the sweep's cells have no record yet")
    if as_json:
        _dump({"command": "sweep export", "records": records.num_rows, "missing": missing, "file": str(path)})
    else:
        stdout().print(f"{records.num_rows} records  {path}", soft_wrap=True)


def merge_sweeps(folders: Sequence[str], out: str, *, as_json: bool, quiet: bool) -> None:
    """Bring the records of the folders together in `out`."""
    found: dict[str, list[tuple[str, Merged]]] = {}
    target = Path(out)
    kinds = [kind_named(name) for name in KIND_NAMES]
    for folder in folders:
        here = [kind for kind in kinds if (Path(folder) / kind.folder).is_dir()]
        if not here:
            raise InputError(f"`folder` (={folder!r}) has no records of a sweep; name the folder that was its --out")
        if Path(folder).resolve() == target.resolve():
            raise InputError(f"`folder` (={folder!r}) is --out itself; it keeps its records anyway, leave it out")
    for kind in kinds:
        sources = [Path(folder) for folder in folders if (Path(folder) / kind.folder).is_dir()]
        if sources:
            store = open_store(target / kind.folder, kind.record_type)
            with store.held():
                found[kind.name] = [
                    (str(one), merge_into(store, open_store(one / kind.folder, kind.record_type, read_only=True)))
                    for one in sources
                ]
    _merge_specs([Path(folder) for folder in folders], target, quiet=quiet)
    if as_json:
        _dump(
            {
                "command": "sweep merge",
                "merged": [
                    {"kind": kind, "folder": folder, "added": one.added, "known": one.known, "different": one.different}
                    for kind, merges in found.items()
                    for folder, one in merges
                ],
                "out": str(target),
            }
        )
    for kind, merges in found.items():
        for folder, one in merges:
            if not as_json:
                stdout().print(
                    f"{folder}: {one.added} {kind} records added, {one.known} known",
                    markup=False,
                    soft_wrap=True,
                )
            if one.different:
                notice(
                    f"{len(one.different)} cells of {folder} have other results than those already in {target}, which "
                    f"were kept: {', '.join(one.different[:3])}{', ...' if len(one.different) > 3 else ''}; "
                    "were they made with other versions, or another device?"
                )


def _merge_specs(folders: Sequence[Path], target: Path, *, quiet: bool) -> None:
    """One spec for all, when their sweeps are of one kind: the grids of each."""
    paths = [path for path in (one / SPEC_FILE for one in (target, *folders)) if path.is_file()]
    sweeps = [load_sweep(path) for path in paths]
    if not sweeps:
        return
    if len({one.kind for one in sweeps}) > 1:
        if not quiet:
            notice("the folders hold sweeps of several kinds: the records are merged, without a common sweep.yaml")
        return
    grids: list[dict[str, Any]] = []
    for one in sweeps:
        grids += [grid for grid, _ in one.whole_grids() if grid not in grids]
    name = "+".join(dict.fromkeys(one.name for one in sweeps))
    content = Sweep.parse({"name": name, "kind": sweeps[0].kind, "grids": grids}).to_yaml().encode()
    write_whole(target / SPEC_FILE, lambda file: file.write(content))


def _dump(document: dict[str, Any]) -> None:
    print_json({"command": document.pop("command"), "version": __version__, **document})
