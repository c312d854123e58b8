"""A step of the build: the shipped texts go into the wheel compressed, a fifth smaller than by its own deflation."""

import bz2
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompressedTexts(BuildHookInterface):
    """Puts every .jsonl of the package into a wheel as .jsonl.bz2; an editable install reads them as they are."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        self._folder = tempfile.TemporaryDirectory()
        source = Path(self.root) / "src"
        for path in sorted(source.rglob("*.jsonl")):
            inside = f"{path.relative_to(source).as_posix()}.bz2"
            made = Path(self._folder.name) / inside.replace("/", "_")
            made.write_bytes(bz2.compress(path.read_bytes()))
            build_data["force_include"][str(made)] = inside

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            self._folder.cleanup()
