"""What every benchmark prints around its numbers: the hardware, the commit, the date, the command,
and tables."""

import datetime
import json
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch


def header(title: str) -> str:
    """The title, then by which command, at which commit, when and on what the numbers were made."""
    device = f", GPU: {torch.cuda.get_device_name()}" if torch.cuda.is_available() else ""
    lines = [
        title,
        "=" * len(title),
        f"$ python -m {_module()} {' '.join(sys.argv[1:])}".rstrip(),
        f"{commit()}, {datetime.datetime.now(datetime.UTC):%Y-%m-%d}; {processor()}, {_cores()} "
        f"cores, threads: {torch.get_num_threads()}{device}; Python {platform.python_version()}, "
        f"torch {torch.__version__}",
    ]
    return "\n".join(lines)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A heading, then the rows under their columns: a Markdown table that also reads well as it
    is."""
    widths = [max(len(cells[at]) for cells in [columns, *rows]) for at in range(len(columns))]

    def line(cells: Sequence[str]) -> str:
        first, *others = (
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return "| " + " | ".join([first, *others]) + " |"

    rule = (
        "| "
        + " | ".join(
            "-" * width if at == 0 else "-" * (width - 1) + ":" for at, width in enumerate(widths)
        )
        + " |"
    )
    return "\n".join(["", f"### {title}", "", line(columns), rule, *(line(row) for row in rows)])


def seconds(value: float) -> str:
    """A time, with a unit that suits it."""
    if value < 1e-3:
        return f"{value * 1e6:.0f} µs"
    if value < 1:
        return f"{value * 1e3:.3g} ms"
    return f"{value:.3g} s" if value < 100 else f"{value:.0f} s"


def gigabytes(value: float) -> str:
    """A number of bytes."""
    return f"{value / 1e9:.2f} GB" if value >= 1e8 else f"{value / 1e6:.0f} MB"


def apart(module: str, *arguments: object) -> dict[str, Any]:
    """What `python -m benchmarks.MODULE --one ARGUMENTS` prints as JSON, in a process of its
    own."""
    command = [sys.executable, "-m", f"benchmarks.{module}", "--one", *map(str, arguments)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def _module() -> str:
    path = Path(sys.argv[0])
    return "benchmarks" if path.stem == "__main__" else f"benchmarks.{path.stem}"


def commit() -> str:
    """The commit, and whether any code differs from it."""
    asked = (
        ("describe", "--always"),
        ("status", "--porcelain", "--untracked-files=no", "--", ":/src", ":/benchmarks"),
    )
    try:
        described, changed = (
            subprocess.run(
                ["git", *words],
                cwd=Path(__file__).parent,
                capture_output=True,
                text=True,
                check=True,
            ).stdout.strip()
            for words in asked
        )
    except (OSError, subprocess.CalledProcessError):
        return "not in a git checkout"
    return f"{described}-dirty" if changed else described


def processor() -> str:
    """The name of the processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def peak_bytes() -> int:
    """The most that this process has held at once."""
    status = Path("/proc/self/status")
    if status.exists():
        # On Linux getrusage also counts what the parent held when it started this process; VmHWM
        # does not.
        (line,) = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
        return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
