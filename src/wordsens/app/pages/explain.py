"""Explain: the words that carry a score."""

from typing import Any

from wordsens.app.examples import OPPOSITES
from wordsens.app.view.parts import Box, Button, Control, Table, Text
from wordsens.app.view.shell import Site, screen
from wordsens.app.view.work_line import WorkLine
from wordsens.errors import require_choice

LEAD = (
    "A model says how alike two texts are. Which words does that rest on? Each word is taken out, exchanged for "
    "another, and moved as a vector; with one text alone, what moves is its own vector."
)

_HEADINGS = ("word", "taken out", "best swap", "for", "farthest down", "farthest up")

_FAINT, _STRONG = 0.1, 0.5
"""Shares of the largest effect: below the first a word has no colour, above the second it is underlined."""


class ExplainScreen:
    """The screen of one visitor."""

    def __init__(self, site: Site):
        self._site = site
        models = site.settings.models
        with screen("/explain"):
            with Box("section"):
                Text("h1", "Which words carry a score?")
                Text("p", LEAD, "lead")
                with Box("div", "choices wide"):
                    self._text = Control("text", "first", "Text", OPPOSITES[0])
                    self._other = Control("text", "second", "Other text (may be empty)", OPPOSITES[1])
                    self._model = Control("select", "model", "Model", models[0], options=[[one, one] for one in models])
                with Box("div", "row-of"):
                    Button("Explain", self.explain, main=True, id="explain")
                self._line = WorkLine(site)
            self._found = Box("section", aria_label="Result")

    async def explain(self) -> None:
        """Explain what the form says."""
        model = require_choice("model", self._model.value, self._site.settings.models)
        texts = str(self._text.value), str(self._other.value)
        most = self._site.settings.limits.words
        if not texts[0].strip() or max(len(one.split()) for one in texts) > most:
            self._line.say(f"Give a text of two words or more, up to {most:,} words.", problem=True)
            return
        found = await self._line.run("explain", {"model": model, "text": texts[0], "other": texts[1]})
        if found is None:
            return
        self._found.clear()
        with self._found:
            for at, line in enumerate(found["sentences"]):
                Text("p", line, "answer" if at == 0 else "told-of")
            for side, text in enumerate(found["texts"]):
                _coloured(text, [word for word in found["words"] if word["side"] == side])
            Text("p", "Green: without the word the score rises; red: it falls. Underlined: most.", "hint")
            Table("Words", _HEADINGS, [_row(word) for word in found["words"]])


def _coloured(text: str, words: list[dict[str, Any]]) -> None:
    with Box("p", "carry", dir="auto"):
        at = 0
        for word in words:
            Text("span", text[at : word["start"]])
            shade = word["shade"]
            classes = "" if abs(shade) < _FAINT else "up" if shade > 0 else "down"
            Text("span", word["word"], f"{classes} {'much' if abs(shade) >= _STRONG else ''}".strip())
            at = word["stop"]
        Text("span", text[at:])


def _row(word: dict[str, Any]) -> list[Any]:
    numbers = [word[name] for name in ("removal", "swap", "lowers", "raises")]
    removal, swap, lowers, raises = (
        "" if one is None else f"{one:+.3f}".replace("-", "\N{MINUS SIGN}") for one in numbers
    )
    return [word["word"], removal, swap, word["swapped_for"] or "", lowers, raises]


async def explain(site: Site) -> None:
    """Build the screen."""
    ExplainScreen(site)
