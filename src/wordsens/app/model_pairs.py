"""A model's cosines of pairs of known meaning, what a threshold makes of them, and what to do about
it."""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pandas as pd

from wordsens.app.parts import (
    Field,
    Fold,
    LineChart,
    Tag,
    button,
    curve,
    markup,
    shipped,
)
from wordsens.app.pool import Pool
from wordsens.app.work_line import WorkLine
from wordsens.display.html import html_part
from wordsens.display.numbers import as_sentences
from wordsens.display.view import Marked, Table, View
from wordsens.errors import InputError
from wordsens.evaluation.guard.judge import CHANGES, MEASURED
from wordsens.text.pairs import LENGTHS, Pair

# Pairs in the table.
LISTED = 12

# Of pairs of one's own: some thousand pairs.
MOST_CHARACTERS = 200_000
TOO_LONG = InputError(
    f"These pairs have more than {MOST_CHARACTERS:,} characters; wordsens check takes larger files."
)

EVERY = "all"

ABOUT = (
    f"Different meaning: one change, such as {CHANGES}. "
    "These are the package’s short pairs, until you choose others."
)

HINT = (
    "A table with the columns first, second and same (yes or no), and kind if you like; "
    "CSV, TSV or JSON lines. Not stored."
)


class ModelPairs:
    """The lower part of the first screen.

    Args:
        pool: the workers.
        model: the control of the model.
        slid: called with the threshold of the slider.

    Attributes:
        check: what the task `check` gave, with its model.
    """

    def __init__(self, pool: Pool, model: Field, slid: Callable[[float], None]):
        self.check = shipped()["check"]
        self._model = model
        self._headline = Tag("h2", aria_live="polite")
        self._changes = Tag("p", "", "answer")
        Tag("p", ABOUT, "hint")
        with Tag("section", aria_label="Pairs of known meaning"):
            self._chart = LineChart("", {}, {"name": "share of the pairs"})
            with Tag("div", classes="under-chart"):
                self._slider = Field(
                    "range", "drag", "Threshold", 0.0, lambda: slid(float(self._slider.value))
                )
            self._next = Tag("p", "", "takeaway")
            self._kinds = markup()
            with Tag("div", classes="choices wide"):
                label = "Wrong hits and wrong misses of the kind"
                self._kind = Field("select", "kind", label, EVERY, self._list)
            self._listing = markup()
        with Fold("Your own pairs, or longer ones"):
            with Tag("div", classes="choices"):
                self._length = Field(
                    *("select", "length", "Length of the shipped pairs", LENGTHS[0]),
                    options={name: name for name in (*LENGTHS, EVERY)},
                )
                self._own = Field("textarea", "own", "Pairs of your own", "", rows=4, hint=HINT)
                file = Field("file", "own-file", "Or a file of them", "", most=MOST_CHARACTERS + 1)
                file.on("value", lambda event: self._own.show(str(event.args)))
            with Tag("div", classes="row-of"):
                button("Check", self.run, id="check")
        self._line = WorkLine(pool)
        self._slid = slid
        self._prepare()

    def threshold_of(self, typed: str) -> float | None:
        """The number that was typed, where the model's similarities can have that threshold."""
        try:
            threshold = float(typed)
        except ValueError:
            return None
        possible = 0 <= threshold <= 1 if self.check["cosines"] else math.isfinite(threshold)
        return threshold if possible else None

    async def run(self) -> None:
        """Check the chosen model on the chosen pairs."""
        fields = {"model": self._model, "length": self._length, "own": self._own}
        settings = {name: str(field.value) for name, field in fields.items()}
        if len(settings["own"]) > MOST_CHARACTERS:
            self._line.refuse(TOO_LONG)
            return
        answer = await self._line.run("check", settings)
        if answer is not None:
            self.check = {**settings, **answer}
            self._prepare()
            edges = answer["edges"]
            threshold = float(self._slider.value)
            reached = edges[0] <= threshold <= edges[-1] or answer["cosines"]
            self._slid(threshold if reached else round(answer["threshold"], 3))

    def _prepare(self) -> None:
        """Fit the slider and the list of kinds to the pairs."""
        self._rows: Any = pd.DataFrame(self.check["rows"])
        edges = self.check["edges"]
        hint = f"{self.check['threshold']:.3f} keeps nine of ten pairs of the same meaning."
        step = round((edges[1] - edges[0]) / 2, 4)
        self._slider.change(least=edges[0], most=edges[-1], step=step, hint=hint)
        self._kind.change(options={kind: kind for kind in (EVERY, *self._rows["kind"])})
        self._changes.text = as_sentences(*self.check["changes"])

    def draw(self, threshold: float, pair: float | None) -> None:
        """Say what the threshold does to the pairs, and show them with it and with the similarity
        of the two texts above; None where that is of another model."""
        if self._slider.value != threshold:  # it may be dragged right now
            self._slider.show(threshold)
        self._rows["hit"] = self._rows["value"] >= threshold
        opposites, same = self._rows[~self._rows["same"]], self._rows[self._rows["same"]]
        whose = "the package’s " if self.check["stand_ins"] else ""
        self._headline.text = (
            f"At threshold {threshold:g}, {self.check['model']} wrongly accepts "
            f"{opposites['hit'].sum()} of {len(opposites)} pairs with different meanings "
            f"and correctly accepts {same['hit'].sum()} of {whose}{len(same)} pairs "
            "with the same meaning."
        )
        marks = [_mark(threshold, f"threshold {threshold:g}", "end", "solid")]
        if pair is not None:
            marks.append(_mark(pair, f"your two texts {pair:.3f}", "insideMiddleTop", "dotted"))
        self._draw_chart(len(opposites), len(same), marks)
        self._next.text = f"Next: {self._next_step(opposites, same)}"
        self._list_kinds(opposites)
        self._list()

    def _draw_chart(self, opposites: int, same: int, marks: list[dict[str, Any]]) -> None:
        edges = self.check["edges"]
        middles = [(low + high) / 2 for low, high in pairwise(edges)]
        bars = [list(zip(middles, each, strict=True)) for each in self.check["shares"]]
        axis = {"name": f"{self.check['score']} of the two texts"}
        self._chart.options["xAxis"] |= axis | {"min": edges[0], "max": edges[-1]}
        stepped: dict[str, Any] = {"step": "middle", "showSymbol": False}
        lines = {"symbol": "none", "silent": True, "animation": False, "data": marks}
        shaded = {**stepped, "areaStyle": {"opacity": 0.3}, "markLine": lines}
        self._chart.props["aria-label"] = f"Histogram. {self._headline.text}"
        self._chart.draw(
            [
                curve(f"different meaning ({opposites})", "opposite", bars[0], **shaded),
                curve(f"the same meaning ({same})", "same", bars[1], dashed=True, **stepped),
            ]
        )

    def _next_step(self, opposites: Any, same: Any) -> str:
        """The command that helps most against the wrong hits."""
        model = self.check["model"]
        wrong, right = opposites[opposites["hit"]], same[same["hit"]]
        calibrate = f"“wordsens calibrate {model} --pairs FILE"
        if not len(wrong):
            return f"{calibrate}” says how sure that is for pairs like yours."
        refused, lost = wrong["refused"].sum(), right["refused"].sum()
        measured = "" if self.check["own"] else f" ({MEASURED})"
        return (
            "check cache hits with the guard (wordsens guard). "
            f"It refuses {refused} of the {len(wrong)} wrong hits, "
            f"and {lost} of the {len(right)} right ones{measured}. "
            f"Then {calibrate} --guard” finds the threshold for your budget of wrong hits, "
            f"and “wordsens tune {model} FOLDER --pairs FILE” teaches the model such pairs."
        )

    def _list_kinds(self, opposites: Any) -> None:
        """One row per kind of opposites, the kind with most wrong hits on top."""
        passed = opposites["hit"] & ~opposites["refused"]
        counted = {"pairs": ("hit", "size"), "wrong hits": ("hit", "sum")}
        counted |= {"with the guard": ("passed", "sum"), "share": ("hit", "mean")}
        kinds = opposites.assign(passed=passed).groupby("kind").agg(**counted)
        worst = kinds.sort_values("share", ascending=False).drop(columns="share").reset_index()
        title = "Pairs with different meanings, by kind"
        table = Table(title, worst.to_dict("list"), most=len(worst))
        self._kinds.set_content(html_part(View("", (table,))))

    def _list(self) -> None:
        """List the wrong hits and misses of the chosen kind, the worst on top."""
        rows, kind = self._rows, self._kind.value
        chosen = rows["kind"].isin([kind] if kind != EVERY else rows["kind"])
        failed = rows[chosen & (rows["hit"] != rows["same"])]
        order = failed["value"].where(failed["same"], -failed["value"])
        worst = failed.assign(order=order).sort_values(["same", "order"])[:LISTED]
        cells = []
        for row in worst.itertuples():
            texts = row.first, row.second
            changed = Pair("", *texts, row.same).changed
            marked = map(Marked, texts, (tuple(parts.split(" ... ")) for parts in changed))
            judged = "wrong hit" if row.hit else "wrong miss"
            cells.append((f"{row.value:.3f}", judged, row.kind, *marked))
        title = f"{len(worst)} of {len(failed)} wrong hits and misses, the worst first"
        headings = self.check["score"], "", "kind", "first", "second"
        table = Table.of_rows(title, headings, cells) if cells else "There is none."
        self._listing.set_content(html_part(View("", (table,))))


def _mark(value: float, label: str, position: str, line: str) -> dict[str, Any]:
    """An upright line in a chart."""
    return {
        "xAxis": value,
        "lineStyle": {"color": "var(--ink)", "type": line, "width": 1.5},
        "label": {"formatter": label, "position": position, "color": "var(--ink)"},
    }
