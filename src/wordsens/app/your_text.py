"""The first screen: attention and a fully connected layer compared, then the same for a text of one's own."""

import json
from dataclasses import asdict, replace
from functools import cache
from typing import Any

from nicegui import ui

from wordsens.app.measurement import Measurement, comparison
from wordsens.app.parts import Box, Button, Control, Site, Text, screen, set_address, visitor_connects
from wordsens.app.request import EXAMPLES, LEAST_SHARE, MAPS, MOST_SHARE, POOLS, MeasureRequest
from wordsens.app.work_line import WorkLine, kind_message
from wordsens.errors import InputError
from wordsens.files import packaged_text
from wordsens.maps.registry import MODEL

LEAD = (
    "A word enters a layer as a vector. Here one word’s vector is pushed, by at most its own length, in the direction "
    "that moves the output most: the stronger a word’s colour, the farther. Both layers have random weights and read "
    "the same sentence. Why it matters: where no word can move the output much, a “not” cannot either. Click a word."
)

_SEARCHES = (("quick", "quick"), ("normal", "normal: several times slower"), ("thorough", "thorough"))


@cache
def shipped() -> dict[str, Any]:
    """Results that were computed beforehand (`wordsens.app.tasks.shipped`)."""
    return json.loads(packaged_text("app/static/examples.json"))


