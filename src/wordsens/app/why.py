"""The second screen: attention and a fully connected layer compared on one text, then the same for
a text of one's own."""

import asyncio
from typing import Any

from nicegui import ui

from wordsens.app.parts import (
    Choice,
    ColouredWords,
    Field,
    Fold,
    Lines,
    Shown,
    Site,
    Stale,
    Tag,
    button,
    screen,
    set_address,
    shipped,
)
from wordsens.app.pool import Job
from wordsens.app.request import (
    BOTH,
    CHOICES,
    EXAMPLES,
    LEAST_SHARE,
    MOST_SHARE,
    MeasureRequest,
)
from wordsens.app.work_line import WorkLine
from wordsens.display.numbers import number
from wordsens.display.view import Table, Words
from wordsens.maps.registry import MODEL

# Seconds that a word must stay chosen before it is looked into: arrow keys run over many.
PICK_SECONDS = 0.12

LEAD = (
    "Colour: the largest change of the output found when one word’s vector is pushed. Click a word "
    "to see real words in its place. That a push can move a layer does not say whether a trained "
    "model tells “on” from “off”; it may not."
)

CHANGED = "The settings have changed. Press Measure, or Enter in the text, for new numbers."
EMPTY = "There is no text yet. Type a sentence of two words or more, or pick an example."
LONG = (
    "This text has {count:,} words, and this page takes {most:,}. Shorten it; the wordsens command "
    "takes longer texts."
)

RANDOM = (
    "A random layer is untrained: it shows what an architecture can do, not what your text means. "
    "The last choice is a trained model."
)
LEGEND = (
    "times the size of the output: the change by a push. The line under a word is its rank in the "
    "text, the longest for the first."
)

NAMES = {"raf": "Attention", "rf": "Fully connected layer"}

Answers = dict[str, dict[str, Any]]


