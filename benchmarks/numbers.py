"""The numbers and pictures of README and docs: how old they are, and measured again.

    python -m benchmarks.numbers --check       what is older than its code; exit code 1 if anything is
    python -m benchmarks.numbers               measure that again, up to LONG minutes each
    python -m benchmarks.numbers NAME ...      measure these again, whatever they take

A command runs in the repository's root; `{out}` in it is a folder of its own, which stays: a study
goes on where it stopped. What it prints takes the place of the blocks `<!-- measured: COMMAND -->`,
its pictures that of those of the same name. A console block of a page that begins with the command
has to show what it prints, but for `...`; where it does not, the number stays old until the page is
mended by hand. Sentences and tables are mended by hand as well: a line says which page to read
again.

docs/numbers.json says of each by which code it was last measured, when and on what. A number is old
when the code has changed since: the packages that compute, files of its own (docstrings do not
count), and the word lists and texts that it reads.
"""  # noqa: E501

import argparse
import datetime
import doctest
import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.reporting import commit, processor
from wordsens.sweeps.spec import code_version, without_docstrings

ROOT = Path(__file__).parent.parent
STAMPS = ROOT / "docs" / "numbers.json"
OUTPUTS = ROOT / "results" / "numbers"
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
LONG = 10
"""Minutes."""

WORDS, TEXTS = "src/wordsens/evaluation/words", "src/wordsens/text/shipped"
"""Folders of the package's data."""

EVALUATION = "src/wordsens/evaluation"
"""With the guard."""

STUDIES = "src/wordsens/studies"


@dataclass(frozen=True)
class Number:
    """What one command measures: where it is shown, and the code and data that it depends on."""

    name: str
    command: str
    shown: tuple[str, ...]
    code: tuple[str, ...]
    data: tuple[str, ...] = (TEXTS,)
    minutes: int = 1

    def digest(self) -> str:
        """Of the code and data of today: the packages that compute, and what this number names."""
        digest = hashlib.sha256(code_version().encode())
        for place in (*self.code, *self.data):
            path = ROOT / place
            for file in sorted(path.rglob("*.*")) if path.is_dir() else [path]:
                if file.suffix == ".py":
                    digest.update(without_docstrings(file))
                elif file.suffix != ".pyc":
                    digest.update(file.read_bytes())
        return digest.hexdigest()[:12]


def _benchmark(
    name: str,
    *code: str,
    arguments: str = "",
    shown: tuple[str, ...] = ("docs/benchmarks.md",),
    data: tuple[str, ...] = (TEXTS,),
    minutes: int = 4,
) -> Number:
    command = f"python -m benchmarks.{name} {arguments}".rstrip()
    return Number(
        name.replace("_", " "),
        command,
        shown,
        (f"benchmarks/{name}.py", *code),
        data,
        minutes,
    )


def _images(*names: str) -> tuple[str, ...]:
    return tuple(f"docs/images/{name}.png" for name in names)


