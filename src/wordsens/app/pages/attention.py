"""Figure 1 for any two sentences: how attention changes with a word."""

from typing import Any

from wordsens.app.examples import PAIR
from wordsens.app.view.parts import Box, Button, Control, Matrices, Text
from wordsens.app.view.shell import Site, screen, someone_looks
from wordsens.app.view.work_line import WorkLine
from wordsens.errors import InputError

RANDOM = "random attention (RAF)"

LEAD = (
    "Attention decides how much each word takes from every other. Change one word, and see who looks elsewhere: each "
    "row is a word, each column where its attention goes. [CLS] and [SEP] are marks that the model puts before and "
    "after a text."
)


class AttentionScreen:
    """The screen of one visitor."""

    def __init__(self, site: Site):
        self._site = site
        models = [*site.settings.models, RANDOM]
        with screen("/attention"):
            with Box("section"):
                Text("h1", "One word, and attention turns")
                Text("p", LEAD, "lead")
                with Box("div", "choices wide"):
                    self._first = Control("text", "first", "First sentence", PAIR[0])
                    self._second = Control("text", "second", "Second sentence, one word changed", PAIR[1])
                    self._model = Control("select", "model", "Model", models[0], self.show, options=_named(models))
                    self._layer = Control("range", "layer", "Layer", 1, self.show, least=1, most=12, step=1)
                    self._head = Control("select", "head", "Head", "", self.show, options=[["", "mean over the heads"]])
                with Box("div", "row-of"):
                    Button("Compare", self.show, main=True, id="compare")
                self._line = WorkLine(site)
            with Box("section", aria_label="Attention"):
                self._sentence = Text("p", "", "answer")
                self._matrices = Matrices()

    async def show(self, _: Any = None) -> None:
        """Compare the sentences as the form says."""
        first, second = str(self._first.value).strip(), str(self._second.value).strip()
        most = self._site.settings.limits.words
        if not first or not second or max(len(first.split()), len(second.split())) > most:
            self._line.say(f"Give two sentences of two words or more, up to {most:,} words each.", problem=True)
            return
        if (model := self._model.value) not in (*self._site.settings.models, RANDOM):
            raise InputError(f"`model` (={model!r}) is not on the list")
        arguments = {
            "model": None if model == RANDOM else model,
            "first": first,
            "second": second,
            "layer": int(self._layer.value),
            "head": int(self._head.value) if str(self._head.value).isdigit() else None,
        }
        found = await self._line.run("attention", arguments)
        if found is None:
            return
        self._matrices.show(found["matrices"])
        self._layer.props["most"] = found["layers"]
        self._layer.update()
        heads = [("", "mean over the heads"), *((str(at), f"head {at}") for at in range(found["heads"]))]
        self._head.offer(heads if found["heads"] > 1 else heads[:1])
        if found["share"] is None:
            self._sentence.text = "The sentences have different lengths, so each is shown by itself."
        else:
            self._sentence.text = (
                f"{found['share']:.0%} of all attention goes elsewhere; most of all that of “{found['most']}”."
            )


def _named(models: list[str]) -> list[list[str]]:
    return [[one, one] for one in models]


async def attention(site: Site) -> None:
    """Build the screen, and compare the paper's pair."""
    page = AttentionScreen(site)
    if await someone_looks():
        await page.show()