class Why:
    """The screen of one visitor, with the settings of the link."""

    def __init__(self, site: Site, query: dict[str, str]):
        self._site, self._visitor = site, ui.context.client.id
        models = site.settings.models
        example = next(iter(EXAMPLES.values()))
        self._default = MeasureRequest(text=example, model=models[0])
        self._linked, wrong = MeasureRequest.of(query, self._default, models)
        self._job: Job | None = None
        with screen("/why"):
            self._headline, self._sentence = Tag("h1"), Tag("p", "", "answer")
            Tag("p", LEAD, "lead")
            with Tag("div", classes="stage"):
                with Tag("div", classes="colours result", id="result") as colours:
                    self._colours()
                with Tag("section", classes="form", aria_label="Your text"):
                    self._form()
                with Tag("section", classes="details detail", aria_label="One word") as details:
                    self._word()
            with colours:
                self._stale = Stale(colours, details)
                self._stale.move(target_index=0)
        ui.context.client.on_delete(self._leave)
        self._show(self._default, shipped()["comparison"], shipped()["details"])
        self._mark()
        if wrong:
            names = ", ".join(f"{name}, “{query[name]}”," for name in wrong)
            self._line.say(f"The link’s {names} is not one that this page has.", problem=True)

    def _colours(self) -> None:
        """Attention's words, or those of another map, then those of the fully connected layer."""
        self._readers = []
        for _ in range(2):
            with Tag("section", classes="reader") as box:
                self._readers.append((box, Tag("h3"), ColouredWords(self._pick)))
        Shown("scale").show(Words("", (), legend=LEGEND))
        self._table = Shown()

    def _form(self) -> None:
        linked, limit = self._linked, self._site.settings.max_words
        hint = f"Up to {limit:,} words, measured on this machine and not stored. Press Enter."
        called = self._mark, self.measure
        self._text = Field(
            "textarea", "text", "Your text", linked.text, *called, rows=3, saved=True, hint=hint
        )
        with Tag("div", classes="row-of"):
            button("Measure", self.measure, main=True, id="measure")
        self._line = WorkLine(self._site)
        with Fold("Examples"), Tag("div", classes="row-of"):
            for name, text in EXAMPLES.items():
                button(name, lambda text=text: self._take(text))
        opened = {"open": ""} if linked.query() else {}
        with Fold("Settings", **opened), Tag("div", classes="choices"):
            label, maps = "What reads the text", CHOICES["map"]
            self._map = Choice("map", label, maps, linked.map, *called, hint=RANDOM)
            models = {name: name for name in self._site.settings.models}
            self._model = Choice("model", "Model", models, linked.model, *called)
            hint = "0 is what enters the model, −1 the last."
            self._layer = Field("number", "layer", "Layer", linked.layer, *called, hint=hint)
            pools = CHOICES["pool"]
            self._pool = Choice("pool", "What is measured", pools, linked.pool, *called)
            ends = {"least": LEAST_SHARE, "most": MOST_SHARE, "step": 0.05, "unit": " × its length"}
            label = "How far a word’s vector may move"
            self._share = Field("range", "share", label, linked.share, *called, **ends)
            searches = CHOICES["search"]
            self._search = Choice("search", "Search", searches, linked.search, *called)

    def _word(self) -> None:
        """One word in detail."""
        self._card = Shown("card").props("role=status aria-live=polite")
        with Tag("div"):
            self._attention = Tag("h3")
            self._lines = Lines()
        summary = "The command for the same numbers; --out FOLDER keeps them for a report"
        with Tag("div", classes="downloads"), Fold(summary):
            self._command = Tag("pre", tabindex="0", id="command")

    async def visit(self) -> None:
        """With settings in the link, measure what they say."""
        if self._linked != self._default:
            await self.measure()

    def _take(self, text: str) -> Any:
        self._text.show(text)
        return self.measure()

    def _request(self) -> tuple[MeasureRequest, str]:
        """The request that the form makes, and what is wrong with it; "" for nothing."""
        fields = (self._text, self._map, self._model, self._layer)
        fields += (self._pool, self._share, self._search)
        values = {str(field.props["name"]): field.value for field in fields}
        request, wrong = MeasureRequest.of(values, self._default, self._site.settings.models)
        count, most = len(request.text.split()), self._site.settings.max_words
        problem = "" if count else EMPTY
        if count > most:
            problem = LONG.format(count=count, most=most)
        for name in wrong:
            problem = f"The {name}, “{values[name]}”, is not one that this page has."
        return request, problem

    def _mark(self) -> None:
        """Show the controls that the map has, and grey a result of other settings."""
        for field in (self._model, self._layer, self._pool):
            field.set_visibility(self._map.value == MODEL)
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
        answers = await self._line.run("measure", {"request": request.model_dump()})
        if answers is not None:
            self._show(request, answers, {name: {} for name in answers})
            await self._look_into(self._row)
        self._mark()

    def _show(self, request: MeasureRequest, answers: Answers, details: Answers) -> None:
        """Show what was measured.

        Args:
            details: by map and row what is known of words already; of a result that was shipped,
                of all of them.
        """
        self._shown, self._answers, self._details = request, answers, details
        self._readers[1][0].set_visibility(len(answers) > 1)
        for (_, title, words), (name, answer) in zip(self._readers, answers.items(), strict=False):
            title.text = f"{NAMES.get(name, request.title)}: {number(answer['value'])}"
            label = f"The words, coloured by the largest change: {title.text}"
            direction = answer["direction"]
            words.show(pieces=answer["pieces"], direction=direction, label=label)
        self._headline.text, self._sentence.text = headline(request, answers), ""
        self._table.show(_map_table(request, answers), notes=_notes(answers))
        commands = [request.command(name, answers[name]["radius"]) for name in request.maps]
        self._command.text = "\n".join(commands)
        self._best = answers[request.maps[0]]["row"]
        self._show_word(self._best)

    def _show_word(self, row: int) -> None:
        """Show what is known of the word in that row."""
        self._row = row
        for _, _, words in self._readers:
            words.show(here=row)
        known = {name: self._details[name].get(str(row), {}) for name in self._answers}
        word = _word_in(self._answers, row)
        tables = (
            _word_table(NAMES.get(name, self._shown.title), answer, row, known[name])
            for name, answer in self._answers.items()
        )
        self._card.show(f"“{word}”", *tables)
        if row == self._best:
            self._sentence.text = real_words(word, known)
        if not all(known.values()):
            return  # still to come
        lines = next((each["lines"] for each in known.values() if each["lines"]), None)
        self._lines.show(lines)
        self._attention.text = "" if lines is None else _attention_sentence(word, lines)

    async def _pick(self, row: int) -> None:
        if row != self._row:
            self._show_word(row)
            await self._look_into(row)

    async def _look_into(self, row: int) -> None:
        """Ask a worker about the word in that row under each map, part by part."""
        self._leave()
        await asyncio.sleep(PICK_SECONDS)
        request = self._shown
        for name, details in self._details.items():
            witnesses = self._answers[name].get("witnesses", {})
            if "swap" in details.get(str(row), {}) or row not in witnesses:
                continue

            def take(part: dict[str, Any], details: Any = details) -> None:
                if part:
                    details[str(row)] = part
                    self._show_word(row)

            if self._row != row or self._shown is not request:
                return
            arguments = {"request": request.model_dump(), "name": name}
            arguments |= {"row": row, "witness": witnesses[row]}
            job = self._job = self._site.pool.submit(
                "word_detail", arguments, self._visitor, take, brief=True
            )
            await asyncio.wait([job])
            if job.cancelled() or job.exception() is not None:
                return
            take(job.result())

    def _leave(self) -> None:
        """End what a worker does for a word."""
        if self._job is not None:
            self._job.cancel()


