"""A model's cosines of pairs of known meaning, what a threshold makes of them, and what to do about
it."""

import math
from collections.abc import Callable
from typing import Any

import pandas as pd
from nicegui import ui

from wordsens.app.parts import (
    Field,
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
from wordsens.evaluation.guard.judge import MEASURED
from wordsens.text.pairs import LENGTHS, Pair

# Pairs in the table.
LISTED = 12

# Of a visitor's own pairs: some thousand of them.
MOST_CHARACTERS = 200_000
TOO_LONG = InputError(
    f"These pairs have more than {MOST_CHARACTERS:,} characters; wordsens check takes larger files."
)

EVERY = "all"

ABOUT = (
    "Opposites: two texts with different meanings, such as a text with and without “not”, "
    "or with another number or name. Near-duplicates: two texts with the same meaning. "
    "These are the package’s short pairs until you check others."
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
        self._slid = slid
        with Tag("div", classes="stage pairs"):
            with Tag("section", classes="colours", aria_label="The model", id="pairs"):
                self._headline = Tag("h2", aria_live="polite")
                self._changes = Tag("p", "", "answer")
                Tag("p", ABOUT, "hint")
                self._chart = LineChart("", {}, {})
                with Tag("div", classes="under-chart"):
                    self._slider = Field(
                        "range", "drag", "Threshold", 0.0, lambda: slid(float(self._slider.value))
                    )
                self._next = Tag("p", "", "takeaway")
                self._commands = Tag("pre", "", "commands", tabindex="0")
            with Tag("section", classes="form", aria_label="Your own pairs"):
                self._own = Field(
                    *("textarea", "own", "Your own pairs", ""), rows=4, lines=True, hint=HINT
                )
                file = Field("file", "own-file", "Or a file of pairs", "", most=MOST_CHARACTERS + 1)
                file.on("value", lambda event: self._own.show(str(event.args)))
                self._length = Field(
                    *("select", "length", "Or the package’s pairs, by length", LENGTHS[0]),
                    options={name: name for name in (*LENGTHS, EVERY)},
                )
                with Tag("div", classes="row-of"):
                    button("Check", self.run, id="check")
                self._line = WorkLine(pool)
            with Tag("section", classes="details", aria_label="Pairs of known meaning"):
                self._kinds = markup()
                with Tag("div", classes="choices wide"):
                    label = "False hits and misses to list"
                    self._kind = Field("select", "kind", label, EVERY, self._list)
                self._listing = markup()
        self._prepare()

    def threshold_of(self, typed: str) -> float | None:
        """The number that was typed, where the model's similarities can have that threshold."""
        try:
            threshold = float(typed)
        except ValueError:
            return None
        possible = abs(threshold) <= 1 if self.check["cosines"] else math.isfinite(threshold)
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
            ui.run_javascript(
                "document.querySelector('#pairs h2').scrollIntoView({block: 'nearest'})"
            )

    def _prepare(self) -> None:
        """Fit the slider and the list of kinds to the pairs."""
        self._rows: Any = pd.DataFrame(self.check["rows"])
        edges = self.check["edges"]
        hint = f"At {self.check['threshold']:.3f}, nine of ten near-duplicates are accepted."
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
            f"{opposites['hit'].sum()} of {len(opposites)} opposites "
            f"and correctly accepts {same['hit'].sum()} of {whose}{len(same)} near-duplicates."
        )
        marks = [_mark(threshold, f"threshold {threshold:g}", "end", "solid")]
        if pair is not None:
            marks.append(_mark(pair, f"your two texts {pair:.3f}", "insideMiddleTop", "dotted"))
        self._draw_chart(len(opposites), len(same), marks)
        self._next.text, self._commands.text = self._next_step(opposites, same)
        self._list_kinds(opposites)
        self._list()

    def _draw_chart(self, opposites: int, same: int, marks: list[dict[str, Any]]) -> None:
        edges = self.check["edges"]
        # Each bin from its lower edge to its upper one, the last one too.
        bars = [
            [(edge, 100 * share) for edge, share in zip(edges, [*each, each[-1]], strict=True)]
            for each in self.check["shares"]
        ]
        self._chart.options["xAxis"] |= {
            "name": f"{self.check['score']} of the two texts",
            "min": edges[0],
            "max": edges[-1],
        }
        self._chart.options["yAxis"]["name"] = (
            f"% of the pairs per bin of {edges[1] - edges[0]:.2g}"
        )
        stepped: dict[str, Any] = {"step": "end", "showSymbol": False}
        lines = {"symbol": "none", "silent": True, "animation": False, "data": marks}
        shaded = {**stepped, "areaStyle": {"opacity": 0.3}, "markLine": lines}
        self._chart.props["aria-label"] = f"Histogram. {self._headline.text}"
        self._chart.draw(
            [
                curve(f"near-duplicates (same meaning): {same}", "same", bars[1], **stepped),
                curve(f"opposites: {opposites}", "opposite", bars[0], **shaded),
            ]
        )

    def _next_step(self, opposites: Any, same: Any) -> tuple[str, str]:
        """What helps most against the false hits, and its commands."""
        model = self.check["model"]
        wrong, right = opposites[opposites["hit"]], same[same["hit"]]
        calibrate = f"wordsens calibrate {model} --pairs FILE"
        if not len(wrong):
            return "Next: find out how reliable that is for pairs like yours.", calibrate
        rejected, lost = wrong["refused"].sum(), right["refused"].sum()
        measured = "" if self.check["own"] else f" ({MEASURED})"
        return (
            "Next: check cache hits with the guard (wordsens guard). "
            f"It rejects {rejected} of the {len(wrong)} false hits "
            f"and {lost} of the {len(right)} correct hits{measured}. "
            "Then find the threshold for your budget of false hits, "
            "or teach the model such pairs:",
            "wordsens guard --pairs FILE --out judged.csv\n"
            f"{calibrate} --guard\nwordsens tune {model} FOLDER --pairs FILE",
        )

    def _list_kinds(self, opposites: Any) -> None:
        """One row per kind of opposites, the kind with most false hits on top."""
        passed = opposites["hit"] & ~opposites["refused"]
        counted = {"pairs": ("hit", "size"), "false hits": ("hit", "sum")}
        counted |= {"left with the guard": ("passed", "sum"), "share": ("hit", "mean")}
        kinds = opposites.assign(passed=passed).groupby("kind").agg(**counted)
        worst = kinds.sort_values("share", ascending=False).drop(columns="share").reset_index()
        table = Table("Opposites by kind", worst.to_dict("list"), most=len(worst))
        self._kinds.set_content(html_part(View("", (table,))))

    def _list(self) -> None:
        """List the false hits and misses of the chosen kind, the worst on top."""
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
            judged = "false hit" if row.hit else "false miss"
            cells.append((f"{row.value:.3f}", judged, row.kind, *marked))
        title = f"{len(worst)} of {len(failed)} false hits and misses, worst first"
        headings = self.check["score"], "error", "kind", "first", "second"
        table = (
            Table.of_rows(title, headings, cells) if cells else "No false hit and no false miss."
        )
        self._listing.set_content(html_part(View("", (table,))))


def _mark(value: float, label: str, position: str, line: str) -> dict[str, Any]:
    """An upright line in a chart."""
    return {
        "xAxis": value,
        "lineStyle": {"color": "var(--ink)", "type": line, "width": 1.5},
        "label": {"formatter": label, "position": position, "color": "var(--ink)"},
    }
