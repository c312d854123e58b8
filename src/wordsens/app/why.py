"""The second screen: attention and a fully connected layer compared on one text, then the same for
a text of one's own."""

import asyncio
from typing import Any

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
from wordsens.app.pool import Pool
from wordsens.app.request import CHOICES, EXAMPLES, MeasureRequest
from wordsens.app.work_line import WorkLine
from wordsens.display.html import html_part
from wordsens.display.view import View, Words
from wordsens.errors import InputError
from wordsens.maps.registry import MODEL

# Seconds that a word must stay chosen before it is looked into: arrow keys run over many.
PICK_SECONDS = 0.12

LEAD = (
    "Why: a pushed word can win the attention of the other words, and nearly every output then "
    "follows it; in a fully connected layer, one word of many is a small part of every output. "
    "Each word’s shade shows the largest change found when that word’s vector is pushed. Click a "
    "word to see what real edits of it do. A large value does not mean that a trained model can "
    "tell “on” from “off”."
)
SCALE = Words(
    "",
    (),
    legend="times the size of the output: the largest change found. "
    "The longer the line under a word, the larger its change; the longest line marks the largest.",
)

CHANGED = "The settings have changed. Press Measure, or press Enter in the text field."

RANDOM = (
    "A random layer is untrained: it shows what an architecture can do, not what your text means. "
    "The last choice is a trained model."
)
LAYERS = "0 is the model’s input, −1 its last layer."
COMMAND = "The command for the same numbers, which also saves them with --out FOLDER"

# What is shown of a word that nothing is known of yet.
NOTHING = {"card": "", "lines": None}


class Why:
    """The screen of one visitor, with the settings of the link."""

    def __init__(self, pool: Pool, query: dict[str, str]):
        self._pool = pool
        example = next(iter(EXAMPLES.values()))
        self._default = MeasureRequest(text=example, model=pool.settings.models[0])
        self._linked, wrong = self._default, None
        try:
            self._linked = self._request_of(query)
        except InputError as error:
            wrong = error
        with screen("/why"):
            self._headline = Tag("h1")
            Tag("p", LEAD, "lead")
            with Tag("div", classes="stage") as stage:
                with Tag("div", classes="colours result", id="result"):
                    self._stale = Stale(stage)
                    self._readers = [ColouredWords(self._pick), ColouredWords(self._pick)]
                    markup("scale").set_content(html_part(View("", (SCALE,))))
                    with Tag("div", classes="beside"):
                        with Tag("section", aria_label="One word"):
                            self._card = markup("card").props("role=status aria-live=polite")
                            self._word_line = WorkLine(pool)
                        self._table = markup()
                with Tag("section", classes="form", aria_label="Your text"):
                    self._form()
                with Tag("section", classes="details", aria_label="Attention of the word"):
                    self._lines = Lines()
                    with Fold(COMMAND):
                        self._command = Tag("pre", tabindex="0", id="command")
        self._show(self._default, shipped()["comparison"], shipped()["details"])
        if wrong is not None:
            self._line.refuse(wrong)

    def _form(self) -> None:
        linked, called = self._linked, (self._mark, self.measure)
        most = self._pool.settings.max_words
        self._text = Field(
            *("textarea", "text", "Your text", linked.text, *called),
            rows=3,
            saved=True,
            hint=f"Up to {most:,} words, measured on this machine and not stored.",
        )
        with Tag("div", classes="row-of"):
            button("Measure", self.measure, main=True, id="measure")
        self._line = WorkLine(self._pool)
        with Fold("Examples"), Tag("div", classes="row-of"):
            for name, text in EXAMPLES.items():
                button(name, lambda text=text: self._take(text))
        models = {name: name for name in self._pool.settings.models}
        controls: dict[str, tuple[str, str, dict[str, Any]]] = {
            "map": ("select", "What reads the text", {"options": CHOICES["map"], "hint": RANDOM}),
            "model": ("select", "Model", {"options": models}),
            "layer": ("number", "Layer", {"hint": LAYERS}),
            "pool": ("select", "What is measured", {"options": CHOICES["pool"]}),
            "search": ("select", "Search", {"options": CHOICES["search"]}),
        }
        with Fold("Settings"), Tag("div", classes="choices"):
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

    def _request_of(self, values: dict[str, Any]) -> MeasureRequest:
        """The request with these values; InputError for one that this page does not take."""
        settings = self._pool.settings
        request = MeasureRequest.of(self._default.model_dump() | values, settings.models)
        settings.require_words(request.text)
        return request

    def _request(self) -> MeasureRequest:
        """The request that the form makes."""
        fields = {"text": self._text, **self._settings}
        return self._request_of({name: field.value for name, field in fields.items()})

    def _mark(self) -> None:
        """Show the controls that the map has, and grey a result of other settings."""
        for name in ("model", "layer", "pool"):
            self._settings[name].set_visibility(self._settings["map"].value == MODEL)
        try:
            fresh = self._request() == self._shown
        except InputError:
            fresh = False
        self._stale.say("" if fresh else CHANGED)

    async def measure(self) -> None:
        """Measure what the form says; what is shown stays until it is measured."""
        try:
            request = self._request()
        except InputError as error:
            self._line.refuse(error)
            return
        set_address("/why", request.query())
        answer = await self._line.run("measure", {"request": request.model_dump()})
        if answer is not None:
            self._show(request, answer, {})
            await self._look_into(self._row)

    def _show(
        self, request: MeasureRequest, answer: dict[str, Any], details: dict[str, Any]
    ) -> None:
        """Show what was measured, and the details that are known of words, by row."""
        self._shown, self._maps, self._details = request, answer["maps"], details
        self._readers[1].set_visibility(len(self._maps) > 1)
        for reader, known in zip(self._readers, self._maps.values(), strict=False):
            reader.show(pieces=known["pieces"], title=known["title"])
        self._headline.text = answer["headline"]
        self._table.set_content(answer["table"])
        self._command.text = answer["command"]
        self._show_word(next(iter(self._maps.values()))["row"])
        self._mark()

    def _show_word(self, row: int) -> None:
        """Point at the word in that row, and show what is known of it."""
        self._row = row
        for reader in self._readers:
            reader.show(here=row)
        detail = self._details.get(str(row), NOTHING)
        self._card.set_content(detail["card"])
        self._lines.show(detail["lines"])

    async def _pick(self, row: int) -> None:
        if row != self._row:
            self._show_word(row)
            await self._look_into(row)

    async def _look_into(self, row: int) -> None:
        """Ask a worker about the word in that row."""
        self._word_line.drop()
        await asyncio.sleep(PICK_SECONDS)
        if self._row != row or str(row) in self._details:
            return
        words = {name: each["words"].get(row) for name, each in self._maps.items()}
        searched = {name: word for name, word in words.items() if word is not None}
        arguments = {"request": self._shown.model_dump(), "row": row, "words": searched}
        detail = await self._word_line.run("word_detail", arguments, brief=True)
        if detail is not None:
            self._details[str(row)] = detail
            self._show_word(row)
