"""The view of one measured text: its words in colour on one scale, a card for the chosen word, attention as lines."""

import asyncio
import shlex
from collections.abc import Callable
from dataclasses import asdict
from html import escape
from typing import Any
from urllib.parse import urlencode

from nicegui import ui

from wordsens.app.parts import Box, Button, ColouredWords, Lines, Markup, Site, Text, grid, number, table
from wordsens.app.pool import Job
from wordsens.app.request import BOTH, MeasureRequest
from wordsens.app.work_line import kind_message
from wordsens.app.worker import DONE, LOST, PART
from wordsens.display.content import LEVELS, STRONGEST, colour_share
from wordsens.errors import WordsensError

PICK_SECONDS = 0.12
"""Seconds that a word must stay chosen before it is looked into: arrow keys run over many."""

FILES = {
    "report": ("Report", "wordsens-report.html", "text/html"),
    "records": ("Records", "wordsens-records.parquet", "application/octet-stream"),
    "figure": ("Figure", "wordsens-figure.png", "image/png"),
}

_NAMES = {"raf": "Attention", "rf": "Fully connected"}
_STALE = "The settings have changed. Press Measure, or Enter in the text, for new numbers."
_SCALE = (
    "<span class='sr'>Colours: </span>Change of the output, in times its size: 0 <span class='ramp' aria-hidden='true'>"
    + "".join(f"<i class='s{level}'></i>" for level in range(LEVELS))
    + f"</span> {STRONGEST:g} or more"
)


