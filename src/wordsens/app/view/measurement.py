"""One measured text: its words in colour, what was found, and each word in detail when it is chosen."""

import asyncio
from dataclasses import asdict
from typing import Any

from nicegui import ui

from wordsens.app.request import MAPS, MeasureRequest
from wordsens.app.view.parts import Box, Matrices, Text, Words
from wordsens.app.view.shell import Site
from wordsens.app.view.take_away import TakeAway
from wordsens.app.work.job import Job
from wordsens.app.work.messages import DONE, LOST, TOLD
from wordsens.maps.registry import MODEL

SETTLED = 0.12
"""Seconds that a word must stay chosen before it is asked about: arrow keys run over many."""

_ALIKE = 0.8
"""Words differ little where the least sensitive reaches more than this share of the most sensitive."""


class Measurement:
    """The view of one request."""

    def __init__(self, site: Site, request: MeasureRequest):
        self._site, self.request = site, request
        self._visitor = ui.context.client.id
        self.found: dict[str, Any] | None = None
        self._text: dict[str, Any] | None = None
        self._details: dict[int, dict[str, Any]] = {}
        self._asked: Job | None = None
        self._row: int | None = None
        ui.context.client.on_delete(self.close)
        with Box("article", "result") as self.box:
            self._heading = Text("h2", name_of(request))
            self._sentence = Text("p", "", "told-of")
            self._place = Box("div")
        self._words: Words | None = None
        self._matrices: Matrices | None = None

    def told(self, part: dict[str, Any]) -> None:
        """Show a part of the measurement."""
        if "text" in part:
            self._draw(part["text"])

    async def finish(self, found: dict[str, Any]) -> None:
        """Show the measurement, and the most sensitive word in detail."""
        self.found = found
        self._draw(found["text"])
        self._sentence.text = sentence(found)
        words = [piece for piece in found["text"]["pieces"] if not isinstance(piece, str)]
        row = max(words, key=lambda word: word["attained"])["row"] if self._row is None else self._row
        if self._words is not None:
            self._words.point_at(row)
        with self.box:
            TakeAway(self._site, self.request, found)
        await self.pick(row)

    def _draw(self, text: dict[str, Any]) -> None:
        self._text = text
        if self._words is None:
            with self._place:
                self._words = Words(text, self.pick, f"The words, coloured by how far they move {self._heading.text}")
            with self._words, Box("details", "more") as self._more:
                Text("summary", "Attention before and after the word’s strongest change")
                self._matrices = Matrices()
            self._more.set_visibility(False)
        else:
            self._words.show(text)

    async def pick(self, row: int, *, again: bool = True) -> None:
        """Find out about the word of that row, part by part; a worker that is lost meanwhile is asked `again`, once."""
        self._row = row
        if row in self._details:
            self._matrices_of(row)
        if self._asked is not None:
            self._site.pool.cancel(self._asked)
            self._asked = None
        await asyncio.sleep(SETTLED)
        if self._row != row or self.found is None or row in self._details or row not in self.found["witnesses"]:
            return
        arguments = {"request": asdict(self.request), "row": row, "witness": self.found["witnesses"][row]}
        job = self._asked = self._site.pool.submit("word", arguments, self._visitor, brief=True)
        known: dict[str, Any] = {}
        async for answer in job.answers():
            if self._asked is not job:
                return
            if answer.kind in (TOLD, DONE):
                known |= answer.value
                self._add(row, known)
            if answer.kind == DONE:
                self._details[row] = known
            elif answer.kind == LOST and again:
                await self.pick(row, again=False)

    def _add(self, row: int, known: dict[str, Any]) -> None:
        """Put what is known of a word into its piece."""
        if self._text is None or self._words is None:
            return
        tokens = ("moved", "removal", "swap", "swappedFor")
        for at, piece in enumerate(self._text["pieces"]):
            if not isinstance(piece, str) and piece["row"] == row:
                self._text["pieces"][at] = {**piece, **{name: known[name] for name in tokens if name in known}}
        self._words.show(dict(self._text))
        if self._row == row and "matrices" in known:
            self._show_matrices(known["matrices"])

    def _matrices_of(self, row: int) -> None:
        self._show_matrices(self._details[row].get("matrices", ()))

    def _show_matrices(self, matrices: Any) -> None:
        if self._matrices is not None:
            self._matrices.show(matrices)
            self._more.set_visibility(bool(matrices))

    def close(self) -> None:
        """End what is asked: the view is not seen any more."""
        self._row = None
        if self._asked is not None:
            self._site.pool.cancel(self._asked)
            self._asked = None


def name_of(request: MeasureRequest) -> str:
    """The measurement in a few words."""
    if request.map == MODEL:
        layer = "the last layer" if request.layer == -1 else f"layer {request.layer}"
        return f"{request.model}, {layer}" + (f", {request.pool} pooling" if request.pool else "")
    name = MAPS[request.map]
    return f"{name[0].upper()}{name[1:]}" + (f", {request.depth} layers" if request.map == "drf" else "")


def sentence(found: dict[str, Any]) -> str:
    """The finding in words."""
    told = (
        f"Found: pushing the vector of “{found['word']}” moves the whole output by {found['value']:.3g} times its "
        "size, farther than any other word’s."
    )
    if found["text"]["low"] > _ALIKE * found["text"]["high"]:
        told += " Every word moves it nearly as far."
    if found["upper"] is not None:
        told += f" Proved: no push of any one word’s vector, that far, moves it by more than {found['upper']:.3g}."
    if found["predicted"] is not None and found["upper"] is not None and found["predicted"] > found["upper"]:
        told += f" Theory’s estimate, {found['predicted']:.3g}, is above what is proved: it is for longer texts."
    elif found["predicted"] is not None:
        told += f" Theory predicts about {found['predicted']:.3g} for such a text: an estimate, no limit."
    return told