DECISIONS = (TEXTS, WORDS)
TWO_SENTENCES = '"How do I enable the alarm?" "How do I disable the alarm?"'
NUMBERS = [
    Number(
        "check",
        "wordsens check minilm",
        ("README.md", "docs/check.md"),
        (EVALUATION,),
        DECISIONS,
    ),
    Number(
        "guard",
        f"wordsens guard {TWO_SENTENCES}",
        ("README.md",),
        (f"{EVALUATION}/guard",),
        (WORDS,),
    ),
    Number(
        "threshold",
        "wordsens calibrate minilm --pairs examples/pairs.csv --budget .05 --guard",
        ("docs/how-to/threshold.md",),
        (EVALUATION,),
        DECISIONS,
    ),
    Number(
        "threshold without labels",
        "wordsens calibrate minilm --texts examples/questions.csv --guard",
        ("docs/how-to/threshold.md",),
        (EVALUATION, "examples/questions.csv"),
        DECISIONS,
    ),
    Number(
        "gate",
        "wordsens check minilm --pairs examples/pairs.csv --threshold .948 --require "
        "'guarded_recall >= .9'",
        ("docs/how-to/gate.md",),
        (EVALUATION,),
        DECISIONS,
    ),
    Number(
        "explain",
        'wordsens explain minilm "How do I enable it?" "How do I disable it?"',
        ("docs/explain.md",),
        (EVALUATION,),
        (WORDS,),
    ),
    Number(
        "audit",
        "wordsens audit minilm --texts shipped --limit 25",
        ("docs/audit.md",),
        (EVALUATION,),
        DECISIONS,
    ),
    Number("measure", 'wordsens measure "I love her much"', ("README.md",), ()),
    Number(
        "start",
        'wordsens measure "The lift is not working today." --map rf,raf',
        ("docs/start.md",),
        (),
    ),
    Number(
        "paper",
        "python -m benchmarks.pictures paper {out}",
        _images("sensitivity", "raf", "report-findings", "report-figures"),
        (f"{STUDIES}/sensitivity.py",),
        minutes=4,
    ),
    _benchmark("search"),
    _benchmark("random_features"),
    _benchmark("certificates"),
    _benchmark("transformers"),
    _benchmark("on_demand", data=()),
    _benchmark("sweeps", "src/wordsens/sweeps/run.py"),
    _benchmark(
        "evaluation",
        EVALUATION,
        data=DECISIONS,
    ),
    _benchmark("operations", data=()),
    _benchmark("attack", arguments="--problems 40", data=()),
    Number(
        "full scale",
        'wordsens paper sensitivity --scale full "draw=[0, 1, 2]" --out {out}',
        ("docs/benchmarks.md",),
        (f"{STUDIES}/sensitivity.py",),
        minutes=40,
    ),
    Number(
        "attention",
        'wordsens paper attention "I love her much" "I love her smile" --out {out}',
        _images("attention"),
        (f"{STUDIES}/attention.py",),
    ),
    Number(
        "limit",
        "python -m benchmarks.pictures limit {out}",
        ("docs/theory/predictions.md", *_images("limit")),
        ("benchmarks/pictures.py",),
        (),
    ),
    Number(
        "depth",
        "wordsens paper depth --scale quick --out {out}",
        ("docs/depth.md", *_images("depth")),
        (f"{STUDIES}/depth.py",),
        minutes=5,
    ),
    Number(
        "several-words",
        "wordsens paper several-words --scale laptop --out {out}",
        _images("several-words"),
        (f"{STUDIES}/several_words.py",),
        minutes=30,
    ),
    Number(
        "similarity",
        "wordsens paper similarity --scale full --out {out}",
        ("docs/control.md", *_images("similarity")),
        (f"{STUDIES}/similarity.py",),
        minutes=15,
    ),
    Number(
        "control",
        "wordsens paper control --scale laptop --out {out}",
        ("docs/control.md", *_images("control-accuracy", "control-target", "control-along")),
        (f"{STUDIES}/control",),
        minutes=40,
    ),
    # Of IMDb reviews, which are not in the project: a table imdb.parquet beside README.md.
    Number(
        "control sentiment",
        "wordsens paper control --task sentiment --texts imdb.parquet --scale laptop --out {out}",
        ("docs/control.md", *_images("control-sentiment")),
        (f"{STUDIES}/control",),
        minutes=15,
    ),
    Number(
        "symmetry",
        "wordsens paper symmetry --scale laptop --out {out}",
        ("docs/theory/symmetry.md", *_images("symmetry")),
        (f"{STUDIES}/symmetry.py",),
        minutes=5,
    ),
    Number(
        "temperature",
        "wordsens paper temperature --scale laptop --out {out}",
        ("docs/theory/freezing.md", *_images("temperature")),
        (f"{STUDIES}/temperature.py",),
        minutes=20,
    ),
    Number(
        "generalization-words",
        "wordsens paper generalization --words-changed 64 --scale laptop --out {out}",
        ("docs/theory/generalization.md", *_images("generalization-words")),
        (f"{STUDIES}/generalization.py", f"{STUDIES}/generalization_words.py"),
        minutes=20,
    ),
    Number(
        "examples",
        "python -m wordsens.app.tasks.shipped",
        ("src/wordsens/app/static/examples.json",),
        ("src/wordsens/app/tasks", EVALUATION),
        DECISIONS,
    ),
    Number(
        "page",
        "python -m benchmarks.pictures app {out}",
        _images("app-two-texts", "app-text", "app-lines"),
        ("src/wordsens/app/tasks", EVALUATION),
        DECISIONS,
    ),
    Number(
        "picture of a check",
        "python -m benchmarks.pictures check {out}",
        _images("check"),
        (EVALUATION,),
        DECISIONS,
    ),
    # Last, since it ends the run where one of its packages is not installed.
    _benchmark(
        "models", EVALUATION, shown=("README.md", "docs/check.md"), data=DECISIONS, minutes=8
    ),
]


@dataclass(frozen=True)
class Stamp:
    """By which code a number was last measured, when and on what."""

    commit: str
    date: str
    processor: str
    code: str


def stamps() -> dict[str, Stamp]:
    """Of every number that was measured, by its name."""
    rows = json.loads(STAMPS.read_text(encoding="utf-8"))
    return {name: Stamp(**row) for name, row in rows.items()}


def why_old(number: Number, stamp: Stamp | None) -> str:
    """Why a number is old, or nothing."""
    if stamp is None:
        return f"{number.name}: never measured; {', '.join(number.shown)}"
    if stamp.code != number.digest():
        return (
            f"{number.name}: of {stamp.commit}, {stamp.date}; its code has changed since; "
            f"{', '.join(number.shown)}"
        )
    return ""