def headline(request: MeasureRequest, answers: Answers) -> str:
    """How far one word's vector moves the output, what the weights are and how far it is pushed."""
    share = "" if request.share == 1 else f"{request.share:g} times "
    pushed = f"Change one word’s vector by up to {share}its own length"
    values = [number(answer["value"]) for answer in answers.values()]
    if request.map == BOTH:
        return (
            f"{pushed}: the attention layer’s output can change by {values[0]} times its size, the "
            f"fully connected layer’s by {values[1]} times. (Both layers have random weights.)"
        )
    weights = "" if request.map == MODEL else " (Random weights.)"
    changes = f"the output can change by {values[0]} times its size"
    return f"{request.title}. {pushed}: {changes}.{weights}"


def real_words(word: str, known: Answers) -> str:
    """What a real word in the place of that one does, and its deletion; "" until it is known of
    every map."""
    if not all("swap" in detail for detail in known.values()):
        return ""
    sentences = []
    for name, detail in known.items():
        output = NAMES.get(name, "Output")
        swap = "no substitute is listed"
        if detail["swap"] is not None:
            change = number(detail["swap"])
            swap = f"the largest change is {change} (“{detail['swapped_for']}”)"
        without = "replacing it by zeros" if detail["emptied"] else "deleting it"
        removal = number(detail["removal"])
        sentences.append(f"{output}: {swap}; {without} gives {removal}.")
    return f"Real substitutes for “{word}”. {' '.join(sentences)}"


def _searched(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return [piece for piece in answer["pieces"] if not isinstance(piece, str)]


def _word_in(answers: Answers, row: int) -> str:
    pieces = (piece for answer in answers.values() for piece in _searched(answer))
    return next((piece["text"] for piece in pieces if piece["row"] == row), "")


def _map_table(request: MeasureRequest, answers: Answers) -> Table:
    """One row per map: what was found, proved and predicted, and of how many words."""
    each = list(answers.values())
    reach = "" if request.share == 1 else f"{request.share:g} times "
    rigor = next((answer["rigor"] for answer in each if answer["rigor"]), "")
    columns = {
        "": [NAMES.get(name, request.title) for name in answers],
        "highest found": [answer["value"] for answer in each],
        "at most": [answer["upper"] for answer in each],
        "theory": [answer["predicted"] for answer in each],
        "word": [_word_in({"": answer}, answer["row"]) for answer in each],
        "words searched": [f"{len(_searched(answer))} of {answer['words']}" for answer in each],
    }
    meanings = {
        "at most": f"At most: proved{rigor}, for any push of a word within {reach}its own length.",
        "theory": "Theory: a prediction for large d, not a bound.",
    }
    known = {name: cells for name, cells in columns.items() if set(cells) != {None}}
    note = " ".join(text for name, text in meanings.items() if name in known)
    return Table("", known, note=note, coloured=("highest found", "at most"))


def _word_table(title: str, answer: dict[str, Any], row: int, known: dict[str, Any]) -> Table:
    """What is known of one word under a map."""
    piece = next((piece for piece in _searched(answer) if piece["row"] == row), {})
    removed = "replaced by zeros" if known.get("emptied") else "deleted"
    changes = {
        "vector pushed": piece.get("value"),
        "proved: at most": piece.get("upper"),
        f"best real word: “{known.get('swapped_for')}”": known.get("swap"),
        removed: known.get("removal"),
    }
    cells = [(name, change) for name, change in changes.items() if change is not None]
    return Table.of_rows(title, ("the word", "change"), cells, coloured=("change",))


def _notes(answers: Answers) -> list[str]:
    """A warning about words that the vocabulary does not have, and what the map says of itself."""
    notes = [note for answer in answers.values() for note in answer["notes"]]
    pieces = [piece for answer in answers.values() for piece in _searched(answer)]
    names = dict.fromkeys(f"“{piece['text']}”" for piece in pieces if piece["unknown"])
    if names:
        notes.append(
            f"Not in this model’s vocabulary: {', '.join(names)}. The model reads the mark [UNK] "
            "in the place of each, so the number is of the mark, not of the word."
        )
    return list(dict.fromkeys(notes))


def _attention_sentence(word: str, lines: dict[str, Any]) -> str:
    before, after = lines["given"][0], lines["given"][-1]
    left_out = f" The {lines['left_out']} words that turn least are left out."
    return (
        f"Pushing the vector of “{word}” {'raises' if after >= before else 'lowers'} its share of "
        f"the other words’ attention from {before:.0%} to {after:.0%}."
        f"{left_out if lines['left_out'] else ''}"
    )
