"""`wordsens check` on other files than pairs: a canary, and NevIR-style query pairs."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from wordsens.cli.terminal import notice, print_json, printing, reporting, stdout
from wordsens.errors import InputError, RequirementError
from wordsens.version import __version__

if TYPE_CHECKING:
    from wordsens.cli.check import CheckRequest
    from wordsens.evaluation.query_pairs import PairedAccuracy

_OF_PAIRS = (
    "texts", "kinds", "threshold", "csv_file", "html", "guard", "layers", "baseline", "save_baseline", "write_pairs",
    "all_pairs",
)  # fmt: skip
_OPTIONS = {"kinds": "kind", "requirements": "require", "csv_file": "csv"}
_SHOWN = 5


def run_canary(request: "CheckRequest") -> None:
    """Write the canary, or compare the model with it; RequirementError where another model answers."""
    from wordsens.evaluation.canary import Canary

    _refuse(request, "--canary", (*_OF_PAIRS[1:], "pairs", "requirements", "junit", "markdown"))
    path = str(request.canary)
    saved = None if request.write else Canary.read(path)
    model = request.load()
    if saved is None:
        texts = None if request.texts is None else [document.text for document in request.documents()]
        written = Canary.stamp(model, texts)
        written.save(path)
        if not request.quiet:
            notice(f"{len(written.texts)} texts and their vectors are in {path}; compare with: --canary {path}")
        return
    moved = saved.compare(model)
    with printing():
        if request.as_json:
            print_json({**_head("canary", moved.model), **moved.to_dict()})
        else:
            stdout().print(Text(moved.answer, style="bold" if moved.same else "bold red"))
    if not moved.same:
        raise RequirementError(f"{path} was written by another model than {moved.model}")


def holds_query_pairs(request: "CheckRequest") -> bool:
    """True where --pairs is a file with the columns of query pairs."""
    from wordsens.evaluation.query_pairs import holds_groups

    return request.pairs is not None and holds_groups(request.pairs, request.encoding)


def run_query_pairs(request: "CheckRequest") -> None:
    """The paired accuracy on NevIR-style groups; RequirementError where a requirement fails."""
    from wordsens.evaluation.query_pairs import paired_accuracy, read_groups

    _refuse(request, "query pairs (q1, q2, doc1, doc2)", _OF_PAIRS)
    groups = [asdict(group) for group in read_groups(str(request.pairs), encoding=request.encoding)]
    model = request.load()
    with reporting(1, "of the texts", quiet=request.quiet) as report:
        result = paired_accuracy(
            model, groups, prompt_names=request.prompt_names or (), requirements=request.requirements or (),
            progress=lambda done, total: report.update(done / total, now=""),
        )  # fmt: skip
    if request.junit is not None:
        from wordsens.cli.junit import write_junit

        cases = {text: [one for one in result.failures if text in one] for text in request.requirements or ()}
        write_junit(request.junit, f"wordsens check {result.model}", "wordsens.check", cases)
    if request.markdown is not None:
        lines = [*(f"FAILED: {failure}" for failure in result.failures), result.answer]
        Path(request.markdown).expanduser().write_text("\n\n".join(lines) + "\n", encoding="utf-8")
    with printing():
        if request.as_json:
            print_json({**_head("query pairs", result.model), **result.to_dict()})
        else:
            _print_groups(result)
    if not result.passed:
        raise RequirementError(f"a requirement is not met: {'; '.join(result.failures)}")


def _print_groups(result: "PairedAccuracy") -> None:
    console = stdout()
    console.print(Text(result.answer, style="bold"))
    for failure in result.failures:
        console.print(Text(f"FAILED: {failure}", style="bold red"))
    for group in result.wrong[:_SHOWN]:
        console.print(f"  wrong: {group.q1} / {group.q2}")
    if len(result.wrong) > _SHOWN:
        console.print(f"  and {len(result.wrong) - _SHOWN} more; --json has every group with its scores")


def _head(kind: str, model: str) -> dict[str, Any]:
    return {"command": "check", "version": __version__, "of": kind, "model": model}


def _refuse(request: "CheckRequest", what: str, names: tuple[str, ...]) -> None:
    """InputError for an option that this kind of check does not use."""
    for name in names:
        if getattr(request, name):
            option = _OPTIONS.get(name, name).replace("_", "-")
            raise InputError(f"--{option} does not go with {what}; leave it out")
