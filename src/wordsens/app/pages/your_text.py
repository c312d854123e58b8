"""Your text: choose a map, press, and see the words take their colours."""

from dataclasses import asdict, replace
from typing import Any

from wordsens.app.examples import EXAMPLES
from wordsens.app.request import LEAST_SHARE, MAPS, MOST_SHARE, POOLS, MeasureRequest
from wordsens.app.view.measurement import Measurement, name_of
from wordsens.app.view.parts import Box, Button, Control, Text
from wordsens.app.view.shell import Site, screen, someone_looks
from wordsens.app.view.work_line import WorkLine, kind_message
from wordsens.errors import InputError
from wordsens.maps.registry import MODEL

LEAD = (
    "A model reads a sentence as one vector per word. wordsens pushes each word’s vector, a limited way, in the "
    "direction that changes the model’s output most. The stronger a word’s colour, the farther the output moved."
)

_SEARCHES = (("quick", "quick"), ("normal", "normal: several times slower"), ("thorough", "thorough"))


class YourText:
    """The screen of one visitor."""

    def __init__(self, site: Site, request: MeasureRequest):
        self._site, self._request = site, request
        self._pinned: Measurement | None = None
        self._now: Measurement | None = None
        with screen("/"):
            with Box("section"):
                Text("h1", "How far can one word move a model?")
                Text("p", LEAD, "lead")
                self._form()
            with Box("section", aria_label="Result"):
                self._results = Box("div", "results")
                self._actions()

    def _form(self) -> None:
        asked = self._request
        with Box("div", "form"):
            with Box("div"):
                limit = self._site.settings.limits.words
                self._text = Control(
                    "textarea", "text", "Your text", asked.text, rows=4, keep="wordsens-text",
                    hint=f"Up to {limit:,} words. It is measured on this server and not kept.",
                )  # fmt: skip
                self._text.on("kept", lambda event: self._take(event.args))
                with Box("div", "row-of", role="group", aria_label="Examples"):
                    for name, text in EXAMPLES.items():
                        Button(name, lambda text=text: self._take(text))
            with Box("div", "choices"):
                self._map = Control(
                    "select", "map", "What reads the text", asked.map, self._show_choices, options=_pairs(MAPS),
                    hint="A random layer is untrained: it shows what an architecture can do, not what your text "
                    "means. The last choice is a trained model.",
                )  # fmt: skip
                models = [(name, name) for name in self._site.settings.models]
                self._model = Control("select", "model", "Model", asked.model, options=_pairs(dict(models)))
                self._layer = Control(
                    "text", "layer", "Layer", str(asked.layer), hint="0 is what enters the model, −1 the last."
                )
                self._pool = Control("select", "pool", "What is measured", asked.pool, options=_pairs(POOLS))
                self._depth = Control("range", "depth", "Layers", asked.depth, least=2, most=8, step=1)
                self._share = Control(
                    "range", "share", "How far a word’s vector may move", asked.share,
                    least=LEAST_SHARE, most=MOST_SHARE, step=0.05, unit=" × its length",
                )  # fmt: skip
                self._search = Control(
                    "select", "search", "Search", asked.search, options=[list(one) for one in _SEARCHES]
                )
            with Box("div"):
                with Box("div", "row-of"):
                    self._go = Button("Measure", self.measure, main=True, id="measure")
                self._line = WorkLine(self._site)
        self._show_choices(asked.map)

    def _show_choices(self, chosen: str) -> None:
        for control in (self._model, self._layer, self._pool):
            control.set_visibility(chosen == MODEL)
        self._depth.set_visibility(chosen == "drf")

    def _take(self, text: str) -> Any:
        self._text.show(text)
        return self.measure()

    def asked(self) -> MeasureRequest:
        """The request that the form makes.

        Raises:
            InputError: a value that is not offered, an empty or too long text.
        """
        try:
            layer = int(str(self._layer.value).replace("\N{MINUS SIGN}", "-"))
        except ValueError:
            raise InputError(f"`layer` (={self._layer.value!r}) must be a whole number, such as 2 or -1") from None
        asked = MeasureRequest(
            text=str(self._text.value),
            map=self._map.value,
            model=self._model.value,
            layer=layer,
            pool=self._pool.value,
            depth=int(self._depth.value),
            share=round(float(self._share.value), 4),
            search=self._search.value,
            seed=self._request.seed,
        )
        asked.require_allowed(self._site.settings.models, self._site.settings.limits.words)
        return asked

    async def measure(self) -> None:
        """Measure what the form says; what ran before is ended."""
        try:
            asked = self.asked()
        except InputError as error:
            self._line.drop()
            self._line.say(kind_message(str(error)), problem=True)
            self._forget()
            return
        self._forget()
        with self._results:
            now = self._now = Measurement(self._site, asked)
        self._pin.set_visibility(False)
        found = await self._line.run("measure", {"request": asdict(asked)}, now.told)
        if found is not None and self._now is now:
            self._pin.set_visibility(True)
            await now.finish(found)

    def _forget(self) -> None:
        """Take the result that is not pinned off the screen."""
        if self._now is not None:
            self._now.close()
            self._results.remove(self._now.box)
            self._now = None

    def _actions(self) -> None:
        with Box("div", "row-of"):
            self._pin = Button("Pin this result, to compare it with another", self._pin_result, id="pin-result")
            self._unpin = Button("Unpin", self._unpin_result, id="unpin-result")
        self._pin.set_visibility(False)
        self._unpin.set_visibility(False)

    def _pin_result(self) -> None:
        self._drop_pinned()
        self._pinned, self._now = self._now, None
        if self._pinned is not None:
            self._results.classes(add="two")
            self._pin.set_visibility(False)
            self._unpin.set_visibility(True)
            self._line.say(
                f"Pinned: {name_of(self._pinned.request)}. Now choose another map, model or text, and press Measure."
            )

    def _unpin_result(self) -> None:
        self._drop_pinned()
        self._results.classes(remove="two")
        self._unpin.set_visibility(False)

    def _drop_pinned(self) -> None:
        if self._pinned is not None:
            self._pinned.close()
            self._results.remove(self._pinned.box)
            self._pinned = None


def _pairs(named: dict[str, str]) -> list[list[str]]:
    return [[key, name] for key, name in named.items()]


async def your_text(site: Site, query: Any) -> None:
    """Build the screen, and measure what the link or the first example says."""
    usual = MeasureRequest(text=next(iter(EXAMPLES.values())), model=site.settings.models[0])
    request = MeasureRequest.of_query(query, usual)
    if request.model not in site.settings.models:
        request = replace(request, model=usual.model)
    page = YourText(site, request)
    if await someone_looks():
        await page.measure()
