"""Traces one `wordsens measure` and draws the rooms that it goes through: writes docs/images/walk.svg."""

import contextlib
import io
import sys
from pathlib import Path
from types import FrameType

import wordsens
from wordsens.cli import main

ROOT = Path(wordsens.__file__).parent
COMMAND = ("measure", "I love her much", "--map", "raf", "--quiet")
STAGES = {
    "cli/commands.py:measure": "options checked",
    "text/embedding.py:embed": "text embedded",
    "maps/registry.py:build_map": "map built",
    "search/witnesses.py:find_witnesses": "perturbations searched",
    "sensitivity/one_word.py:attained": "witnesses mapped again",
    "certificates/table.py:certificate_for": "upper bounds",
    "theory/prediction.py:predict": "prediction",
    "cli/measure/tables.py:print_one": "table printed",
}
"""The function through which the walk enters a room, and what is done there."""


def walk() -> tuple[list[str], set[str]]:
    """The stages in the order in which they are entered, one as often as it is entered, and all files that ran."""
    entered: list[str] = []
    files: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(ROOT)) and not code.co_name.startswith("<"):
            file = Path(code.co_filename).relative_to(ROOT).as_posix()
            files.add(file)
            if f"{file}:{code.co_name}" in STAGES:
                entered.append(f"{file}:{code.co_name}")

    with contextlib.redirect_stdout(io.StringIO()):
        main(COMMAND)  # imports are no part of the walk
        sys.setprofile(note)
        try:
            main(COMMAND)
        finally:
            sys.setprofile(None)
    return entered, files


def draw(entered: list[str], files: set[str], path: Path) -> None:
    """One box a stage, in order, with its room and how many files of the room ran."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "wordsens"
    mpl.rcParams["svg.fonttype"] = "none"
    figure = Figure(figsize=(1.3 * len(entered), 1.2))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set(xlim=(0, len(entered)), ylim=(0, 1))
    for at, stage in enumerate(entered):
        room = stage.split("/")[0]
        count = sum(file.startswith(f"{room}/") for file in files)
        words = STAGES[stage].replace(" ", "\n", 1)
        axes.text(
            at + 0.5, 0.5, f"{words}\n\n{room}/\n{count} file{'s' if count > 1 else ''}", ha="center", va="center",
            fontsize=8, bbox={"boxstyle": "round,pad=0.5", "facecolor": "#eef3fa", "edgecolor": "#35608f"},
        )  # fmt: skip
        if at:
            axes.annotate("", (at + 0.09, 0.5), (at - 0.09, 0.5), arrowprops={"arrowstyle": "-|>", "color": "#35608f"})
    figure.savefig(path, metadata={"Date": None}, facecolor="white")


if __name__ == "__main__":
    stages, ran = walk()
    print(*stages, "", *sorted(ran), sep="\n")
    draw(stages, ran, Path(__file__).parent / "images" / "walk.svg")
