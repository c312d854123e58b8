"""The second screen: attention and a fully connected layer compared on one text, then the same for
a text of one's own."""

import asyncio
from typing import Any

from nicegui import ui

from wordsens.app.parts import (
    ColouredWords,
    Field,
    Fold,
    Lines,
    Stale,
    Tag,
    button,
    markup,
    screen,
    set_address,
    shipped,
)
from wordsens.app.pool import Job, Pool
from wordsens.app.request import CHOICES, EXAMPLES, MeasureRequest
from wordsens.app.work_line import WorkLine
from wordsens.display.html import html_part
from wordsens.display.view import View, Words
from wordsens.maps.registry import MODEL

# Seconds that a word must stay chosen before it is looked into: arrow keys run over many.
PICK_SECONDS = 0.12

LEAD = (
    "Colour: the largest change of the output found when one word’s vector is pushed. Click a word "
    "to see what real edits of it do. That a push can move a layer does not say whether a trained "
    "model tells “on” from “off”; it may not."
)
LEGEND = (
    "times the size of the output: the change by a push. The line under a word is its rank in the "
    "text, the longest for the first."
)

CHANGED = "The settings have changed. Press Measure, or Enter in the text, for new numbers."
EMPTY = "There is no text yet. Type a sentence of two words or more, or pick an example."
LONG = (
    "This text has {count:,} words, and this page takes {most:,}. Shorten it; the wordsens command "
    "takes longer texts."
)
NOT_OFFERED = "The {name}, “{value}”, is not one that this page has."

RANDOM = (
    "A random layer is untrained: it shows what an architecture can do, not what your text means. "
    "The last choice is a trained model."
)
LAYERS = "0 is what enters the model, −1 the last."
COMMAND = "The command for the same numbers; --out FOLDER keeps them for a report"