def without_number() -> Iterator[str]:
    """A line for each picture of docs/images and each block of a page that belongs to no number."""
    shown = {place for number in NUMBERS for place in number.shown}
    commands = {number.command for number in NUMBERS}
    for path in sorted((ROOT / "docs" / "images").iterdir()):
        if (place := path.relative_to(ROOT).as_posix()) not in shown:
            yield f"{place}: no number of benchmarks/numbers.py has it"
    for page in PAGES:
        for command in re.findall(
            r"^<!-- measured: (.+) -->$", page.read_text(encoding="utf-8"), re.MULTILINE
        ):
            if command not in commands:
                yield (
                    f"{page.relative_to(ROOT)}: no number of benchmarks/numbers.py is measured "
                    f"by {command}"
                )


def measure(number: Number) -> list[str]:
    """Run its command and renew what shows it. A line for each place that does not show what was
    printed."""
    out = OUTPUTS / number.name
    out.mkdir(parents=True, exist_ok=True)
    words = [word.replace("{out}", str(out)) for word in shlex.split(number.command)]
    words[0] = str(Path(sys.executable).parent / words[0])
    environment = {**os.environ, "COLUMNS": "120", "NO_COLOR": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        words, cwd=ROOT, stdout=subprocess.PIPE, encoding="utf-8", env=environment
    )
    (out / "printed.txt").write_text(done.stdout, encoding="utf-8")
    if done.returncode not in (0, 3):  # 3: a requirement of a gate failed
        raise SystemExit(
            f"{number.name}: exit code {done.returncode}; nothing was changed for it; read "
            f"{(out / 'printed.txt').relative_to(ROOT)}"
        )
    return [
        line for place in number.shown for line in renew(ROOT / place, number, done.stdout, out)
    ]


def renew(place: Path, number: Number, printed: str, out: Path) -> Iterator[str]:
    """Put what a command printed, or a picture that it left, where it is shown."""
    if place.suffix == ".json":  # the command writes it
        return
    if place.suffix == ".png":
        (picture,) = out.rglob(place.name)
        shutil.copyfile(picture, place)
        return
    text = place.read_text(encoding="utf-8")
    header, _, body = printed.strip().partition("\n\n")
    block = "\n".join(
        ["```text", *header.splitlines()[2:], "```", "", *map(str.rstrip, body.splitlines())]
    )
    page = re.sub(
        rf"(^<!-- measured: {re.escape(number.command)} -->\n).*?(^<!-- end of measured -->$)",
        lambda match: f"{match[1]}\n{block}\n\n{match[2]}",
        text,
        flags=re.MULTILINE | re.DOTALL,
    )
    if page != text:
        place.write_text(page, encoding="utf-8")
    shown = re.findall(
        rf"^```console\n\$ {re.escape(number.command)}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL
    )
    if not shown and page == text:
        print(f"  read {place.relative_to(ROOT)} again beside {out.relative_to(ROOT)}/printed.txt")
    for wanted in shown:
        if not doctest.OutputChecker().check_output(
            wanted, printed, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        ):
            yield (
                f"{place.relative_to(ROOT)} shows something else than "
                f"{out.relative_to(ROOT)}/printed.txt; mend it"
            )


def write_stamps(known: dict[str, Stamp]) -> None:
    """docs/numbers.json, in the order of the numbers."""
    rows = {number.name: asdict(known[number.name]) for number in NUMBERS if number.name in known}
    STAMPS.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> int:
    """Check, or measure and stamp one number after the other."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join(one.name for one in NUMBERS)}"
    )
    parser.add_argument("--check", action="store_true", help="measure nothing")
    options = parser.parse_args()
    if unknown := set(options.names) - {number.name for number in NUMBERS}:
        parser.error(f"no number is called {', '.join(sorted(unknown))}")
    known = stamps()
    old = {
        number.name: line for number in NUMBERS if (line := why_old(number, known.get(number.name)))
    }
    if options.check:
        lines = [*old.values(), *without_number()]
        print("\n".join(lines) or f"All {len(NUMBERS)} numbers are of today's code.")
        return bool(lines)
    failed = 0
    for number in NUMBERS:
        if number.name not in (options.names or old):
            continue
        if not options.names and number.minutes > LONG:
            print(f"{number.name}: takes about {number.minutes} minutes; ask for it by its name")
            continue
        code, began = number.digest(), time.monotonic()
        print(f"{number.name}: {number.command}", flush=True)
        wrong = measure(number)
        print("\n".join([*wrong, f"  {time.monotonic() - began:.0f} s"]), flush=True)
        failed += bool(wrong)
        if not wrong:
            today = f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}"
            known[number.name] = Stamp(
                commit(), today, f"{processor()}, Python {platform.python_version()}", code
            )
            write_stamps(known)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
