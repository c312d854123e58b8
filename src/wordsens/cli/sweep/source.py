"""From what the command line names to a sweep and its folder."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from wordsens.errors import InputError
from wordsens.experiments.grid.catalogue import included
from wordsens.experiments.grid.sweep import Sweep
from wordsens.experiments.grid.sweep_file import load_sweep, on_device, overridden
from wordsens.files import named_path

SPEC_FILE = "sweep.yaml"


@dataclass(frozen=True)
class Source:
    """A sweep, and the folder of its records."""

    sweep: Sweep
    folder: Path

    @property
    def records(self) -> Path:
        """The folder of its shards."""
        return self.folder / self.sweep.cell_kind.folder


def sweep_source(
    spec: str, overrides: Iterable[str] = (), out: str | None = None, *, device: str | None = None
) -> Source:
    """The sweep that SPEC names: the folder of an earlier run, a YAML file, or the name of a preset or an example.

    Its folder is `out`, or the folder named, or one with the name of the sweep in the current folder. A `device` is
    put in place of what the sweep says.

    Raises:
        InputError: there is no such sweep, or it is wrong.
    """
    path = named_path("spec", spec, home=False)
    if path.is_dir():
        if not (path / SPEC_FILE).is_file():
            raise InputError(f"`spec` (={spec!r}) is a folder without {SPEC_FILE}; name one that a sweep was run in")
        sweep, folder = load_sweep(path / SPEC_FILE, overrides=overrides), path
    else:
        if path.is_file():
            sweep = load_sweep(path, overrides=overrides)
        else:
            sweep = overridden(included(spec, Path(), load=load_sweep, called="spec"), overrides)
        folder = Path(re.sub(r"[^\w.-]+", "-", sweep.name))
    if device is not None:
        sweep = on_device(sweep, device)
    return Source(sweep, folder if out is None else named_path("out", out, home=False))
