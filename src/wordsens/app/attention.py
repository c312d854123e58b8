"""The attention of two texts, as figure 1 of the paper draws it: a fold of the first screen."""

from collections.abc import Callable
from typing import Any

from wordsens.app.parts import Box, Button, Field, Lines, Markup, Site, Text, grid
from wordsens.app.work_line import WorkLine

HINT = (
    "How much each word, on the left, takes from every other, on the right. [CLS] and [SEP] are "
    "marks that a model "
    "puts before and after a text."
)


class AttentionFold:
    """The attention of the model on both texts, by layer and head, for one visitor.

    Args:
        site: the workers.
        settings: gives the model and the two texts that the screen's answer is of.
    """

    def __init__(self, site: Site, settings: Callable[[], dict[str, str]]):
        self._settings = settings
        with Box("details", "more"):
            Text("summary", "Attention: where the model looks in each text")
            Text("p", HINT, "hint")
            with Box("div", "choices wide"):
                self._layer = Field(
                    "range", "layer", "Layer", 1, self.run, least=1, most=12, step=1
                )
                self._head = Field("select", "head", "Head", "", self.run, options=_heads(0))
            with Box("div", "row-of"):
                Button("Show attention", self.run, id="attend")
            self._line = WorkLine(site)
            self._sentence = Text("p", "", "answer")
            self._lines = Lines()
            with Box("details", "more"):
                Text("summary", "The numbers")
                self._grids = Markup()

    def clear(self) -> None:
        """Show nothing: the texts are others."""
        self._line.drop()
        self._line.say("")
        self._sentence.text = ""
        self._lines.set_visibility(False)
        self._grids.set_content("")

    async def run(self) -> None:
        """Show the attention of the layer and head."""
        settings = self._settings()
        head = int(self._head.value) if str(self._head.value).isdigit() else None
        answer = await self._line.run(
            "attention", {**settings, "layer": int(self._layer.value), "head": head}
        )
        if answer is None:
            return
        self._layer.change(most=answer["layers"])
        self._head.change(options=_heads(answer["heads"]))
        titles = [settings["first"], settings["second"]]
        self._lines.show_pair(titles, answer["words"], answer["weights"], answer["changed"])
        self._grids.set_content("".join(map(grid, titles, answer["words"], answer["weights"])))
        self._sentence.text = attention_sentence(answer)


def _heads(count: int) -> list[list[str]]:
    heads = [[str(head), f"head {head}"] for head in range(count)] if count > 1 else []
    return [["", "mean over the heads"], *heads]


def attention_sentence(answer: dict[str, Any]) -> str:
    """How much attention goes elsewhere in the second text."""
    if answer["share"] is None:
        return "The texts have different lengths, so each is shown by itself."
    if answer["share"] == 0:
        return "Attention is the same in both texts."
    return (
        f"{answer['share']:.1%} of all attention goes elsewhere; most of all that of "
        f"“{answer['most']}”."
    )