class Measurement:
    """The view of one request, in two places: the coloured words, and what is known of one of them.

    Args:
        site: the workers.
        request: the settings.
        colours, details: the places.
        unknown: called with a row of which nothing can be known yet, of a result that was shipped.
    """

    def __init__(self, site: Site, request: MeasureRequest, colours: Box, details: Box, unknown: Callable[[int], Any]):
        self.request = request
        self.answers: dict[str, dict[str, Any]] = {}
        self._site, self._unknown = site, unknown
        self._visitor = ui.context.client.id
        self._known: dict[int, dict[str, dict[str, Any]]] = {}
        """What was looked into: by row and map."""
        self._row: int | None = None
        self._job: Job | None = None
        ui.context.client.on_delete(self.close)
        with colours, Box("article", "result") as self.box:
            self._stale = Text("p", "", "stale-note", role="status")
            self._sentence = Text("h2", "", "answer")
            self._readers = {single.map: _Reader(single, self.pick) for single in request.single}
            Markup(_SCALE, "scale")
            self._note = Text("p", "", "hint")
        with details, Box("div", "detail") as self.detail:
            with Box("div", "word"):
                self._card = Markup("", "card", role="status", aria_live="polite")
            with Box("div"):
                self._lines_sentence = Text("h3")
                self._lines = Lines()
                with Box("details", "more") as self._numbers:
                    Text("summary", "The numbers: attention before and after")
                    self._grids = Markup()
            self._numbers.set_visibility(False)

    @property
    def complete(self) -> bool:
        """True once every map was measured here, which a shipped result was not."""
        return len(self.answers) == len(self._readers) and all("witnesses" in each for each in self.answers.values())

    def part(self, name: str, value: dict[str, Any]) -> None:
        """Show a first look at the words under one map."""
        if "pieces" in value:
            self._readers[name].words.show(value)

    def add(self, name: str, answer: dict[str, Any]) -> None:
        """Show the answer of one map, and once all are there what they say together."""
        self.answers[name] = answer
        self._readers[name].show(answer)
        if len(self.answers) == len(self._readers):
            together = f"In this text one word {comparison(self.answers)}" if self.request.map == BOTH else ""
            self._sentence.text = together
            self._note.text = " ".join([unknown_note(answer), *map(kind_message, answer["notes"])])

    async def finish(self, row: int | None = None) -> None:
        """Offer the files, and show a word in detail: that of the row, the chosen one, or the most sensitive one."""
        with self.detail:
            self._downloads()
        chosen, self._row = self._row, None
        best = next(iter(self.answers.values()))["row"]
        await self.pick(next(each for each in (row, chosen, best) if each is not None))
        if row is not None:  # the reader was on this word when the view was renewed
            ui.run_javascript("setTimeout(() => document.querySelector('#result .w.here')?.focus(), 100)")

    def show_shipped(self, answers: dict[str, dict[str, Any]]) -> None:
        """Show answers that were computed beforehand, with the detail of their most sensitive word."""
        for name, answer in answers.items():
            self.add(name, answer)
        self._sentence.text = ""  # the heading of the page says it
        self._row = row = next(iter(answers.values()))["row"]
        self._known[row] = {name: answer["detail"] for name, answer in answers.items()}
        self._show(row)

    def mark(self, reason: str = _STALE, *, stale: bool = True) -> None:
        """Grey the result where it does not belong to the settings, or is not complete."""
        for box in (self.box, self.detail):
            box.classes(add="stale") if stale else box.classes(remove="stale")
        self._stale.text = reason if stale else ""

    async def pick(self, row: int) -> None:
        """Look into the word of that row, part by part."""
        if row == self._row:
            return
        self._row = row
        self._show(row)
        self._cancel()
        await asyncio.sleep(PICK_SECONDS)
        if self._row != row or len(self.answers) < len(self._readers) or self.detail.is_deleted:
            return
        if not self.complete:
            if row not in self._known:
                await self._unknown(row)
            return
        for single in self.request.single:
            if row in self.answers[single.map]["witnesses"] and not await self._look_into(single, row):
                return

    async def _look_into(self, request: MeasureRequest, row: int, *, again: bool = True) -> bool:
        """Ask a worker about a word under one map, `again` where it is lost; False where it is no longer wanted."""
        known = self._known.setdefault(row, {})
        if request.map in known:
            return True
        witness = self.answers[request.map]["witnesses"][row]
        arguments = {"request": asdict(request), "row": row, "witness": witness}
        job = self._job = self._site.pool.submit("word_detail", arguments, self._visitor, brief=True)
        parts: dict[str, Any] = {}
        async for kind, value in job.answers():
            if self._job is not job:
                known.pop(request.map, None)
                return False
            if kind in (PART, DONE):
                parts |= value
                known[request.map] = parts
                self._show(row)
            elif kind == LOST and again:
                return await self._look_into(request, row, again=False)
        return True

    def _show(self, row: int) -> None:
        """Show what is known of the word in that row."""
        for reader in self._readers.values():
            reader.words.point_at(row)
        detail = self._known.get(row, {})
        self._card.show(card(self.answers, row, detail))
        lines = next((each["lines"] for each in detail.values() if each.get("lines")), None)
        if lines is None and not all("moved" in each for each in detail.values()):
            return  # still to come
        if lines is not None and self._lines.props.get("frames") is lines["frames"]:
            return
        pieces = searched(next(iter(self.answers.values()), {"pieces": ()}))
        word = next((piece["text"] for piece in pieces if piece["row"] == row), "")
        self._lines.show_push(lines, f"Push of “{word}”, in percent of the strongest", f"“{word}” pushed")
        self._numbers.set_visibility(lines is not None)
        self._lines_sentence.text = ""
        if lines is not None:
            before, after = lines["given"][0], lines["given"][-1]
            left = f" The {lines['left_out']} words that turn least are left out." if lines["left_out"] else ""
            self._lines_sentence.text = (
                f"Pushing “{word}” {'raises' if after >= before else 'lowers'} its share of the other words’ attention "
                f"from {before:.0%} to {after:.0%}.{left}"
            )
            frames = (("Before", lines["frames"][0]), ("Pushed", lines["frames"][-1]))
            self._grids.show("".join(grid(title, lines["words"], frame) for title, frame in frames))

    def _downloads(self) -> None:
        """Files of a finished measurement, links, and the command and the Python that give the same numbers."""
        singles = [(single, self.answers[single.map]) for single in self.request.single]
        commands = [single.command(answer["radius"]) for single, answer in singles]
        with Box("div", "downloads"), Box("details", "more"):
            Text("summary", "Files, links, and the code for the same numbers")
            with Box("div", "row-of", role="group", aria_label="Files"):
                for form, (name, *_) in FILES.items():
                    Button(name, lambda form=form: self._download(form, commands[0]), id=f"get-{form}")
                for name, with_text in (("Link to these settings", False), ("Link with the text in it", True)):
                    address = f"/?{urlencode(self.request.query(with_text=with_text))}"
                    Text("a", name, href=address, id="link-text" if with_text else "link")
                self._message = Text("span", "", "hint", role="status")
            Text("pre", "\n".join(commands), tabindex="0", id="command")
            for single, answer in singles:
                Text("pre", single.python(answer["radius"], answer["chosen"]), "python", tabindex="0")

    async def _download(self, form: str, command: str) -> None:
        """Write the file and send it."""
        self._message.text = "Writing …"
        records = [answer["record"] for answer in self.answers.values()]
        arguments = {"records": records, "form": form, "arguments": shlex.split(command)[1:]}
        try:
            job = self._site.pool.submit("export", arguments, self._visitor, brief=True)
        except WordsensError as error:
            self._message.text = str(error)
            return
        async for kind, value in job.answers():
            if kind == DONE:
                ui.download(value, *FILES[form][1:])
            self._message.text = "" if kind == DONE else "This file could not be written; please try again."

    def pin(self, place: Box) -> None:
        """Move the coloured words to another place, to stay there; the details go."""
        self.close()
        self.mark(stale=False)
        self.box.move(place)
        self.detail.delete()

    def remove(self) -> None:
        """Take the view off the page."""
        self.close()
        for box in (self.box, self.detail):
            if not box.is_deleted:
                box.delete()

    def close(self) -> None:
        """End what a worker does for this view."""
        self._row = None
        self._cancel()

    def _cancel(self) -> None:
        if self._job is not None:
            self._site.pool.cancel(self._job)
            self._job = None


