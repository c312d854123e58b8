"""The view of one measured text: its words in colour on one scale, a card for the chosen word,
attention as lines."""

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from html import escape
from typing import Any

from nicegui import ui

from wordsens.app.parts import Box, ColouredWords, Lines, Markup, Site, Text, grid
from wordsens.app.pool import Job
from wordsens.app.request import BOTH, MeasureRequest
from wordsens.app.work_line import kind_message
from wordsens.app.worker import DONE, LOST, PART
from wordsens.display.numbers import number
from wordsens.display.view import LEVELS, STRONGEST
from wordsens.maps.registry import MODEL

PICK_SECONDS = 0.12
"""Seconds that a word must stay chosen before it is looked into: arrow keys run over many."""

Answers = dict[str, dict[str, Any]]
"""By map, what the task `measure` gives."""

_NAMES = {"raf": "Attention", "rf": "Fully connected"}
_STALE = "The settings have changed. Press Measure, or Enter in the text, for new numbers."
_SCALE = (
    "<span class='sr'>Colours: </span>Change of the output, times its size: 0 <span class='ramp' "
    "aria-hidden='true'>"
    + "".join(f"<i class='s{level}'></i>" for level in range(LEVELS))
    + f"</span> to {STRONGEST:g} or more; the line under a word: its rank in the text, the longest "
    "for the first."
)


class ColouredText:
    """The words of a measured text under each map; `picked` is called with the row of a word that
    was chosen."""

    def __init__(
        self,
        request: MeasureRequest,
        answers: Answers,
        picked: Callable[[int], Any],
        title: str = "",
    ):
        with Box("article", "result") as self.box:
            self._stale = Text("p", "", "stale-note", role="status")
            Text("h2", title)
            self._words = [
                _reader(single, answers[single.map], picked) for single in request.single
            ]
            Markup(_SCALE, "scale")
            last = answers[request.single[-1].map]
            Text("p", " ".join([unknown_note(last), *map(kind_message, last["notes"])]), "hint")

    def point_at(self, row: int) -> None:
        """Mark the word of that row."""
        for words in self._words:
            words.point_at(row)

    def mark(self, reason: str) -> None:
        """Grey the text for that reason; "" for none."""
        self.box.classes(add="stale") if reason else self.box.classes(remove="stale")
        self._stale.text = reason