class YourText:
    """The screen of one visitor."""

    def __init__(self, site: Site, request: MeasureRequest):
        self._site, self._request = site, request
        self._pinned: Measurement | None = None
        with screen("/"):
            Text("h1", f"One word {comparison(shipped()['comparison'])}")
            Text("p", LEAD, "lead")
            with Box("div", "stage"):
                with Box("div", "colours") as self._colours:
                    self._pins = Box("div")
                    self._results = Box("div", id="result")
                with Box("section", "form", aria_label="Your text"):
                    self._form()
                self._details = Box("section", "details", aria_label="One word in detail")
            example = replace(MeasureRequest(text=next(iter(EXAMPLES.values()))), model=request.model)
            self._shown = self._view(example)
            self._shown.show_shipped(shipped()["comparison"])
            self._mark()

    def _view(self, request: MeasureRequest) -> Measurement:
        return Measurement(self._site, request, self._results, self._details, self._look_closer)

    def _form(self) -> None:
        given = self._request
        limit = self._site.settings.max_words
        self._text = Control(
            "textarea", "text", "Your text", given.text, self._mark, self.measure, rows=3, saved=True,
            hint=f"Up to {limit:,} words, measured on this machine and not stored. Press Enter.",
        )  # fmt: skip
        self._text.on("restored", lambda event: self._take(event.args))
        with Box("div", "row-of"):
            Button("Measure", self.measure, main=True, id="measure")
            self._pin = Button("Pin to compare", self._pin_result, id="pin-result")
            self._unpin = Button("Unpin", self._unpin_result, id="unpin-result")
        self._pin.set_visibility(False)
        self._unpin.set_visibility(False)
        self._line = WorkLine(self._site)
        with Box("details", "more"):
            Text("summary", "Examples")
            with Box("div", "row-of"):
                for name, text in EXAMPLES.items():
                    Button(name, lambda text=text: self._take(text))
        with Box("details", "more", **({"open": ""} if given.query(with_text=False) else {})):
            Text("summary", "Settings")
            with Box("div", "choices"):
                self._settings(given)

    def _settings(self, given: MeasureRequest) -> None:
        def control(kind: str, name: str, label: str, value: Any, **more: Any) -> Control:
            return Control(kind, name, label, value, self._mark, self.measure, **more)

        self._map = control(
            "select", "map", "What reads the text", given.map, options=_pairs(MAPS),
            hint="A random layer is untrained: it shows what an architecture can do, not what your text means. The "
            "last choice is a trained model.",
        )  # fmt: skip
        models = {name: name for name in self._site.settings.models}
        self._model = control("select", "model", "Model", given.model, options=_pairs(models))
        self._layer = control(
            "text", "layer", "Layer", str(given.layer), hint="0 is what enters the model, −1 the last."
        )
        self._pool = control("select", "pool", "What is measured", given.pool, options=_pairs(POOLS))
        self._depth = control("range", "depth", "Layers", given.depth, least=2, most=8, step=1)
        self._share = control(
            "range", "share", "How far a word’s vector may move", given.share, least=LEAST_SHARE, most=MOST_SHARE,
            step=0.05, unit=" × its length",
        )  # fmt: skip
        self._search = control("select", "search", "Search", given.search, options=[list(one) for one in _SEARCHES])

    def _take(self, text: str) -> Any:
        self._text.show(text)
        return self.measure()

    def request(self) -> MeasureRequest:
        """The request that the form makes.

        Raises:
            InputError: a value that is not offered, an empty or too long text.
        """
        try:
            layer = int(str(self._layer.value).replace("\N{MINUS SIGN}", "-"))
        except ValueError:
            raise InputError(f"`layer` (={self._layer.value!r}) must be a whole number, such as 2 or -1") from None
        request = MeasureRequest(
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
        request.require_allowed(self._site.settings.models, self._site.settings.max_words)
        return request

    def _mark(self) -> None:
        """Show the controls that the map has, and grey a result that is not of these settings."""
        for control in (self._model, self._layer, self._pool):
            control.set_visibility(self._map.value == MODEL)
        self._depth.set_visibility(self._map.value == "drf")
        self._shown.mark(stale=self._stale)
        self._pin.set_visibility(not self._stale and self._shown.complete)

    @property
    def _stale(self) -> bool:
        """True where the result is of other settings than the form's."""
        try:
            return self.request() != self._shown.request
        except InputError:
            return True

    async def measure(self, row: int | None = None) -> None:
        """Measure what the form says, and show the word of that row; what ran before is ended."""
        try:
            request = self.request()
        except InputError as error:
            self._line.drop()
            self._line.say(kind_message(str(error)), problem=True)
            self._mark()
            return
        self._shown.remove()
        shown = self._shown = self._view(request)
        self._pin.set_visibility(False)
        set_address("/", request.query(with_text=False))
        ui.run_javascript("document.getElementById('result').scrollIntoView({block: 'nearest'})")
        several = len(request.single) > 1
        for one in request.single:
            about = f"{MAPS[one.map].partition(' (')[0]}: " if several and one.map == "raf" else ""
            answer = await self._line.run(
                "measure", {"request": asdict(one)}, lambda part, name=one.map: shown.part(name, part), about=about
            )
            if answer is None:
                if self._shown is shown:
                    shown.mark("This measurement did not end: the colours are those of a first look.")
                return
            shown.add(one.map, answer)
        self._mark()
        await shown.finish(row)

    async def _look_closer(self, row: int) -> None:
        """Measure the example that is shown, for what is not shipped of the word of that row."""
        if not self._stale:
            with self._details:  # the word that was clicked is about to be replaced
                await self.measure(row)

    def _pin_result(self) -> None:
        self._unpin_result()
        self._pinned, request = self._shown, self._shown.request
        self._pinned.pin(self._pins)
        self._shown = self._view(request)
        self._shown.mark("Pinned above. Choose another text, map or model, and press Measure.")
        self._pin.set_visibility(False)
        self._unpin.set_visibility(True)

    def _unpin_result(self) -> None:
        if self._pinned is not None:
            self._pinned.remove()
            self._pinned = None
        self._unpin.set_visibility(False)


def _pairs(named: dict[str, str]) -> list[list[str]]:
    return [[key, name] for key, name in named.items()]


async def your_text(site: Site, query: dict[str, str]) -> None:
    """Build the screen; with settings in the link, measure what they say."""
    default = MeasureRequest(text=next(iter(EXAMPLES.values())), model=site.settings.models[0])
    request = MeasureRequest.of_query(query, default)
    if request.model not in site.settings.models:
        request = replace(request, model=default.model)
    page = YourText(site, request)
    if await visitor_connects() and request != default:
        await page.measure()