class _Reader:
    """One map that reads the text: its name, how far it can be moved, and the words in its colours."""

    def __init__(self, request: MeasureRequest, picked: Callable[[int], Any]):
        self._name = _NAMES.get(request.map, request.name)
        with Box("section", "reader", aria_label=self._name):
            self._head = Markup(f"<h3>{escape(self._name)}</h3>", "reader-head")
            self.words = ColouredWords(f"The words, coloured by how far they move: {self._name}", picked)
            self._claim = Text("p", "", "claim")

    def show(self, answer: dict[str, Any]) -> None:
        """Show the words, and what the answer says."""
        self.words.show(answer)
        drawn = bar(answer["value"], answer["upper"])
        self._head.show(f"<h3>{escape(self._name)}</h3> {drawn} <b>{number(answer['value'])}</b>")
        self._claim.text = claim(answer)


def bar(value: float, upper: float | None) -> str:
    """A bar from zero on the scale of the colours, with what is proved in a lighter one behind."""
    ends = [("upper", upper), ("attained", value)]
    parts = (f"<i class='{name}' style='width:{colour_share(end):.1%}'></i>" for name, end in ends if end is not None)
    return f"<span class='bar-of' aria-hidden='true'>{''.join(parts)}</span>"


def searched(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The words that were searched."""
    return [piece for piece in answer["pieces"] if not isinstance(piece, str)]


def comparison(answers: dict[str, dict[str, Any]]) -> str:
    """Attention and a fully connected layer on one text, in vectors of one dimension, in a sentence."""
    attention, dense = (number(answers[name]["value"]) for name in ("raf", "rf"))
    return f"can move attention’s output by {attention} times its size, a fully connected layer’s by {dense} times."


def claim(answer: dict[str, Any]) -> str:
    """What was measured under one map, of the words that were searched."""
    words, total = searched(answer), answer["words"]
    name = next((word["text"] for word in words if word["row"] == answer["row"]), "")
    of = f"all {total} words" if len(words) == total else f"the {len(words)} searched of {total} words"
    parts = [f"Most sensitive of {of}: “{name}”."]
    if answer["upper"] is not None:
        parts.append(f"Proved: none of them moves the output by more than {number(answer['upper'])} times.")
    if answer["predicted"] is not None:
        parts.append(f"Theory predicts about {number(answer['predicted'])}.")
    return " ".join(parts)


def unknown_note(answer: dict[str, Any]) -> str:
    """A warning about words that the vocabulary does not have."""
    names = list(dict.fromkeys(f"“{word['text']}”" for word in searched(answer) if word["unknown"]))
    if not names:
        return ""
    return (
        f"Not in this model’s vocabulary: {', '.join(names)}. The model reads the mark [UNK] in the place of each, so "
        "the number speaks of the mark, not of the word."
    )


def card(answers: dict[str, dict[str, Any]], row: int, detail: dict[str, dict[str, Any]]) -> str:
    """What is known of one word, as HTML: a bar for each map from one zero, then what else was measured."""
    words = {name: word for name, answer in answers.items() for word in searched(answer) if word["row"] == row}
    if not words:
        return ""
    parts = [f"<h3><bdi>{escape(next(iter(words.values()))['text'])}</bdi></h3>"]
    for name, word in words.items():
        label, drawn = escape(_NAMES.get(name, "Moves the output")), bar(word["value"], word["upper"])
        parts.append(f"<p class='reader-head'><span>{label}</span>{drawn}<b>{number(word['value'])}</b></p>")
    facts: list[tuple[str, float | None]] = []
    for name, word in words.items():
        known, of = detail.get(name, {}), f", {_NAMES[name].lower()}" if len(words) > 1 and name in _NAMES else ""
        tried = "" if known.get("swap_exact") else ", best tried"
        facts += [
            (f"Proven limit{of}", word["upper"]),
            (f"If deleted{of}", known.get("removal")),
            (f"If replaced by “{known.get('swapped_for')}”{tried}{of}", known.get("swap")),
        ]
    rows = (f"<dt>{escape(name)}</dt><dd>{number(value)}</dd>" for name, value in facts if value is not None)
    parts.append(f"<dl>{''.join(rows)}</dl>")
    return "".join([*parts, *(_moved(known["moved"]) for known in detail.values() if known.get("moved"))])


def _moved(moved: list[list[Any]]) -> str:
    """The rows of the output that the word's strongest push moves most."""
    attention = moved[0][2] is not None
    rows = [
        [token, number(change), *([f"{before:.2f} → {after:.2f}"] if attention else [])]
        for token, change, before, after in moved
    ]
    return table("", ("moves most", "by", "attention to it")[: 2 + attention], rows)
