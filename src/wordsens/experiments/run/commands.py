"""The commands that a folder of records came from, kept beside them."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from wordsens import __version__
from wordsens.errors import without_secrets
from wordsens.experiments.store.shard import write_whole

FILE = "commands.jsonl"


def keep_command(folder: Path, arguments: Sequence[str]) -> None:
    """Add a command, its words as they were typed, to those of the folder; one that is there already is not repeated,
    and where no command line runs there is none. Of addresses no password and no key is kept.

    Raises:
        StoreError: it cannot be written.
    """
    arguments = [without_secrets(one) for one in arguments]
    known = kept_commands(folder)
    if not arguments or any(one["arguments"] == arguments for one in known):
        return
    now = datetime.now(UTC).isoformat(timespec="seconds")
    known.append({"started": now, "version": __version__, "arguments": arguments})
    content = "".join(json.dumps(one) + "\n" for one in known).encode()
    write_whole(folder / FILE, lambda file: file.write(content))


def kept_commands(folder: Path) -> list[dict[str, Any]]:
    """The commands of the folder, in the order in which they were first given; lines that are none are passed over."""
    try:
        lines = (folder / FILE).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    found = []
    for line in lines:
        try:
            one = json.loads(line)
        except ValueError:
            continue
        if isinstance(one, dict) and isinstance(one.get("arguments"), list):
            found.append(one)
    return found
