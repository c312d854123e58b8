"""The tables of `wordsens audit`, and what they say in sentences."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from wordsens.cli.terminal import stdout, table
from wordsens.fading import Fading

if TYPE_CHECKING:
    from wordsens.cli.audit_run import Audit


def print_audit(audit: "Audit", folder: Path) -> None:
    """Categories, words, layers, length, and advice."""
    console = stdout()
    summary = audit.summary
    console.print(f"{audit.map_name}: {summary.words} words of {summary.texts} texts", style="bold", markup=False)
    console.print()
    with_swaps = any(group.swap is not None for group in summary.groups)
    columns = [("words", "left"), ("count", "right"), ("S", "right"), ("removal", "right")]
    shown = table(*columns, *([("swap", "right")] if with_swaps else []))
    for group in summary.groups:
        cells = [group.category, str(group.count), f"{group.sensitivity:.3f}", f"{group.removal:.3f}"]
        if with_swaps:
            cells.append("" if group.swap is None else f"{group.swap:.3f}")
        shown.add_row(*cells)
    console.print(shown)
    console.print(
        "S: how far the word could move the output, relative to its norm, within its own rows' length; attained, so a "
        "lower bound. removal: how far masking or deleting it does."
    )
    console.print()
    _words("Reacts to function words (largest mean removal)", summary.overreacts)
    _words("Ignores content words and negations (smallest mean removal)", summary.ignores)
    if audit.layers:
        console.print("By layer", style="bold")
        layers = table(("layer", "right"), ("S", "right"), ("least head", "right"), ("most head", "right"))
        for layer in audit.layers:
            heads = list(layer.heads)
            most, least = heads.index(max(heads)), heads.index(min(heads))
            layers.add_row(
                str(layer.layer), f"{layer.sensitivity:.3f}", f"{least}: {min(heads):.3f}", f"{most}: {max(heads):.3f}"
            )
        console.print(layers)
        console.print()
    _length(audit)
    for record in audit.failed:
        console.print(Text(f"left out: {record.source}: {record.error}"))
    console.print(f"Records: {folder / 'audit.parquet'}", markup=False)


def _words(title: str, words: Sequence[tuple[str, float, int]]) -> None:
    console = stdout()
    console.print(title, style="bold")
    if not words:
        console.print("No word was measured twice or more; measure more texts or words (--words-per-text).")
    else:
        console.print(Text(", ".join(f"{word} {value:.3f} ({count})" for word, value, count in words)))
    console.print()


def _length(audit: "Audit") -> None:
    console = stdout()
    console.print("Length", style="bold")
    for kind, fits in audit.summary.exponents.items():
        parts = [f"{name} ~ n^{fit.exponent:.2f} ± {fit.standard_error:.2f}" for name, fit in fits.items()]
        console.print(f"{kind}: {', '.join(parts)}")
    multiples = sorted({multiple for fit in audit.fading for multiple in fit.means})
    shown = table(("changed word", "left"), *((f"{multiple}x", "right") for multiple in multiples), ("n^", "right"))
    for fit in audit.fading:
        means = [f"{fit.means[multiple]:.4f}" if multiple in fit.means else "" for multiple in multiples]
        shown.add_row(fit.kind, *means, f"{fit.exponent:.2f}")
    console.print("Cosine distance of a sentence's two versions, alone and in passages ever longer (times its length):")
    console.print(shown)
    for fit in audit.fading:
        console.print(advice(fit, audit.context), markup=False)
    console.print()


def advice(fit: Fading, context: int | None) -> str:
    """What the fit of one kind means for how long a passage may be.

    >>> advice(Fading("negation", {1: 0.3, 2: 0.15}, -1.0, 3.0, 0.05, 60), 512)
    'negation: keep passages under 60 tokens; past that the change falls under 0.05.'
    """
    first = next(iter(fit.means.values()))
    if first <= fit.threshold:
        return f"{fit.kind}: a change moves the output by less than {fit.threshold:g} even in a sentence alone."
    if fit.length is None:
        return f"{fit.kind}: no fall with length was measured."
    if context is not None and fit.length > context:
        return f"{fit.kind}: stays over {fit.threshold:g} up to the model's context of {context} tokens."
    return f"{fit.kind}: keep passages under {fit.length} tokens; past that the change falls under {fit.threshold:g}."
