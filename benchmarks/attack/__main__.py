"""Attacks random problems: python -m benchmarks.attack --problems 2000 --seed S [--heads 200] [--only N]
    [--integers 200] [--certificate thorough] [--out FILE]

Exit code 1 if a bound is crossed, a limit passed, a problem ends in an exception or a value exceeds what its witness
attains.
"""

import argparse
import json
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import torch

import wordsens as ws
from wordsens.certificates import EFFORTS

from .judge import LOW, LOW_TEXT, VERY_LOW, Verdict, judge
from .problems import FIRST_OF_HEADS, FIRST_OF_INTEGERS, problem
from .search import Budget

WORDS_ALLOWED_LOW = 1 / 200


def describe(verdict: Verdict) -> list[str]:
    """The findings of one problem, a line each."""
    name = f"{verdict.problem.seed}: {verdict.problem.description}"
    lines = [f"CROSSED {name} word {i}: bound {bound!r} < {value!r}" for i, bound, value in verdict.crossed]
    if verdict.error:
        lines.append(f"ERROR {name}: {verdict.error}")
    if verdict.low:
        worst = min(verdict.low, key=lambda found: found[1])
        lines.append(f"LOW {name}: {len(verdict.low)} of {verdict.words} words, word {worst[0]} at {worst[1]:.4f}")
    if verdict.text_low:
        lines.append(f"S LOW {name}: {verdict.text_ratio:.4f}")
    for i, reported, value in verdict.misreported[:1]:
        lines.append(f"MISREPORTED {name} word {i}: {reported!r}, its witness attains {value!r}")
    return lines


def record(verdict: Verdict) -> dict:
    """What --out keeps of a problem, one JSON object a line."""
    p = verdict.problem
    return {
        "seed": p.seed,
        "map": p.map_name,
        "text": p.text,
        "description": p.description,
        "skipped": verdict.skipped,
        "error": verdict.error,
        "words": verdict.words,
        "bounded": verdict.bounded,
        "crossed": verdict.crossed,
        "low": verdict.low,
        "text_ratio": verdict.text_ratio,
        "misreported": verdict.misreported,
        "above": verdict.above,
        "unresolved": verdict.unresolved,
        "worst_bracket": float(verdict.brackets.max(initial=0.0)),
        "seconds": verdict.seconds,
    }


def summary(rows: list[dict]) -> tuple[list[str], bool]:
    """Counts of all records, by map and by text, and whether the limits hold."""
    counted = [row for row in rows if not row["skipped"] and not row["error"]]
    words = sum(row["words"] for row in counted)
    failed = [row["seed"] for row in rows if row["error"]]
    misreported = [row["seed"] for row in counted if row["misreported"]]
    total = _counts(counted)
    lines = [
        f"{len(counted)} problems, {words} words",
        f"left out: {dict(Counter(row['skipped'] for row in rows if row['skipped']))}",
        f"exceptions: {failed}",
        f"bounds crossed: {total['crossed']} {[row['seed'] for row in counted if row['crossed']]}",
        f"problems without a bound: {total['no bound']}",
        f"words below {LOW} of the attack: {total['low']} (allowed: {words * WORDS_ALLOWED_LOW:.1f})",
        f"words below {VERY_LOW} of the attack: {total['very low']}",
        f"S below {LOW_TEXT}: {total['S low']} {[row['seed'] for row in counted if row['text_ratio'] < LOW_TEXT]}",
        f"words lost in their stated rounding error: {sum(row['unresolved'] for row in counted)}",
        f"values that their witness does not attain: {misreported}",
        f"problems where the library beats the attack by .5 % or more: {sum(row['above'] > 1.005 for row in counted)}",
        "seconds: library {:.0f}, attack {:.0f}".format(*(sum(row["seconds"][k] for row in counted) for k in (0, 1))),
    ]
    for key in ("map", "text"):
        for name in sorted({row[key] for row in counted}):
            counts = _counts([row for row in counted if row[key] == name])
            lines.append(f"  {name:<18}" + ", ".join(f"{what} {count}" for what, count in counts.items()))
    passed = not (total["crossed"] or failed or misreported or total["very low"] or total["S low"])
    return lines, passed and total["low"] <= words * WORDS_ALLOWED_LOW


def _counts(rows: list[dict]) -> dict[str, int]:
    return {
        "problems": len(rows),
        "words": sum(row["words"] for row in rows),
        "crossed": sum(len(row["crossed"]) for row in rows),
        "low": sum(len(row["low"]) for row in rows),
        "very low": sum(ratio < VERY_LOW for row in rows for _, ratio in row["low"]),
        "S low": sum(row["text_ratio"] < LOW_TEXT for row in rows),
        "no bound": sum(not row["bounded"] for row in rows),
    }


def main(arguments: list[str] | None = None) -> int:
    """Attacks the problems of a seed, or one problem; goes on with the file named by --out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--heads", type=int, default=0, help="problems besides of heads with matrices of their own, MiniLM's among them"
    )
    parser.add_argument("--integers", type=int, default=0, help="problems besides of a few rows of small integers")
    parser.add_argument("--only", type=int, help="the number of one problem, as printed")
    parser.add_argument("--budget", type=float, default=1.0, help="multiplies the attack's starts and generations")
    parser.add_argument("--certificate", default="normal", choices=EFFORTS, help="the effort of the bounds")
    parser.add_argument("--out", type=Path, help="a file of one JSON object a problem; what is in it is not done again")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    numbers = list(range(options.problems))
    for first, count in ((FIRST_OF_INTEGERS, options.integers), (FIRST_OF_HEADS, options.heads)):
        numbers += range(first, first + count)
    seeds = [options.only] if options.only is not None else [options.seed * 10**6 + i for i in numbers]
    rows = []
    if options.out and options.out.exists():
        rows = [json.loads(line) for line in options.out.read_text().splitlines()]
    done = {row["seed"] for row in rows}
    begun = time.perf_counter()
    for at, seed in enumerate(seed for seed in seeds if seed not in done):
        measure = partial(ws.word_sensitivity, certificate=options.certificate)
        verdict = judge(problem(seed), Budget(options.budget), measure)
        rows.append(record(verdict))
        if options.out:
            with options.out.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
        for line in describe(verdict):
            print(line, flush=True)
        if options.only is not None:
            print(
                verdict.problem.description,
                verdict.skipped,
                "per_word / attack",
                np.round(verdict.ratios, 4),
                "upper / attained",
                np.round(verdict.brackets, 4),
            )
        elif (at + 1) % 25 == 0:
            print(f"{len(rows)} of {len(seeds)} problems, {time.perf_counter() - begun:.0f} s", flush=True)
    lines, good = summary(rows)
    print("\n".join(lines))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
