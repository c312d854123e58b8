"""A model's cosines of pairs of known meaning, what a threshold makes of them, and what to do about
it."""

import math
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from wordsens.app.parts import (
    Box,
    Button,
    Field,
    LineChart,
    Markup,
    Site,
    Text,
    curve,
    shipped,
    table,
)
from wordsens.app.work_line import WorkLine
from wordsens.display.numbers import as_sentences
from wordsens.display.view import Marked
from wordsens.evaluation.guard.judge import CHANGES, MEASURED
from wordsens.text.pairs import LENGTHS, Pair

LISTED = 12
"""Pairs in the table."""

BIN, BINS = 0.02, 40
"""The width of a bar of cosines; how many there are of other scores."""

MOST_CHARACTERS = 200_000
"""Of pairs of one's own: some thousand pairs."""

FAILURES, HITS, EVERY = "failures", "hits", "all"
OUTCOMES = {FAILURES: "failures: wrong hits, wrong misses", HITS: "hits", EVERY: "all"}

HINT = (
    "A table with the columns first, second and same (yes or no), and kind if you like; CSV, TSV "
    "or JSON lines. Not "
    "stored."
)


class Row(NamedTuple):
    """A pair as the task `check` gives it: `refused` where the guard calls its texts different."""

    value: float
    kind: str
    same: bool
    refused: bool
    first: str
    second: str