class Measurement:
    """The view of one measurement in two places: the coloured words, and what is known of one of
    them.

    Args:
        site: the workers.
        request: the settings.
        answers: what was measured.
        known: by row and map what is known of words already; of a result that was shipped, of all
            of them.
        colours, details: the places.
        sentences: above both, the headline and what real words do.

    Attributes:
        best: the row of the most sensitive word, under attention where there are two maps.
    """

    def __init__(
        self,
        site: Site,
        request: MeasureRequest,
        answers: Answers,
        known: dict[int, Answers],
        colours: Box,
        details: Box,
        sentences: tuple[Text, Text],
    ):
        self.request, self.answers = request, answers
        self._site, self._known = site, known
        self._visitor = ui.context.client.id
        self.best: int = answers[request.single[0].map]["row"]
        self._row: int | None = None
        self._job: Job | None = None
        self._sentences = sentences
        ui.context.client.on_delete(self.close)
        sentences[0].text, sentences[1].text = headline(request, answers), ""
        with colours:
            self._text = ColouredText(request, answers, self.pick)
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
            self._command()
        self._show(self.best)

    def mark(self, reason: str = _STALE) -> None:
        """Grey the result for that reason; "" for none."""
        self._text.mark(reason)
        self.detail.classes(add="stale") if reason else self.detail.classes(remove="stale")

    async def pick(self, row: int) -> None:
        """Look into the word of that row, part by part."""
        if row == self._row:
            return
        self._row = row
        self._show(row)
        self._cancel()
        await asyncio.sleep(PICK_SECONDS)
        for single in self.request.single:
            if self._row != row or self.detail.is_deleted or not await self._look_into(single, row):
                return

    async def _look_into(self, request: MeasureRequest, row: int, *, again: bool = True) -> bool:
        """Ask a worker about a word under one map, `again` where it is lost; False where it is no
        longer wanted."""
        known, answer = self._known.setdefault(row, {}), self.answers[request.map]
        if request.map in known or row not in answer["witnesses"]:
            return True
        arguments = {"request": asdict(request), "row": row, "witness": answer["witnesses"][row]}
        job = self._job = self._site.pool.submit(
            "word_detail", arguments, self._visitor, brief=True
        )
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
        self._text.point_at(row)
        detail = self._known.get(row, {})
        self._card.set_content(card(self.answers, row, detail))
        if row == self.best:
            self._sentences[1].text = real_words(self.answers, row, detail)
        lines = next((each["lines"] for each in detail.values() if each.get("lines")), None)
        if lines is None and not all("lines" in each for each in detail.values()):
            return  # still to come
        if lines is not None and self._lines.props.get("frames") is lines["frames"]:
            return
        word = word_in(self.answers, row)
        self._lines.show_push(
            lines, f"Push of “{word}”, in percent of the strongest", f"“{word}” pushed"
        )
        self._numbers.set_visibility(lines is not None)
        self._lines_sentence.text = ""
        if lines is not None:
            before, after = lines["given"][0], lines["given"][-1]
            left = (
                f" The {lines['left_out']} words that turn least are left out."
                if lines["left_out"]
                else ""
            )
            self._lines_sentence.text = (
                f"Pushing the vector of “{word}” {'raises' if after >= before else 'lowers'} its "
                "share of the other "
                f"words’ attention from {before:.0%} to {after:.0%}.{left}"
            )
            frames = (("Before", lines["frames"][0]), ("Pushed", lines["frames"][-1]))
            self._grids.set_content(
                "".join(grid(title, lines["words"], frame) for title, frame in frames)
            )

    def _command(self) -> None:
        """The command that gives the same numbers."""
        with Box("div", "downloads"), Box("details", "more"):
            Text(
                "summary", "The command for the same numbers; --out FOLDER keeps them for a report"
            )
            singles = (
                (single, self.answers[single.map]["radius"]) for single in self.request.single
            )
            Text(
                "pre",
                "\n".join(single.command(radius) for single, radius in singles),
                tabindex="0",
                id="command",
            )

    def remove(self) -> None:
        """Take the view off the page."""
        self.close()
        self._text.box.delete()
        self.detail.delete()

    def close(self) -> None:
        """End what a worker does for this view."""
        self._row = None
        self._cancel()

    def _cancel(self) -> None:
        if self._job is not None:
            self._site.pool.cancel(self._job)
            self._job = None


def _reader(
    request: MeasureRequest, answer: dict[str, Any], picked: Callable[[int], Any]
) -> ColouredWords:
    """One map that reads the text: its name, how far it can be moved, and the words in its
    colours."""
    name = _NAMES.get(request.map, request.name)
    with Box("section", "reader", aria_label=name):
        drawn = bar(answer["value"], answer["upper"])
        Markup(f"<h3>{escape(name)}</h3> {drawn} <b>{number(answer['value'])}</b>", "reader-head")
        words = ColouredWords(f"The words, coloured by how far they move: {name}", picked)
        words.show(answer)
        Text("p", claim(answer), "claim")
    return words


def bar(value: float, upper: float | None) -> str:
    """A bar from zero on the scale of the colours, with what is proved in a lighter one behind."""
    ends = [("upper", upper), ("attained", value)]
    parts = (
        f"<i class='{name}' style='width:{min(end / STRONGEST, 1):.1%}'></i>"
        for name, end in ends
        if end is not None
    )
    return f"<span class='bar-of' aria-hidden='true'>{''.join(parts)}</span>"


