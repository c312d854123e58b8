"""A model's cosines of pairs of known meaning, what a threshold makes of them, and what to do about
it."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from wordsens.app.parts import (
    Choice,
    Field,
    Fold,
    LineChart,
    Shown,
    Site,
    Tag,
    button,
    curve,
    shipped,
)
from wordsens.app.work_line import WorkLine
from wordsens.display.numbers import as_sentences
from wordsens.display.view import Marked, Table
from wordsens.evaluation.guard.judge import CHANGES, MEASURED
from wordsens.text.pairs import LENGTHS, Pair

# Pairs in the table.
LISTED = 12

# Of pairs of one's own: some thousand pairs.
MOST_CHARACTERS = 200_000

FAILURES, HITS, EVERY = "failures", "hits", "all"
OUTCOMES = {FAILURES: "failures: wrong hits, wrong misses", HITS: "hits", EVERY: "all"}

ABOUT = (
    f"Different meaning: one change, such as {CHANGES}. These are the package’s short pairs, until "
    "you choose others."
)

HINT = (
    "A table with the columns first, second and same (yes or no), and kind if you like; CSV, TSV "
    "or JSON lines. Not stored."
)


class ModelPairs:
    """The lower part of the first screen.

    Args:
        site: the workers.
        model: the control of the model.
        slid: called with the threshold of the slider.

    Attributes:
        check: what the task `check` gave, with its model.
    """

    def __init__(self, site: Site, model: Field, slid: Callable[[float], None]):
        self.check = shipped()["check"]
        self._site, self._model = site, model
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
            self._kinds = Shown()
            with Tag("div", classes="choices wide"):
                every = {EVERY: EVERY}
                self._kind = Choice("kind", "Pairs of the kind", every, EVERY, self._list)
                self._outcome = Choice("outcome", "Show", OUTCOMES, FAILURES, self._list)
            self._listing = Shown()
        with Fold("Your own pairs, or longer ones"):
            with Tag("div", classes="choices"):
                lengths = {name: name for name in (*LENGTHS, EVERY)}
                label = "Length of the shipped pairs"
                self._length = Choice("length", label, lengths, LENGTHS[0])
                self._own = Field("textarea", "own", "Pairs of your own", "", rows=4, hint=HINT)
                file = Field("file", "own-file", "Or a file of them", "", most=MOST_CHARACTERS + 1)
                file.on("value", lambda event: self._own.show(str(event.args)))
            with Tag("div", classes="row-of"):
                button("Check", self.run, id="check")
        self._line = WorkLine(site)
        self._threshold, self._slid = self.check["threshold"], slid
        self._prepare()

    def allows(self, threshold: float) -> bool:
        """Whether the model's similarities can have that threshold: cosines one from 0 to 1."""
        return 0 <= threshold <= 1 or not self.check["cosines"]

    async def run(self) -> None:
        """Check the chosen model on the chosen pairs."""
        fields = {"model": self._model, "length": self._length, "own": self._own}
        settings = {name: str(field.value) for name, field in fields.items()}
        if len(settings["own"]) > MOST_CHARACTERS:
            self._line.drop()
            self._line.say(
                f"These pairs have more than {MOST_CHARACTERS:,} characters; wordsens check takes "
                "larger files.",
                problem=True,
            )
            return
        answer = await self._line.run("check", settings)
        if answer is not None:
            self.check = {**settings, **answer}
            self._prepare()
            edges = answer["edges"]
            reached = edges[0] <= self._threshold <= edges[-1] or answer["cosines"]
            self._slid(self._threshold if reached else round(answer["threshold"], 3))

    def _prepare(self) -> None:
        """Fit the slider and the list of kinds to the pairs."""
        edges = self.check["edges"]
        hint = f"{self.check['threshold']:.3f} keeps nine of ten pairs of the same meaning."
        step = round((edges[1] - edges[0]) / 2, 4)
        self._slider.change(least=edges[0], most=edges[-1], step=step, hint=hint)
        kinds = (EVERY, *(row["kind"] for row in self.check["rows"]))
        self._kind.offer({kind: kind for kind in kinds})
        self._changes.text = as_sentences(*self.check["changes"])

    def draw(self, threshold: float, pair: float | None) -> None:
        """Say what the threshold does to the pairs, and show them with it and with the similarity
        of the two texts above; None where that is of another model."""
        self._threshold = threshold
        if self._slider.value != threshold:  # it may be dragged right now
            self._slider.show(threshold)
        wrong, right = self._hits(same=False), self._hits(same=True)
        opposites, same = (
            sum(row["same"] is meaning for row in self.check["rows"]) for meaning in (False, True)
        )
        whose = "the package’s " if self.check["stand_ins"] else ""
        self._headline.text = (
            f"At threshold {threshold:g}, {self.check['model']} wrongly accepts {len(wrong)} of "
            f"{opposites} pairs with different meanings and correctly accepts {len(right)} of "
            f"{whose}{same} pairs with the same meaning."
        )
        marks = [_mark(threshold, f"threshold {threshold:g}", "end", "solid")]
        if pair is not None:
            marks.append(_mark(pair, f"your two texts {pair:.3f}", "insideMiddleTop", "dotted"))
        self._draw_chart(opposites, same, marks)
        self._next.text = f"Next: {self._next_step(wrong, right)}"
        self._kinds.show(self._kind_table())
        self._list()

    def _hits(self, *, same: bool) -> list[dict[str, Any]]:
        return [
            row
            for row in self.check["rows"]
            if row["same"] is same and row["value"] >= self._threshold
        ]

    def _draw_chart(self, opposites: int, same: int, marks: list[dict[str, Any]]) -> None:
        edges = self.check["edges"]
        middles = [(low + high) / 2 for low, high in pairwise(edges)]
        bars = [list(zip(middles, each, strict=True)) for each in self.check["shares"]]
        axis = {"name": f"{self.check['score']} of the two texts"}
        self._chart.options["xAxis"] |= axis | {"min": edges[0], "max": edges[-1]}
        stepped: dict[str, Any] = {"step": "middle", "symbol": "none"}
        lines = {"symbol": "none", "silent": True, "animation": False, "data": marks}
        shaded = {**stepped, "areaStyle": {"opacity": 0.3}, "markLine": lines}
        self._chart.props["aria-label"] = f"Histogram. {self._headline.text}"
        self._chart.draw(
            [
                curve(f"different meaning ({opposites})", "opposite", bars[0], **shaded),
                curve(f"the same meaning ({same})", "same", bars[1], dashed=True, **stepped),
            ]
        )

    def _next_step(self, wrong: list[dict[str, Any]], right: list[dict[str, Any]]) -> str:
        """The command that helps most against the wrong hits."""
        model, own = self.check["model"], self.check["own"]
        refused, lost = (sum(row["refused"] for row in rows) for rows in (wrong, right))
        if not wrong:
            return (
                f"“wordsens calibrate {model} --pairs FILE” says how sure that is for pairs like "
                "yours."
            )
        whose = "of these pairs, yours," if own else "of these pairs, which are the package’s own,"
        guarded = (
            f"{whose} it refuses {refused} of the {len(wrong)} wrong hits, and {lost} of the "
            f"{len(right)} right ones"
        )
        guarded += "" if own else f"; {MEASURED}"
        if 2 * refused >= len(wrong):
            return (
                f"check cache hits with the guard (wordsens guard): {guarded}. Then “wordsens "
                f"calibrate {model} --pairs FILE --guard” finds the threshold for your budget of "
                "wrong hits."
            )
        return (
            f"“wordsens tune {model} FOLDER --pairs FILE” trains the model to tell such pairs "
            f"apart. The guard reaches less: {guarded}."
        )

    def _kind_table(self) -> Table:
        """One row per kind of opposite: how many are hits, and how many with the guard behind the
        threshold; the worst first."""
        opposites = [row for row in self.check["rows"] if not row["same"]]
        rows = []
        for kind in dict.fromkeys(row["kind"] for row in opposites):
            members = [row for row in opposites if row["kind"] == kind]
            hits = [row for row in self._hits(same=False) if row["kind"] == kind]
            rows.append((kind, len(members), len(hits), sum(not row["refused"] for row in hits)))
        rows.sort(key=lambda row: -row[2] / row[1])
        headings = "kind", "pairs", "wrong hits", "with the guard"
        title = "Pairs with different meanings, by kind"
        return Table.of_rows(title, headings, rows, most=len(rows))

    def _list(self) -> None:
        """List the pairs of the chosen kind and outcome: failures first, the worst on top."""
        kind, outcome = self._kind.value, self._outcome.value
        cells = []
        for row in sorted(self.check["rows"], key=_worst_first):
            hit, same = row["value"] >= self._threshold, row["same"]
            wanted = outcome == EVERY or (hit if outcome == HITS else hit != same)
            if not wanted or kind not in (EVERY, row["kind"]):
                continue
            changed = Pair("", row["first"], row["second"], same).changed
            texts = zip((row["first"], row["second"]), changed, strict=True)
            marked = (Marked(text, tuple(parts.split(" ... "))) for text, parts in texts)
            judged = f"{'right' if hit == same else 'wrong'} {'hit' if hit else 'miss'}"
            cells.append((f"{row['value']:.3f}", judged, row["kind"], *marked))
        title = f"{min(LISTED, len(cells))} of {len(cells)} pairs, the worst first"
        headings = self.check["score"], "", "kind", "first", "second"
        table = Table.of_rows(title, headings, cells[:LISTED])
        self._listing.show(table if cells else "No such pair.")


def _worst_first(row: dict[str, Any]) -> tuple[bool, float]:
    return row["same"], row["value"] if row["same"] else -row["value"]


def _mark(value: float, label: str, position: str, line: str) -> dict[str, Any]:
    """An upright line in a chart."""
    return {
        "xAxis": value,
        "lineStyle": {"color": "var(--ink)", "type": line, "width": 1.5},
        "label": {"formatter": label, "position": position, "color": "var(--ink)"},
    }
