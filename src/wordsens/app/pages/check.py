"""Check: does a model's embedding show a flipped meaning?"""

from wordsens.app.view.parts import Box, Button, Control, Table, Text
from wordsens.app.view.shell import Site, screen
from wordsens.app.view.work_line import WorkLine
from wordsens.errors import require_choice
from wordsens.text.pairs import LENGTHS

LEAD = (
    "Two questions that differ in a “not” share almost every word, and many models put them closer together than two "
    "wordings of one meaning. This check compares opposites with near-duplicates of the same meaning, kind by kind."
)

_KINDS = ("kind", "pairs", "AUC", "95 % interval", "false hits", "95 % interval")
_PAIRS = ("cosine", "kind", "first", "second, of opposite meaning")

_AUC = (
    "AUC: the chance that an opposite lies farther apart than a near-duplicate. 1 is a model that sees the meaning, .5 "
    "a coin, 0 a model that puts every opposite closer together. False hits: the share of opposites at or above the "
    "threshold. The worst kind is on top."
)


class CheckScreen:
    """The screen of one visitor."""

    def __init__(self, site: Site):
        self._site = site
        models = site.settings.models
        with screen("/check"):
            with Box("section"):
                Text("h1", "Does the model see a “not”?")
                Text("p", LEAD, "lead")
                with Box("div", "choices wide"):
                    self._model = Control("select", "model", "Model", models[0], options=[[one, one] for one in models])
                    self._length = Control(
                        "select", "length", "Length of the texts", LENGTHS[0],
                        options=[*([one, one] for one in LENGTHS), ["all", "all"]],
                    )  # fmt: skip
                with Box("div", "row-of"):
                    Button("Check", self.check, main=True, id="check")
                self._line = WorkLine(site)
            self._found = Box("section", aria_label="Result")

    async def check(self) -> None:
        """Check the chosen model."""
        model = require_choice("model", self._model.value, self._site.settings.models)
        length = require_choice("length", self._length.value, [*LENGTHS, "all"])
        found = await self._line.run("check", {"model": model, "length": length})
        if found is None:
            return
        self._found.clear()
        with self._found:
            for line in found["answer"]:
                Text("p", line, "answer")
            Text("h2", "Kinds of opposites", "head")
            Text("p", _AUC, "hint")
            Table("Kinds of opposites", _KINDS, found["kinds"])
            Text("h2", "The pairs that it takes most for the same", "head")
            Table("Pairs", _PAIRS, found["pairs"])
            for note in found["notes"]:
                Text("p", note, "caption")


async def check(site: Site) -> None:
    """Build the screen."""
    CheckScreen(site)