def searched(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The words that were searched."""
    return [piece for piece in answer["pieces"] if not isinstance(piece, str)]


def word_in(answers: Answers, row: int) -> str:
    """The word in that row."""
    pieces = searched(next(iter(answers.values())))
    return next((piece["text"] for piece in pieces if piece["row"] == row), "")


def headline(request: MeasureRequest, answers: Answers) -> str:
    """How far one word's vector moves the output, with what the weights are and how far it is
    pushed."""
    share = "" if request.share == 1 else f"{request.share:g} times "
    pushed = f"one word’s vector, pushed {share}as far as it is long, moves"
    values = [number(answer["value"]) for answer in answers.values()]
    if request.map == BOTH:
        return (
            f"With random weights {pushed} attention’s output by {values[0]} times its size, a "
            "fully connected "
            f"layer’s by {values[1]}."
        )
    weights = "" if request.map == MODEL else " with random weights"
    return f"{request.name}{weights}: {pushed} the output by {values[0]} times its size."


def real_words(answers: Answers, row: int, details: Answers) -> str:
    """What a real word in the place of that one does, and its deletion; "" until it is known of
    every map."""
    if not all("swap" in details.get(name, {}) for name in answers):
        return ""
    word, sentences, listed = word_in(answers, row), [], True
    for name in answers:
        detail = details[name]
        output = {"raf": "attention’s output", "rf": "the fully connected layer’s"}.get(
            name, "the output"
        )
        gone, by = (
            "a row of zeros" if detail["emptied"] else "deleting it",
            number(detail["removal"]),
        )
        if listed := detail["swap"] is not None:
            subject = "it moves" if sentences else f"A real word in the place of “{word}” moves"
            known = (
                f"{number(detail['swap'])} (“{detail['swapped_for']}”, the farthest that a "
                "writer could put there)"
            )
            sentences.append(f"{subject} {output} by {known}, {gone} by {by}")
        else:
            sentences.append(f"{gone} moves {output} by {by}")
    none = "" if listed else f"No word is listed that a writer could put for “{word}”: "
    return f"{none}{'; '.join(sentences)}."


def claim(answer: dict[str, Any]) -> str:
    """What was measured under one map, of the words that were searched."""
    words, total = searched(answer), answer["words"]
    name = next((word["text"] for word in words if word["row"] == answer["row"]), "")
    of = (
        f"all {total} words"
        if len(words) == total
        else f"the {len(words)} searched of {total} words"
    )
    parts = [f"Highest found of {of}: “{name}”."]
    if answer["upper"] is not None:
        parts.append(proved(answer, answer["upper"]))
    if answer["predicted"] is not None:
        parts.append(f"Theory for large d, no bound: about {number(answer['predicted'])}.")
    return " ".join(parts)


def proved(answer: dict[str, Any], upper: float) -> str:
    """What the upper bound says, for which pushes, and how surely."""
    reach = "its own length" if answer["share"] == 1 else f"{answer['share']:g} times its length"
    most = f"moves the output by more than {number(upper)} times its size"
    return f"Proved{answer['rigor']}: no push of a word within {reach} {most}."


def unknown_note(answer: dict[str, Any]) -> str:
    """A warning about words that the vocabulary does not have."""
    names = list(dict.fromkeys(f"“{word['text']}”" for word in searched(answer) if word["unknown"]))
    if not names:
        return ""
    return (
        f"Not in this model’s vocabulary: {', '.join(names)}. The model reads the mark [UNK] in "
        "the place of each, so "
        "the number speaks of the mark, not of the word."
    )


def card(answers: Answers, row: int, detail: Answers) -> str:
    """What is known of one word, as HTML: for each map bars from one zero for the push, a real
    word, the deletion."""
    words = {
        name: word
        for name, answer in answers.items()
        for word in searched(answer)
        if word["row"] == row
    }
    if not words:
        return ""
    parts = [f"<h3><bdi>{escape(next(iter(words.values()))['text'])}</bdi></h3>"]
    for name, word in words.items():
        known = detail.get(name, {})
        bars = [("vector pushed", word["value"], word["upper"])]
        bars += (
            [(f"best real word: “{known['swapped_for']}”", known["swap"], None)]
            if known.get("swap")
            else []
        )
        bars += (
            [("a row of zeros" if known.get("emptied") else "deleted", known["removal"], None)]
            if "removal" in known
            else []
        )
        parts.append(f"<h4>{escape(_NAMES.get(name, 'The output moves'))}</h4>")
        for label, value, upper in bars:
            cells = f"<span>{escape(label)}</span>{bar(value, upper)}<b>{number(value)}</b>"
            parts.append(f"<p class='reader-head'>{cells}</p>")
        if word["upper"] is not None:
            parts.append(f"<p class='hint'>{escape(proved(answers[name], word['upper']))}</p>")
    return "".join(parts)
