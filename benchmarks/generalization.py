"""Generalization after one changed word: what the errors are, and what they cost.

    python -m benchmarks.generalization [TABLE ...] [--data FILE] [--quick]

Tables: samples (review embeddings: RF against RAF, sample by sample), full (the paper's sizes: time and memory),
straightforward (against dense weights, a pseudo-inverse and a p x p projector, in one run). All of them by default.

FILE is any source of labelled texts that `wordsens.text.read_documents` reads, with at least N + samples texts of n
words; the environment variable WORDSENS_IMDB stands in for it. Texts are cut to n words and never padded. Without FILE
the samples table is made of the shipped reviews, which are few.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.generalization_samples import Setting, samples_table
from benchmarks.reporting import header, seconds, table

TABLES = ("samples", "full", "straightforward")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=", ".join(TABLES))
    parser.add_argument("--data", default=os.environ.get("WORDSENS_IMDB"), help="labelled texts, for the samples table")
    parser.add_argument("--texts", type=int, help="N: 1,000 in the samples table, 1,300 in the full one")
    parser.add_argument("--samples", type=int, help="texts that are learned and changed; 20")
    parser.add_argument("--words", type=int, default=40, help="n, of the samples table; 40")
    parser.add_argument("--maps", default="rf,raf")
    parser.add_argument("--every-word", type=int, help="samples whose best word of all is searched too; all of them")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    options = parser.parse_args()
    wanted = options.tables or list(TABLES)
    if unknown := set(wanted) - set(TABLES):
        parser.error(f"no table is called {', '.join(sorted(unknown))}; there are {', '.join(TABLES)}")
    print(header("Generalization after one changed word"))
    maps = options.maps.split(",")
    if "samples" in wanted:
        samples_table(_setting(options, maps))
    if "full" in wanted:
        full_table(maps, options)
    if "straightforward" in wanted:
        straightforward_table(quick=options.quick)


def _setting(options: argparse.Namespace, maps: list[str]) -> Setting:
    few = options.quick or options.data is None
    samples = options.samples or (4 if few else 20)
    every = options.every_word
    return Setting(
        data=options.data,
        maps=tuple(maps),
        texts=options.texts or (30 if few else 1000),
        samples=samples,
        words=options.words,
        every_word=min(samples, 1 if options.quick else samples) if every is None else every,
    )


def full_table(maps: list[str], options: argparse.Namespace) -> None:
    """Each map in a process of its own: the fit, then 20 texts, both trainings and every objective."""
    texts, samples = options.texts or (60 if options.quick else 1300), options.samples or (2 if options.quick else 20)
    rows, total = [], {"wall": 0.0, "cpu": 0.0}
    for name in maps:
        n, d = (40 if name == "rf" else 120), (96 if options.quick else 768)
        found = _part("generalization_at_size", name, str(n), str(d), str(texts), str(samples))
        wall, cpu = (sum(found[f"{part}{kind}"] for part in ("fit", "samples")) for kind in ("", "_cpu"))
        total["wall"] += wall
        total["cpu"] += cpu
        rows.append(
            [
                *(name, str(n), str(d), f"{found['features']:,}", f"{texts:,}"),
                *(seconds(found["fit"]), seconds(found["fit_cpu"])),
                *(seconds(found["samples"]), seconds(found["samples_cpu"])),
                f"{found['peak']:.2f} GB",
            ]
        )
    columns = ["map", "n", "d", "p", "N", "fit", "of CPU", f"{samples} texts", "of CPU", "peak memory"]
    print(table("The paper's sizes: both trainings, every objective", columns, rows))
    print(f"\nAll of it: {seconds(total['wall'])}, {seconds(total['cpu'])} of CPU.")


def straightforward_table(*, quick: bool) -> None:
    """The same problem twice, each in a process of its own; the library first, whose V the other is then given."""
    sizes = ("8", "24", "40") if quick else ("40", "192", "300")
    with tempfile.TemporaryDirectory() as folder:
        V = str(Path(folder) / "V.pt")
        ours, theirs = (_part("generalization_straightforward", part, V, *sizes) for part in ("library", "plain"))
    rows = []
    for one, other in zip(ours["rows"], theirs["rows"], strict=True):
        numbers = [f"{part[name]:.4f}" for name in ("loss", "error", "gamma", "F") for part in (one, other)]
        rows.append([f"{one['sample']}, {one['training']}, {one['objective']}", *numbers])
    columns = ["sample, training, objective"]
    columns += [f"{name}{whose}" for name in ("loss", "Err", "gamma", "F") for whose in ("", ", plainly")]
    n, d, texts = sizes
    print(table(f"Against the straightforward way: RF, n = {n}, d = {d}, k = n d, N = {texts}", columns, rows))
    behind = max(one["loss"] - other["loss"] for one, other in zip(ours["rows"], theirs["rows"], strict=True))
    print(f"\nThe library's loss minus the other's is at most {behind:.2g}.")
    rows = [
        [name, seconds(found["work"]), seconds(found["work_cpu"]), f"{found['peak']:.2f} GB", f"{found['idle']:.2f} GB"]
        for name, found in (("wordsens", ours), ("straightforward", theirs))
    ]
    beyond = (theirs["peak"] - theirs["idle"]) / (ours["peak"] - ours["idle"])
    rows.append(
        [
            "ratio",
            *(f"{theirs[name] / ours[name]:.0f}" for name in ("work", "work_cpu")),
            *(f"{theirs['peak'] / ours['peak']:.1f}", f"beyond it: {beyond:.1f}"),
        ]
    )
    print(table("Its price", ["", "time", "of CPU", "peak memory", "of it Python and torch"], rows))


def _part(module: str, *arguments: str) -> dict[str, Any]:
    """What a module of this folder prints as JSON, from a process of its own: peak memory can only grow."""
    command = [sys.executable, "-m", f"benchmarks.{module}", *arguments]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


if __name__ == "__main__":
    main()