class ModelPairs:
    """The lower part of the first screen.

    Args:
        site: the workers.
        model: the control of the model.
        threshold: of the link, or the shipped one.
        moved: called after the slider was moved.

    Attributes:
        model: whose pairs are shown.
    """

    def __init__(self, site: Site, model: Field, threshold: float, moved: Callable[[], None]):
        self._site, self._model, self._moved = site, model, moved
        self._pair: float | None = None
        self._headline = Text("h2", aria_live="polite")
        self._changes = Text("p", "", "answer")
        about = (
            f"Something else: one change, such as {CHANGES}. The package’s short pairs, until "
            "you choose others."
        )
        Text("p", about, "hint")
        with Box("section", aria_label="Pairs of known meaning"):
            self._chart = LineChart("", "", "share of the pairs")
            with Box("div", "under-chart"):
                self._slider = Field(
                    "range", "drag", "Threshold", threshold, self._slide, step=0.01
                )
            self._next = Text("p", "", "takeaway")
            self._kinds = Markup()
            with Box("div", "choices wide"):
                self._kind = Field(
                    "select",
                    "kind",
                    "Pairs of the kind",
                    EVERY,
                    self._draw,
                    options=[[EVERY, EVERY]],
                )
                options = [list(outcome) for outcome in OUTCOMES.items()]
                self._outcome = Field(
                    "select", "outcome", "Show", FAILURES, self._draw, options=options
                )
            self._listing = Markup()
        with Box("details", "more"):
            Text("summary", "Your own pairs, or longer ones")
            with Box("div", "choices"):
                options = [[name, name] for name in (*LENGTHS, EVERY)]
                self._length = Field(
                    "select", "length", "Length of the shipped pairs", LENGTHS[0], options=options
                )
                self._own = Field("textarea", "own", "Pairs of your own", "", rows=4, hint=HINT)
                file = Field("file", "own-file", "Or a file of them", "", most=MOST_CHARACTERS + 1)
                file.on("value", lambda event: self._own.show(str(event.args)))
            with Box("div", "row-of"):
                Button("Check", self.run, id="check")
        self._line = WorkLine(site)
        self._show(shipped()["check"])

    @property
    def threshold(self) -> float:
        """The similarity from which on two texts count as the same."""
        return float(self._slider.value)

    def set_threshold(self, threshold: float) -> None:
        """Move the threshold."""
        self._slider.show(threshold)
        self._draw()

    def allows(self, threshold: float) -> bool:
        """Whether the model's similarities can have that threshold: cosines one from 0 to 1."""
        return 0 <= threshold <= 1 or not self._check["cosines"]

    def mark_pair(self, value: float | None) -> None:
        """Mark the similarity of the two texts above among those of the pairs; None for that of
        another model."""
        self._pair = value
        self._draw()

    def _slide(self) -> None:
        self._draw()
        self._moved()

    async def run(self) -> None:
        """Check the chosen model on the chosen pairs."""
        fields = {"model": self._model, "length": self._length, "own": self._own}
        settings = {name: str(field.value) for name, field in fields.items()}
        if len(settings["own"]) > MOST_CHARACTERS:
            problem = (
                f"These pairs have more than {MOST_CHARACTERS:,} characters; wordsens check "
                "takes larger files."
            )
            self._line.drop()
            self._line.say(problem, problem=True)
            return
        answer = await self._line.run("check", settings)
        if answer is not None:
            self._show({**settings, **answer})
            self._moved()

    def _show(self, check: dict[str, Any]) -> None:
        """Show the pairs of a check, under the threshold that is set where their similarities may
        reach it."""
        self._check, self.model = check, check["model"]
        self._rows = [Row(*row) for row in check["rows"]]
        values = [row.value for row in self._rows]
        self._bin = BIN if check["cosines"] else (max(values) - min(values)) / BINS or 1.0
        least, self._stop = (0.0, 1.0) if check["cosines"] else (min(values), max(values))
        if not least <= self.threshold <= self._stop:
            self._slider.show(round(check["threshold"], 3))
        lowest, five = min(*values, self.threshold, self._stop - self._bin), 5 * self._bin
        self._start = round(math.floor(lowest / five) * five, 4)
        ends = {"least": self._start, "most": round(self._stop, 4), "step": self._bin / 2}
        hint = f"{check['threshold']:.3f} keeps nine of ten pairs of the same meaning."
        self._slider.change(**ends, hint=hint)
        kinds = [EVERY, *dict.fromkeys(row.kind for row in self._rows)]
        self._kind.change(options=[[kind, kind] for kind in kinds])
        if self._kind.value not in kinds:
            self._kind.show(EVERY)
        self._changes.text = as_sentences(*check["changes"])
        self._draw()

    def _draw(self) -> None:
        """Say what the threshold does to the pairs, and show them with it."""
        threshold = self.threshold
        opposites = [row for row in self._rows if not row.same]
        same = [row for row in self._rows if row.same]
        wrong, right = (
            [row for row in rows if row.value >= threshold] for rows in (opposites, same)
        )
        whose = "the package’s " if self._check["stand_ins"] else ""
        self._headline.text = (
            f"At threshold {threshold:g}, {self.model} wrongly accepts {len(wrong)} of "
            f"{len(opposites)} pairs with different meanings and correctly accepts {len(right)} of "
            f"{whose}{len(same)} pairs with the same meaning."
        )
        self._draw_chart(opposites, same)
        self._next.text = f"Next: {self._next_step(wrong, right)}"
        self._kinds.set_content(_kind_table(opposites, threshold))
        self._listing.set_content(self._chosen_pairs())

    def _draw_chart(self, opposites: list[Row], same: list[Row]) -> None:
        marks = [_mark(self.threshold, f"threshold {self.threshold:g}", "end", "solid")]
        if self._pair is not None:
            marks.append(
                _mark(self._pair, f"your two texts {self._pair:.3f}", "insideMiddleTop", "dotted")
            )
        lines = {"symbol": "none", "silent": True, "animation": False, "data": marks}
        stepped: dict[str, Any] = {"step": "middle", "symbol": "none"}
        self._chart.options["xAxis"] |= {
            "name": f"{self._check['score']} of the two texts",
            "min": self._start,
            "max": self._stop,
        }
        self._chart.draw(
            [
                curve(
                    f"something else ({len(opposites)})",
                    "opposite",
                    self._bars(opposites),
                    **stepped,
                    areaStyle={"opacity": 0.3},
                    markLine=lines,
                ),
                curve(
                    f"the same meaning ({len(same)})",
                    "same",
                    self._bars(same),
                    dashed=True,
                    **stepped,
                ),
            ],
            f"Histogram. {self._headline.text}",
        )

    def _bars(self, rows: list[Row]) -> list[list[float]]:
        """The share of the values in each bin, at the bins' middles."""
        bins = round((self._stop - self._start) / self._bin)
        counts = Counter(min(bins - 1, int((row.value - self._start) / self._bin)) for row in rows)
        return [
            [round(self._start + (at + 0.5) * self._bin, 4), counts[at] / len(rows)]
            for at in range(bins)
        ]

    def _next_step(self, wrong: list[Row], right: list[Row]) -> str:
        """The command that helps most against the wrong hits."""
        refused, lost = (sum(row.refused for row in rows) for rows in (wrong, right))
        if not wrong:
            return (
                f"“wordsens calibrate {self.model} --pairs FILE” says how sure that is for "
                "pairs like yours."
            )
        own = self._check["own"]
        whose = "of these pairs, yours," if own else "of these pairs, which are the package’s own,"
        guarded = (
            f"{whose} it refuses {refused} of the {len(wrong)} wrong hits, and {lost} of "
            "the "
            f"{len(right)} right ones"
        )
        guarded += "" if own else f"; {MEASURED}"
        if 2 * refused >= len(wrong):
            return (
                f"put the guard behind the threshold (wordsens guard): {guarded}. Then “wordsens "
                "calibrate "
                f"{self.model} --pairs FILE --guard” finds the threshold for your budget of wrong "
                "hits."
            )
        return (
            f"“wordsens tune {self.model} FOLDER --pairs FILE” trains the model to tell such pairs "
            "apart. The guard "
            f"reaches less: {guarded}."
        )

    def _chosen_pairs(self) -> str:
        """The pairs of the chosen kind and outcome: failures first, the worst on top."""
        threshold, kind, outcome = self.threshold, self._kind.value, self._outcome.value
        rows = []
        for row in self._rows:
            hit = row.value >= threshold
            if kind in (EVERY, row.kind) and (
                outcome == EVERY or (hit if outcome == HITS else hit != row.same)
            ):
                rows.append(row)
        rows.sort(key=lambda row: (row.same, row.value if row.same else -row.value))
        cells = []
        for row in rows[:LISTED]:
            texts = zip(
                (row.first, row.second),
                Pair("", row.first, row.second, row.same).changed,
                strict=True,
            )
            marked = (Marked(text, tuple(changed.split(" ... "))) for text, changed in texts)
            hit = row.value >= threshold
            judged = f"{'right' if hit == row.same else 'wrong'} {'hit' if hit else 'miss'}"
            cells.append((f"{row.value:.3f}", judged, row.kind, *marked))
        if not cells:
            return "<p>No such pair.</p>"
        title = f"{min(LISTED, len(rows))} of {len(rows)} pairs, the worst first"
        return table(title, (self._check["score"], "", "kind", "first", "second"), cells)


def _kind_table(opposites: list[Row], threshold: float) -> str:
    """A row a kind of opposite: how many are hits, and with the guard behind the threshold; the
    worst on top."""
    rows = []
    for kind in dict.fromkeys(row.kind for row in opposites):
        members = [row for row in opposites if row.kind == kind]
        hits = [row for row in members if row.value >= threshold]
        guarded = sum(not row.refused for row in hits)
        rows.append((kind, len(members), len(hits), guarded))
    rows.sort(key=lambda row: -row[2] / row[1])
    return table(
        "Pairs that mean something else, by kind",
        ("kind", "pairs", "wrong hits", "with the guard"),
        rows,
    )


def _mark(value: float, label: str, position: str, line: str) -> dict[str, Any]:
    """An upright line in a chart."""
    return {
        "xAxis": value,
        "lineStyle": {"color": "var(--ink)", "type": line, "width": 1.5},
        "label": {"formatter": label, "position": position, "color": "var(--ink)"},
    }
