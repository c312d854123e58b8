"""The attention of two texts, as figure 1 of the paper draws it: a fold of the first screen."""

from collections.abc import Callable

from wordsens.app.parts import Field, Fold, Lines, Tag, button, markup
from wordsens.app.pool import Pool
from wordsens.app.work_line import WorkLine

HINT = (
    "Lines show how much attention each word on the left pays to each word on the right. "
    "[CLS] and [SEP] are marks that a model puts before and after a text."
)

_MEAN = {"": "mean over the heads"}


class AttentionFold:
    """The attention of the model on both texts, by layer and head, for one visitor.

    Args:
        pool: the workers.
        settings: gives the model and the two texts that the screen's answer is of.
    """

    def __init__(self, pool: Pool, settings: Callable[[], dict[str, str]]):
        self._settings = settings
        with Fold("Attention: where the model looks in each text"):
            Tag("p", HINT, "hint")
            with Tag("div", classes="choices wide"):
                self._layer = Field(
                    "range", "layer", "Layer", 1, self.run, least=1, most=12, step=1
                )
                self._head = Field("select", "head", "Head", "", self.run, options=_MEAN)
            with Tag("div", classes="row-of"):
                button("Show attention", self.run, id="attend")
            self._line = WorkLine(pool)
            self._lines = Lines()
            with Fold("The numbers"):
                self._numbers = markup()

    def clear(self) -> None:
        """Show nothing: the texts are others."""
        self._line.drop()
        self._lines.show(None)
        self._numbers.set_content("")

    async def run(self) -> None:
        """Show the attention of the layer and head."""
        head = int(self._head.value) if self._head.value else None
        settings = {**self._settings(), "layer": int(self._layer.value), "head": head}
        answer = await self._line.run("attention", settings)
        if answer is None:
            return
        self._layer.change(most=answer["layers"])
        heads = {str(number): f"head {number}" for number in range(answer["heads"])}
        self._head.change(options=_MEAN | heads)
        self._lines.show(answer["lines"])
        self._numbers.set_content(answer["numbers"])