class Why:
    """The screen of one visitor, with the settings of the link."""

    def __init__(self, pool: Pool, query: dict[str, str]):
        self._pool, self._visitor = pool, ui.context.client.id
        self._models, self._most = pool.settings.models, pool.settings.max_words
        example = next(iter(EXAMPLES.values()))
        self._default = MeasureRequest(text=example, model=self._models[0])
        self._linked, wrong = MeasureRequest.of(query, self._default, self._models)
        self._job: Job | None = None
        with screen("/why"):
            self._headline, self._sentence = Tag("h1"), Tag("p", "", "answer")
            Tag("p", LEAD, "lead")
            with Tag("div", classes="stage") as stage:
                with Tag("div", classes="colours result", id="result"):
                    self._stale = Stale(stage)
                    self._readers = [self._reader(), self._reader()]
                    legend = View("", (Words("", (), legend=LEGEND),))
                    markup("scale").set_content(html_part(legend))
                    self._table = markup()
                with Tag("section", classes="form", aria_label="Your text"):
                    self._form()
                with Tag("section", classes="details detail", aria_label="One word"):
                    self._card = markup("card").props("role=status aria-live=polite")
                    with Tag("div"):
                        self._turned = Tag("h3")
                        self._lines = Lines()
                    with Tag("div", classes="downloads"), Fold(COMMAND):
                        self._command = Tag("pre", tabindex="0", id="command")
        ui.context.client.on_delete(self._leave)
        self._show(self._default, shipped()["comparison"], shipped()["details"])
        self._mark()
        for name in wrong:
            self._line.say(NOT_OFFERED.format(name=name, value=query[name]), problem=True)

    def _reader(self) -> tuple[Tag, Tag, ColouredWords]:
        """A place for one map and the words in its colours."""
        with Tag("section", classes="reader") as box:
            return box, Tag("h3"), ColouredWords(self._pick)

    def _form(self) -> None:
        linked, called = self._linked, (self._mark, self.measure)
        hint = f"Up to {self._most:,} words, measured on this machine and not stored. Press Enter."
        self._text = Field(
            "textarea", "text", "Your text", linked.text, *called, rows=3, saved=True, hint=hint
        )
        with Tag("div", classes="row-of"):
            button("Measure", self.measure, main=True, id="measure")
        self._line = WorkLine(self._pool)
        with Fold("Examples"), Tag("div", classes="row-of"):
            for name, text in EXAMPLES.items():
                button(name, lambda text=text: self._take(text))
        opened = {"open": ""} if linked.query() else {}
        models = {name: name for name in self._models}
        controls: dict[str, tuple[str, str, dict[str, Any]]] = {
            "map": ("select", "What reads the text", {"options": CHOICES["map"], "hint": RANDOM}),
            "model": ("select", "Model", {"options": models}),
            "layer": ("number", "Layer", {"hint": LAYERS}),
            "pool": ("select", "What is measured", {"options": CHOICES["pool"]}),
            "search": ("select", "Search", {"options": CHOICES["search"]}),
        }
        with Fold("Settings", **opened), Tag("div", classes="choices"):
            self._settings = {
                name: Field(kind, name, label, getattr(linked, name), *called, **more)
                for name, (kind, label, more) in controls.items()
            }

    async def visit(self) -> None:
        """With settings in the link, measure what they say."""
        if self._linked != self._default:
            await self.measure()

    def _take(self, text: str) -> Any:
        self._text.show(text)
        return self.measure()

    def _request(self) -> tuple[MeasureRequest, str]:
        """The request that the form makes, and what is wrong with it; "" for nothing."""
        fields = {"text": self._text, **self._settings}
        values = {name: field.value for name, field in fields.items()}
        request, wrong = MeasureRequest.of(values, self._default, self._models)
        count = len(request.text.split())
        problem = "" if count else EMPTY
        if count > self._most:
            problem = LONG.format(count=count, most=self._most)
        for name in wrong:
            problem = NOT_OFFERED.format(name=name, value=values[name])
        return request, problem

    def _mark(self) -> None:
        """Show the controls that the map has, and grey a result of other settings."""
        for name in ("model", "layer", "pool"):
            self._settings[name].set_visibility(self._settings["map"].value == MODEL)
        request, problem = self._request()
        self._stale.say(CHANGED if problem or request != self._shown else "")

    async def measure(self) -> None:
        """Measure what the form says; what is shown stays until it is measured."""
        request, problem = self._request()
        if problem:
            self._line.drop()
            self._line.say(problem, problem=True)
            self._mark()
            return
        if self._stale.text:
            self._stale.say("The new numbers are on their way.")
        set_address("/why", request.query())
        answer = await self._line.run("measure", {"request": request.model_dump()})
        if answer is not None:
            self._show(request, answer, {})
        self._mark()
        if answer is not None:
            await self._look_into(self._row)

    def _show(self, request: MeasureRequest, answer: dict[str, Any], known: dict[Any, Any]) -> None:
        """Show what was measured; `known` are the details of words, by row."""
        self._shown, self._maps, self._known = request, answer["maps"], known
        self._readers[1][0].set_visibility(len(self._maps) > 1)
        for (_, title, words), each in zip(self._readers, self._maps.values(), strict=False):
            title.text = each["title"]
            words.show(pieces=each["pieces"], label=each["title"])
        self._headline.text, self._sentence.text = answer["headline"], ""
        self._table.set_content(answer["table"])
        self._command.text = answer["command"]
        self._best = next(iter(self._maps.values()))["row"]
        self._show_word(self._best)

    def _show_word(self, row: int) -> None:
        """Point at the word in that row, and show what is known of it."""
        self._row = row
        for _, _, words in self._readers:
            words.show(here=row)
        if (detail := self._known.get(str(row))) is None:
            return
        self._card.set_content(detail["card"])
        self._lines.show(detail["lines"])
        self._turned.text = detail["turned"]
        if row == self._best:
            self._sentence.text = detail["sentence"]

    async def _pick(self, row: int) -> None:
        if row != self._row:
            self._show_word(row)
            await self._look_into(row)

    async def _look_into(self, row: int) -> None:
        """Ask a worker about the word in that row."""
        self._leave()
        await asyncio.sleep(PICK_SECONDS)
        if self._row != row or str(row) in self._known:
            return
        words = {name: each["words"].get(row) for name, each in self._maps.items()}
        searched = {name: word for name, word in words.items() if word is not None}
        arguments = {"request": self._shown.model_dump(), "row": row, "words": searched}
        self._job = job = self._pool.submit("word_detail", arguments, self._visitor, brief=True)
        await asyncio.wait([job])
        if not job.cancelled() and job.exception() is None:
            self._known[str(row)] = job.result()
            if self._row == row:
                self._show_word(row)

    def _leave(self) -> None:
        """End what a worker does for a word."""
        if self._job is not None:
            self._job.cancel()
