"""All that `wordsens check` writes for a CI system: the cases of JUnit XML, and Markdown for a pull request."""

import re
from pathlib import Path

from wordsens.evaluation.check import Check


def requirement_cases(result: Check) -> dict[str, list[str]]:
    """Every requirement, and every kind that was compared with a baseline, with what fails it."""
    cases = {requirement.text: requirement.failures(result.kinds) for requirement in result.options.requirements}
    for kind in result.drops:
        told = [failure for failure in result.failures if failure.startswith(f"{kind}.auc has dropped")]
        cases[f"{kind}.auc has not dropped since the baseline"] = told
    return cases


def write_markdown(result: Check, path: str) -> None:
    """The answer, what failed, and the table of kinds."""
    lines = [f"**wordsens check: {'passed' if result.passed else 'FAILED'}**", ""]
    lines += [f"- {_escaped(failure)}" for failure in result.failures] + [""] * bool(result.failures)
    lines += [_escaped(sentence) for sentence in result.answer]
    lines += [
        "",
        "| kind | pairs | opposite (median) | paraphrase (median) | AUC | 95 % interval | recall |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in result.kinds:
        recall = "none" if row.recall is None else f"{row.recall:.0%}"
        lines.append(
            f"| {_escaped(row.kind)} | {row.pairs} | {row.median_opposite:.3f} | {row.median_same:.3f} | "
            f"{row.auc:.3f} | {row.auc_low:.3f} to {row.auc_high:.3f} | {recall} |"
        )
    lines += ["", *(f"Note: {_escaped(note)}" for note in result.notes)]
    Path(path).expanduser().write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def _escaped(text: str) -> str:
    """The text on one line, with no character that Markdown or HTML would read as its own."""
    return re.sub(r"([\\|<>*_`\[\]#])", r"\\\1", " ".join(text.split()))
